//! The calls of a group: those that wait, run and have ended on this rank.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lmt_core::endpoint::{Engine, OperationError, PeerId};
use lmt_core::fork_guard::Origin;
use lmt_core::region::{Direction, RegionKey};

use crate::algorithm::Algorithm;
use crate::algorithms;
use crate::backoff::WaitTarget;
use crate::board::Board;
use crate::check::{Team, call_of};
use crate::choice::{Choice, Chooser};
use crate::copies;
use crate::domains::{Place, StreamsFrom, domains, share_a_cache};
use crate::error::{Broken, GroupError};
use crate::layout::DEPTH;
use crate::operation::Operation;
use crate::plan::{Asked, Plan, Plans};
use crate::reduction::Panic;
use crate::ring::Ring;
use crate::running::{Context, Member, Running};
use crate::signature::Signature;

/// The calls of a group on this rank, and what they need.
pub(crate) struct Calls {
    board: Board,
    members: Vec<Member>,
    team: Team,
    /// 39 bits that tell this group's messages from those of others.
    tag: u64,
    chooser: Chooser,
    /// Calls that write so many bytes on this rank do so past the caches.
    streams_from: StreamsFrom,
    /// The number of the next call.
    next: u32,
    /// Before which number all ranks have ended all, when last looked at.
    ended_by_all: u32,
    /// Where this rank's slots are.
    ring: Ring,
    /// Calls in flight, oldest first, and those that have ended and are not fetched.
    calls: VecDeque<Slot>,
    plans: Plans,
    /// What ended calls leave for later ones.
    #[allow(clippy::vec_box)] // They are moved in and out as they are.
    spare: Vec<Box<Running>>,
    spare_work: Vec<u8>,
    error: Option<GroupError>,
    /// Calls of `progress` since deaths were looked for.
    looks: u32,
    /// Of rank 0: the board's memory, to be given back.
    own_board: Option<RegionKey>,
    /// Who may use it: a forked child may not.
    origin: Origin,
    /// What the caller's own reduction has panicked with.
    panic: Option<Panic>,
}

/// A call in the list.
struct Slot {
    number: u32,
    state: State,
}

enum State {
    /// It cannot begin: too many calls before it have not ended everywhere, or their slots
    /// leave no room for its own.
    Waiting(Box<Running>),
    Running(Box<Running>),
    /// Errors are long, and what is moved about in the list had better be short.
    Ended(Result<(), Box<GroupError>>),
    /// Its result was fetched.
    Fetched,
}

/// Scratch memory that is kept for the next call.
const KEPT_WORK_BYTES: usize = 16 << 20;
/// How long a failed call waits for others to end messages with this rank and to leave
/// its memory.
const PARTING: Duration = Duration::from_secs(1);
/// Of that, at least so long once this rank has nothing in flight itself.
const MIN_PARTING: Duration = Duration::from_millis(200);
/// After so long they are connected with this one, where they are not yet: of those that
/// cannot be it is known then that they are dead.
const UNASKED: Duration = Duration::from_millis(10);
/// So many of them at most: all with all would be too many connections of a large group.
const MAX_ASKED: usize = 32;
/// Deaths are looked for in so many calls of `progress` once.
const DEATHS_EVERY: u32 = 64;

impl Calls {
    pub fn new(board: Board, members: Vec<Member>, team: Team, tag: u64, chooser: Chooser) -> Self {
        Self {
            ring: Ring::new(board.layout().ring_bytes()),
            board,
            members,
            team,
            tag,
            chooser,
            streams_from: StreamsFrom::NEVER,
            next: 0,
            ended_by_all: 0,
            calls: VecDeque::new(),
            plans: Plans::default(),
            spare: Vec::new(),
            spare_work: Vec::new(),
            error: None,
            looks: 0,
            own_board: None,
            origin: Origin::here(),
            panic: None,
        }
    }

    pub fn rank(&self) -> u32 {
        self.team.rank
    }

    pub fn size(&self) -> u32 {
        self.team.size
    }

