//! The calls of a group: those that wait, run and have ended on this rank.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lmt_core::buffer::Buffer;
use lmt_core::engine::{Engine, OperationError};
use lmt_core::fork_guard::Origin;
use lmt_core::region::{Direction, RegionKey};

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::{self, Unsuitable};
use crate::board::Board;
use crate::call::{Blocks, Call};
use crate::check::{Team, call_of};
use crate::choice::{Choice, Chooser};
use crate::copies;
use crate::domains::{Place, domains, share_a_cache};
use crate::error::{Broken, GroupError};
use crate::lent::{Memory, Places};
use crate::operation::Operation;
use crate::patience::Watched;
use crate::program::Program;
use crate::reduction::{Panic, Reduction};
use crate::ring::Ring;
use crate::running::{Context, Member, Running, Turn};
use crate::signature::Signature;

/// The calls of a group on this rank, and what they need.
pub(crate) struct Calls {
    board: Board,
    members: Vec<Member>,
    team: Team,
    /// 39 bits that tell this group's messages from those of others.
    tag: u64,
    chooser: Chooser,
    /// The number of the next call.
    next: u32,
    /// Before which number all ranks have ended all, when last looked at.
    ended_by_all: u32,
    /// Where this rank's slots are.
    ring: Ring,
    /// Calls under way, oldest first, and those that have ended and are not fetched.
    calls: VecDeque<Slot>,
    /// Programs of calls that may come again, the latest first.
    programs: VecDeque<(Rc<Call>, Algorithm, Rc<Program>)>,
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
    Waiting(Box<Prepared>),
    Running(Box<Running>),
    Ended(Result<(), GroupError>),
    /// Its result was fetched.
    Fetched,
}

/// A call that has not begun.
struct Prepared {
    call: Rc<Call>,
    program: Rc<Program>,
    signature: Signature,
    operation: Lent,
    /// What this rank has to say once all have met.
    wrong: Option<GroupError>,
}

/// An operation's memory.
struct Lent {
    input: Option<Buffer>,
    output: Option<Buffer>,
    reduction: Option<Reduction>,
}