    pub fn member(&self, rank: u32) -> Option<Member> {
        self.members.get(rank as usize).copied()
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn chooser(&self) -> &Chooser {
        &self.chooser
    }

    /// What the ranks have told each other when the group was made.
    pub fn settle(&mut self, single_copy: bool, places: &[Place], streams_from: StreamsFrom) {
        self.streams_from = streams_from;
        self.chooser.single_copy = single_copy;
        self.chooser.one_cache = share_a_cache(places);
        let domains = domains(places);
        self.team.domains = domains.into();
        self.plans.forget();
    }

    pub fn keep_board(&mut self, key: RegionKey) {
        self.own_board = Some(key);
    }

    pub fn take_panic(&mut self) -> Option<Panic> {
        self.panic.take()
    }

    /// Which algorithm a call would take, and a sentence on each rule that is passed over.
    pub fn explain(&mut self, operation: &Operation<'_>) -> Result<(Choice, Vec<String>), GroupError> {
        let call = call_of(operation, &self.team).map_err(GroupError::Arguments)?;
        Ok(self.chooser.explain(&call, operation.is_listed))
    }

    /// What this rank would copy out of, and into, the memory of others in a call.
    pub fn copies(
        &self,
        operation: &Operation<'_>,
        algorithm: Algorithm,
    ) -> Result<Vec<(Member, Direction, u64)>, GroupError> {
        let call = call_of(operation, &self.team).map_err(GroupError::Arguments)?;
        let program = algorithms::program(&call, algorithm)?;
        let of_member = |(rank, direction, bytes)| Some((self.member(rank)?, direction, bytes));
        Ok(copies::of_program(&program).filter_map(of_member).collect())
    }

    /// As [`Self::advance`], with a look for deaths now and then.
    pub fn poll_and_advance(&mut self, engine: &mut Engine) -> bool {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(DEATHS_EVERY) {
            self.check_for_deaths(engine);
        }
        self.advance(engine)
    }

    /// Breaks the group: this rank leaves calls that others are in.
    pub fn give_up(&mut self, engine: &mut Engine) {
        let rank = self.team.rank;
        self.fail(GroupError::Failed { rank }, Broken::Failed(rank), engine);
    }

    /// This rank begins no call any more.
    pub fn leave(&mut self, engine: &mut Engine) {
        if !self.origin.is_this_process() {
            return;
        }
        self.board.leave();
        self.publish(engine);
        if let Some(key) = self.own_board {
            // Those that have it mapped keep it.
            let _destroyed = engine.destroy_region(&key);
        }
    }

    fn context<'a>(&'a self, engine: &'a mut Engine) -> Context<'a> {
        Context { engine, board: &self.board, members: &self.members, rank: self.team.rank, tag: self.tag }
    }

    /// How an operation goes in this group.
    fn plan(&mut self, operation: &Operation<'_>) -> Result<Rc<Plan>, GroupError> {
        let call = call_of(operation, &self.team).map_err(GroupError::Arguments)?;
        let asked = Asked::of(operation);
        if let Some(plan) = self.plans.find(&call, asked) {
            return Ok(plan);
        }
        let algorithm = match asked.algorithm {
            Some(algorithm) => algorithm,
            None => self.chooser.choose(&call, asked.is_listed).algorithm,
        };
        self.chooser.check(algorithm, call.kind)?;
        let program = algorithms::program(&call, algorithm)?;
        let signature = Signature::of(&call, algorithm, asked.reduction, asked.is_listed);
        Ok(self.plans.keep(asked, Plan { call, program, signature }))
    }

    /// Puts a call at the end of the list, to be begun.
    pub fn enter(&mut self, operation: Operation<'_>) -> Result<u32, GroupError> {
        if !self.origin.is_this_process() {
            return Err(OperationError::Forked.into());
        }
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        let (plan, wrong) = match self.plan(&operation) {
            Ok(plan) => (plan, None),
            Err(wrong) => (Rc::new(Plan::of_wrong(&self.team)), Some(Box::new(wrong))),
        };
        let mut waiting = self.prepared(number, plan);
        waiting.stream_from(self.streams_from);
        waiting.lend(operation);
        waiting.wrong = wrong;
        self.calls.push_back(Slot { number, state: State::Waiting(waiting) });
        Ok(number)
    }

    /// A call that has not begun, in the place of one that has ended.
    fn prepared(&mut self, number: u32, plan: Rc<Plan>) -> Box<Running> {
        let Some(mut spare) = self.spare.pop() else { return Box::new(Running::new(number, plan)) };
        spare.renew(number, plan);
        spare
    }

    /// Moves all calls forward as far as possible. Returns whether anything moved.
    pub fn advance(&mut self, engine: &mut Engine) -> bool {
        if !self.origin.is_this_process() {
            return false;
        }
        if self.error.is_none() && self.board.broken() != 0 {
            let broken = Broken::read(self.board.broken(), self.team.size);
            self.fail(broken.into(), broken, engine);
        }
        let mut moved = false;
        let mut told = false;
        for at in 0..self.calls.len() {
            moved |= self.advance_one(at, engine, &mut told);
        }
        // Only then: to look for sleepers is to wait until all that was copied is written.
        if told {
            self.publish(engine);
        }
        moved
    }

    /// Moves one call; notes whether others were told something.
    fn advance_one(&mut self, at: usize, engine: &mut Engine, told: &mut bool) -> bool {
        if self.error.is_some() {
            return false;
        }
        if matches!(self.calls[at].state, State::Waiting(_)) && !self.begin(at, engine) {
            return false;
        }
        let State::Running(running) = &mut self.calls[at].state else { return false };
        let mut context = Context {
            engine,
            board: &self.board,
            members: &self.members,
            rank: self.team.rank,
            tag: self.tag,
        };
        let advanced = running.advance(&mut context);
        let (has_told, is_over) = (running.take_told(), running.is_over());
        *told |= has_told;
        match advanced {
            Ok(moved) => {
                if is_over {
                    self.end(at, Ok(()));
                }
                moved || has_told
            }
            // The others have the same error.
            Err(error) if is_over => {
                self.end(at, Err(error));
                true
            }
            Err(error) => {
                self.panic = running.panic.take().or(self.panic.take());
                self.fail(error, Broken::Failed(self.team.rank), engine);
                true
            }
        }
    }

    /// Begins a call if its place on the board is free everywhere.
    fn begin(&mut self, at: usize, engine: &mut Engine) -> bool {
        let number = self.calls[at].number;
        if !self.is_free(number)
            || self.calls.iter().take(at).any(|slot| matches!(slot.state, State::Waiting(_)))
        {
            return false;
        }
        let State::Waiting(waiting) = &self.calls[at].state else { return false };
        let Some(slot) = self.claim(number, waiting.slot_bytes(), waiting.fills_caches()) else {
            return false;
        };
        let State::Waiting(mut running) = std::mem::replace(&mut self.calls[at].state, State::Fetched) else {
            return false;
        };
        let work = std::mem::take(&mut self.spare_work);
        match running.begin(slot, work, &mut self.context(engine)) {
            Ok(()) => {
                self.calls[at].state = State::Running(running);
                true
            }
            Err(error) => {
                self.calls[at].state = State::Ended(Err(Box::new(error.clone())));
                self.fail(error, Broken::Failed(self.team.rank), engine);
                false
            }
        }
    }

    /// Whether all ranks have ended the call that had this one's place before.
    fn is_free(&mut self, number: u32) -> bool {
        let ahead = |ended: u32| number.wrapping_sub(ended);
        if ahead(self.ended_by_all) < DEPTH {
            return true;
        }
        self.poll_ended_calls(number);
        ahead(self.ended_by_all) < DEPTH
    }

    /// Looks which calls before this one all ranks have ended.
    fn poll_ended_calls(&mut self, number: u32) {
        let ahead = |ended: u32| number.wrapping_sub(ended);
        let board = &self.board;
        let furthest = (0..self.team.size).map(|rank| board.ended_of(rank)).max_by_key(|&ended| ahead(ended));
        self.ended_by_all = furthest.unwrap_or(number);
    }

    /// Where this rank's slot of a call begins, if there is room.
    fn claim(&mut self, number: u32, bytes: u64, again: bool) -> Option<u64> {
        // To begin again it has to be known that all before have ended.
        if !again && let Some(begin) = self.ring.claim(number, bytes, self.ended_by_all, false) {
            return Some(begin);
        }
        self.poll_ended_calls(number);
        self.ring.claim(number, bytes, self.ended_by_all, again)
    }

    /// A call has ended on this rank.
    fn end(&mut self, at: usize, result: Result<(), GroupError>) {
        let result = result.map_err(Box::new);
        let ended = std::mem::replace(&mut self.calls[at].state, State::Ended(result));
        if let State::Running(mut running) = ended {
            if let Some(wrong) = running.wrong.take() {
                self.calls[at].state = State::Ended(Err(wrong));
            }
            self.keep_work(running.take_memory());
            if self.spare.len() < DEPTH as usize {
                self.spare.push(running);
            }
        }
        let is_under_way = |slot: &&Slot| matches!(slot.state, State::Waiting(_) | State::Running(_));
        let first = self.calls.iter().find(is_under_way).map_or(self.next, |slot| slot.number);
        self.board.publish_ended(first);
    }

    fn keep_work(&mut self, mut work: Vec<u8>) {
        if work.capacity() <= KEPT_WORK_BYTES && work.capacity() > self.spare_work.capacity() {
            work.clear();
            self.spare_work = work;
        }
    }

    pub fn fetch(&mut self, number: u32) -> Option<Result<(), GroupError>> {
        // What was fetched before has ended: who unwinds may ask again.
        let Some(slot) = self.calls.iter_mut().find(|slot| slot.number == number) else {
            return Some(Ok(()));
        };
        match slot.state {
            State::Ended(_) => {}
            State::Fetched => return Some(Ok(())),
            State::Waiting(_) | State::Running(_) => return None,
        }
        let State::Ended(result) = std::mem::replace(&mut slot.state, State::Fetched) else { return None };
        while self.calls.front().is_some_and(|slot| matches!(slot.state, State::Fetched)) {
            self.calls.pop_front();
        }
        Some(result.map_err(|error| *error))
    }

    /// Wakes those that sleep: there is something new on the board.
    fn publish(&self, engine: &mut Engine) {
        for rank in self.board.sleepers() {
            engine.ring(self.members[rank as usize].peer);
        }
    }

    /// The group is broken: what is in flight ends.
    fn fail(&mut self, error: GroupError, reason: Broken, engine: &mut Engine) {
        self.board.break_for(reason.word());
        self.publish(engine);
        self.error = Some(error.clone());
        let until = Instant::now() + PARTING;
        let mut calls = std::mem::take(&mut self.calls);
        let mut own = Vec::new();
        for running in running(&mut calls) {
            running.cancel(&mut self.context(engine));
            own.extend(running.requests());
        }
        for running in running(&mut calls) {
            running.give_up(&mut self.context(engine), until, &own);
        }
        self.part(&calls, until.max(Instant::now() + MIN_PARTING), engine);
        for slot in &mut calls {
            if matches!(slot.state, State::Running(_) | State::Waiting(_)) {
                slot.state = State::Ended(Err(Box::new(error.clone())));
            }
        }
        self.calls = calls;
    }

    /// Waits until no living rank can be using this rank's memory for one of the calls,
    /// but no longer than that.
    fn part(&self, calls: &VecDeque<Slot>, until: Instant, engine: &mut Engine) {
        let ask_at = Instant::now() + UNASKED;
        let mut asked: Vec<PeerId> = Vec::new();
        while Instant::now() < until {
            let users = self.users(calls, engine);
            if users.is_empty() {
                return;
            }
            if asked.len() < MAX_ASKED && Instant::now() > ask_at {
                // One with which there is no connection may be dead: now there will be
                // one, or nobody is found where it was.
                if let Some(peer) = users.into_iter().find(|peer| !asked.contains(peer)) {
                    engine.ring(peer);
                    asked.push(peer);
                }
            }
            // What it says does not matter: a forked child has nothing to part with.
            let _slept = engine.sleep_at_most(Duration::from_micros(200));
            let _moved = engine.progress();
        }
    }

    /// The ranks that may be using this rank's memory for one of the calls and are not
    /// known to be dead.
    fn users(&self, calls: &VecDeque<Slot>, engine: &Engine) -> Vec<PeerId> {
        let exposed = calls.iter().filter_map(|slot| match &slot.state {
            State::Running(running) if running.is_exposed() => Some(&**running),
            _ => None,
        });
        let of_one = |running: &'_ Running| {
            let others = (0..self.team.size).filter(|&rank| rank != self.team.rank);
            let users = others.filter(|&rank| running.may_be_used_by(rank, &self.board));
            users.map(|rank| self.members[rank as usize].peer).collect::<Vec<_>>()
        };
        let is_gone = |peer| engine.peer_error(peer).is_some() || engine.has_no_listener(peer);
        exposed.flat_map(of_one).filter(|&peer| !is_gone(peer)).collect()
    }