/// Programs that are kept for calls that come again.
const KEPT_PROGRAMS: usize = 16;
/// Scratch memory that is kept for the next call.
const KEPT_WORK_BYTES: usize = 16 << 20;
/// How long a failed call waits for others to end messages with this rank and to leave
/// its memory.
const PARTING: Duration = Duration::from_secs(1);
/// Of that, at least so long once this rank has nothing under way itself.
const LEAST_PARTING: Duration = Duration::from_millis(200);
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
            next: 0,
            ended_by_all: 0,
            calls: VecDeque::new(),
            programs: VecDeque::new(),
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
    pub fn settle(&mut self, single_copy: bool, places: &[Place]) {
        self.chooser.single_copy = single_copy;
        self.chooser.one_cache = share_a_cache(places);
        let domains = domains(places);
        self.team.domains = domains.into();
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
    pub fn look_and_advance(&mut self, engine: &mut Engine) -> bool {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(DEATHS_EVERY) {
            self.look_for_deaths(engine);
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

    /// What an operation is in this group. Wrong arguments become a call that no other
    /// is like, so that the others hear of it.
    fn prepare(&mut self, operation: Operation<'_>) -> Prepared {
        let made = call_of(&operation, &self.team).map_err(GroupError::Arguments).and_then(|call| {
            let named = operation.algorithm;
            let chosen = named.unwrap_or_else(|| self.chooser.choose(&call, operation.is_listed).algorithm);
            self.chooser.check(chosen, call.kind)?;
            let (call, program) = self.program(call, chosen)?;
            Ok((call, program, chosen))
        });
        let lent = |operation: Operation<'_>| Lent {
            input: operation.input.map(Memory::into_buffer),
            output: operation.output.map(Memory::into_buffer),
            reduction: operation.reduction,
        };
        match made {
            Ok((call, program, chosen)) => {
                let code = operation.reduction.as_ref().map_or(0, |reduction| reduction.code());
                let signature = Signature::of(&call, chosen, code, operation.is_listed);
                Prepared { call, program, signature, operation: lent(operation), wrong: None }
            }
            Err(wrong) => Prepared {
                call: Rc::new(empty_call(&self.team)),
                program: Rc::default(),
                signature: Signature::of_wrong(self.team.rank),
                operation: Lent { input: None, output: None, reduction: None },
                wrong: Some(wrong),
            },
        }
    }

    /// Puts a call at the end of the list, to be begun.
    pub fn enter(&mut self, operation: Operation<'_>) -> Result<u32, GroupError> {
        if !self.origin.is_this_process() {
            return Err(OperationError::Forked.into());
        }
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let prepared = self.prepare(operation);
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.calls.push_back(Slot { number, state: State::Waiting(Box::new(prepared)) });
        Ok(number)
    }

    /// A call's program, and the call; both of the last time if there was one like it.
    fn program(&mut self, call: Call, algorithm: Algorithm) -> Result<(Rc<Call>, Rc<Program>), Unsuitable> {
        let same = |kept: &(Rc<Call>, Algorithm, Rc<Program>)| kept.1 == algorithm && *kept.0 == call;
        if let Some(at) = self.programs.iter().position(same) {
            self.programs.make_contiguous()[..=at].rotate_right(1);
            let (call, _, program) = &self.programs[0];
            return Ok((Rc::clone(call), Rc::clone(program)));
        }
        let program = Rc::new(algorithms::program(&call, algorithm)?);
        let call = Rc::new(call);
        self.programs.truncate(KEPT_PROGRAMS - 1);
        self.programs.push_front((Rc::clone(&call), algorithm, Rc::clone(&program)));
        Ok((call, program))
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
        for at in 0..self.calls.len() {
            moved |= self.advance_one(at, engine);
        }
        if moved {
            self.publish(engine);
        }
        moved
    }

    fn advance_one(&mut self, at: usize, engine: &mut Engine) -> bool {
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
        match running.advance(&mut context) {
            Ok(moved) => {
                let is_over = running.is_over();
                if is_over {
                    self.end(at, Ok(()));
                }
                moved
            }
            // The others have the same error.
            Err(error) if running.is_over() => {
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
        let State::Waiting(prepared) = &self.calls[at].state else { return false };
        let Some(slot) = self.claim(number, prepared.program.slot_bytes) else { return false };
        let State::Waiting(prepared) = std::mem::replace(&mut self.calls[at].state, State::Fetched) else {
            return false;
        };
        let Prepared { call, program, signature, operation, wrong } = *prepared;
        let mut work = std::mem::take(&mut self.spare_work);
        work.resize(program.work_bytes as usize, 0);
        let places = Places::new(operation.input, operation.output, work);
        let mut context = Context {
            engine,
            board: &self.board,
            members: &self.members,
            rank: self.team.rank,
            tag: self.tag,
        };
        match Running::begin(
            Turn { number, slot },
            call,
            program,
            places,
            operation.reduction,
            signature,
            &mut context,
        ) {
            Ok(mut running) => {
                running.wrong = wrong;
                self.calls[at].state = State::Running(Box::new(running));
                true
            }
            Err(error) => {
                self.calls[at].state = State::Ended(Err(error.clone()));
                self.fail(error, Broken::Failed(self.team.rank), engine);
                false
            }
        }
    }

    /// Whether all ranks have ended the call that had this one's place before.
    fn is_free(&mut self, number: u32) -> bool {
        let ahead = |ended: u32| number.wrapping_sub(ended);
        if ahead(self.ended_by_all) < crate::layout::DEPTH {
            return true;
        }
        self.look_who_has_ended(number);
        ahead(self.ended_by_all) < crate::layout::DEPTH
    }

    /// Looks which calls before this one all ranks have ended.
    fn look_who_has_ended(&mut self, number: u32) {
        let ahead = |ended: u32| number.wrapping_sub(ended);
        let board = &self.board;
        let furthest = (0..self.team.size).map(|rank| board.ended_of(rank)).max_by_key(|&ended| ahead(ended));
        self.ended_by_all = furthest.unwrap_or(number);
    }

    /// Where this rank's slot of a call begins, if there is room.
    fn claim(&mut self, number: u32, bytes: u64) -> Option<u64> {
        if let Some(begin) = self.ring.claim(number, bytes, self.ended_by_all) {
            return Some(begin);
        }
        self.look_who_has_ended(number);
        self.ring.claim(number, bytes, self.ended_by_all)
    }

    /// A call has ended on this rank.
    fn end(&mut self, at: usize, result: Result<(), GroupError>) {
        let ended = std::mem::replace(&mut self.calls[at].state, State::Ended(result));
        if let State::Running(running) = ended {
            if let Some(wrong) = running.wrong.clone() {
                self.calls[at].state = State::Ended(Err(wrong));
            }
            self.keep_work(running.into_work());
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
        Some(result)
    }

    /// Wakes those that sleep: there is something new on the board.
    fn publish(&self, engine: &mut Engine) {
        for rank in self.board.sleepers() {
            engine.ring(self.members[rank as usize].peer);
        }
    }

    /// The group is broken: what is under way ends.
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
        self.part(&calls, until.max(Instant::now() + LEAST_PARTING), engine);
        for slot in &mut calls {
            if matches!(slot.state, State::Running(_) | State::Waiting(_)) {
                slot.state = State::Ended(Err(error.clone()));
            }
        }
        self.calls = calls;
    }

    /// Waits until no living rank can be using this rank's memory for one of the calls,
    /// but no longer than that.
    fn part(&self, calls: &VecDeque<Slot>, until: Instant, engine: &mut Engine) {
        let uses = |running: &Running, rank: u32, engine: &Engine| {
            let peer = self.members[rank as usize].peer;
            running.may_be_used_by(rank, &self.board) && engine.peer_error(peer).is_none()
        };
        let others = || (0..self.team.size).filter(|&rank| rank != self.team.rank);
        let in_use = |engine: &Engine| {
            calls.iter().any(|slot| match &slot.state {
                State::Running(running) => {
                    running.is_exposed() && others().any(|rank| uses(running, rank, engine))
                }
                _ => false,
            })
        };
        while in_use(engine) && Instant::now() < until {
            // What it says does not matter: a forked child has nothing to part with.
            let _slept = engine.nap(Duration::from_micros(200));
            let _moved = engine.progress();
        }
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

impl Watched for Calls {
    fn board(&self) -> &Board {
        &self.board
    }

    fn has_news(&mut self, engine: &mut Engine) -> bool {
        self.advance(engine)
    }

    fn look_for_deaths(&mut self, engine: &mut Engine) {
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

fn empty_call(team: &Team) -> Call {
    Call {
        kind: Kind::Barrier,
        rank: team.rank,
        size: team.size,
        root: 0,
        bytes: 0,
        blocks: Blocks::Equal(0),
        input_blocks: Blocks::Equal(0),
        in_place: false,
        element_bytes: 1,
        domains: Rc::from([]),
        slot_bytes: 0,
    }
}