    /// A rank from which a call still needs something, or that has not begun it, and that
    /// has died or left the group.
    fn missed(&self, engine: &Engine) -> Option<Broken> {
        let needs = |rank: u32| {
            self.calls.iter().any(|slot| match &slot.state {
                State::Running(running) => !running.has_been_ended_by(rank, &self.board),
                State::Waiting(_) => true,
                State::Ended(_) | State::Fetched => false,
            })
        };
        let gone = |rank: u32| {
            if engine.peer_error(self.members[rank as usize].peer).is_some() {
                return Some(Broken::Died(rank));
            }
            self.board.has_left(rank).then_some(Broken::Failed(rank))
        };
        let others = (0..self.team.size).filter(|&rank| rank != self.team.rank);
        others.filter_map(|rank| Some((rank, gone(rank)?))).find(|(rank, _)| needs(*rank)).map(|(_, why)| why)
    }
}

impl WaitTarget for Calls {
    fn board(&self) -> &Board {
        &self.board
    }

    fn poll_events(&mut self, engine: &mut Engine) -> bool {
        self.advance(engine)
    }

    fn check_for_deaths(&mut self, engine: &mut Engine) {
        if self.error.is_none()
            && self.origin.is_this_process()
            && let Some(why) = self.missed(engine)
        {
            self.fail(why.into(), why, engine);
        }
    }
}

fn running(calls: &mut VecDeque<Slot>) -> impl Iterator<Item = &mut Running> {
    calls.iter_mut().filter_map(|slot| match &mut slot.state {
        State::Running(running) => Some(&mut **running),
        State::Waiting(_) | State::Ended(_) | State::Fetched => None,
    })
}
