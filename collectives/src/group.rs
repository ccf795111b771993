//! [`Group`]: ranks that do things together.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lmt::Endpoint;
use lmt_core::engine::Engine;
use lmt_core::region::RegionKey;

use crate::algorithm::{Algorithm, Kind};
use crate::algorithms::{self, Unsuitable};
use crate::board::Board;
use crate::call::Call;
use crate::check::{Team, call_of};
use crate::choice::Chooser;
use crate::engine::with_engine;
use crate::error::{Broken, GroupError};
use crate::lent::{Memory, Places};
use crate::operation::Operation;
use crate::patience::{Patience, Watched};
use crate::program::Program;
use crate::running::{Context, Member, Running};
use crate::scope::Scope;
use crate::signature::Signature;

/// Ranks that do things together: one endpoint each, all of the same machine.
///
/// A group is made by all its members at once ([`Group::create`],
/// [`Group::from_launch`], [`Group::split`], [`Group::duplicate`]). Then each calls the
/// same operations in the same order ([`Group::run`], [`Group::scope`]); every call
/// begins with a meeting of all ranks, in which it shows whether they call the same.
///
/// # Failure
/// Where the arguments of ranks differ or are wrong, all ranks have an error and the
/// group goes on. When a rank dies, closes its endpoint or cannot go on, the group is
/// broken: whatever is under way on others ends in an error that names the rank, and so
/// does every later call. A new group of the living takes its place. A call that has
/// failed returns when the other ranks are known to have left this rank's memory; one
/// that does not say so for a second, because it is stopped, may be writing to it still.
///
/// # Threads
/// Whoever uses the endpoint uses the group: one thread at a time. While calls are
/// under way, all that makes progress on the endpoint helps; the group's own waits do,
/// for messages of the endpoint too.
pub struct Group<'e> {
    endpoint: &'e Endpoint,
    inner: RefCell<Inner>,
}

struct Inner {
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
}

/// A call in the list.
struct Slot {
    number: u32,
    state: State,
}

enum State {
    /// It cannot begin: too many calls before it have not ended everywhere.
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
    input: Option<lmt_core::buffer::Buffer>,
    output: Option<lmt_core::buffer::Buffer>,
    reduction: Option<crate::reduction::Reduction>,
}

/// Programs that are kept for calls that come again.
const KEPT_PROGRAMS: usize = 16;
/// Scratch memory that is kept for the next call.
const KEPT_WORK_BYTES: usize = 16 << 20;
/// How long a failed call waits for others to leave this rank's memory.
const PARTING: Duration = Duration::from_secs(1);
/// Deaths are looked for in so many calls of `progress` once.
const DEATHS_EVERY: u32 = 64;

impl<'e> Group<'e> {
    pub(crate) fn new(
        endpoint: &'e Endpoint,
        board: Board,
        members: Vec<Member>,
        team: Team,
        tag: u64,
        chooser: Chooser,
    ) -> Self {
        let inner = Inner {
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
        };
        Self { endpoint, inner: RefCell::new(inner) }
    }

    /// What the ranks have told each other: whether all may reach into each other's
    /// memory, and their domains.
    pub(crate) fn settle(&self, single_copy: bool, domains: Vec<u32>) {
        let mut inner = self.inner.borrow_mut();
        inner.chooser.single_copy = single_copy;
        inner.team.domains = domains.into();
    }

    /// The board is this region of this endpoint's.
    pub(crate) fn keep_board(&self, key: RegionKey) {
        self.inner.borrow_mut().own_board = Some(key);
    }

    /// What a part of this group chooses by.
    pub(crate) fn chooser(&self) -> Chooser {
        self.inner.borrow().chooser.clone()
    }

    pub(crate) fn member(&self, rank: u32) -> Option<Member> {
        self.inner.borrow().members.get(rank as usize).copied()
    }

    /// This process's rank, from 0.
    pub fn rank(&self) -> u32 {
        self.inner.borrow().team.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.inner.borrow().team.size
    }

    /// The endpoint of this rank.
    pub fn endpoint(&self) -> &'e Endpoint {
        self.endpoint
    }

    /// A rank, as a peer of the endpoint.
    pub fn peer(&self, rank: u32) -> Option<lmt::PeerId> {
        self.inner.borrow().members.get(rank as usize).map(|member| member.peer)
    }

    /// Does this rank's part of an operation, and waits for its end.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn run(&self, operation: Operation<'_>) -> Result<(), GroupError> {
        let number = self.start(operation)?;
        let guard = DrainOnUnwind { group: self, number };
        let result = self.wait(number);
        std::mem::forget(guard);
        result
    }

    /// Calls `body` with a scope in which operations run side by side and beside other
    /// work; all have ended when it returns. On all ranks they begin in the same order.
    pub fn scope<'env, F, T>(&'env self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        crate::scope::with_scope(self, body)
    }

    /// Which algorithm a call would take if none is named, and why, in words.
    ///
    /// # Errors
    /// What the call would end with at once.
    pub fn explain(&self, operation: &Operation<'_>) -> Result<(Algorithm, String), GroupError> {
        let inner = &mut *self.inner.borrow_mut();
        let call = call_of(operation, &inner.team).map_err(GroupError::Arguments)?;
        let (choice, passed_over) = inner.chooser.explain(&call, operation.is_listed);
        let told: Vec<String> = [choice.reason.into_owned()].into_iter().chain(passed_over).collect();
        Ok((choice.algorithm, told.join("; ")))
    }

    /// Moves calls that are under way forward, without waiting; so do [`Scope`]'s
    /// requests. Returns whether anything moved.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn progress(&self) -> Result<bool, GroupError> {
        let inner = &mut *self.inner.borrow_mut();
        with_engine(self.endpoint, |engine| {
            let moved = engine.progress()?;
            inner.looks = inner.looks.wrapping_add(1);
            if inner.looks.is_multiple_of(DEATHS_EVERY) {
                inner.look_for_deaths(engine);
            }
            Ok(inner.advance(engine) || moved)
        })
    }

    /// Begins an operation whose memory the caller keeps lent until it has ended.
    pub(crate) fn start(&self, operation: Operation<'_>) -> Result<u32, GroupError> {
        let number = self.inner.borrow_mut().enter(operation)?;
        // A reduction of the caller's may panic in what follows, here as in `run`.
        let guard = DrainOnUnwind { group: self, number };
        let inner = &mut *self.inner.borrow_mut();
        with_engine(self.endpoint, |engine| inner.advance(engine));
        std::mem::forget(guard);
        Ok(number)
    }

    /// The result of a call if it has ended.
    pub(crate) fn fetch(&self, number: u32) -> Option<Result<(), GroupError>> {
        self.inner.borrow_mut().fetch(number)
    }

    /// Waits for a call, and takes its result.
    pub(crate) fn wait(&self, number: u32) -> Result<(), GroupError> {
        let inner = &mut *self.inner.borrow_mut();
        with_engine(self.endpoint, |engine| {
            let mut patience = Patience::new(engine, inner.team.size);
            loop {
                let moved = inner.advance(engine);
                if let Some(result) = inner.fetch(number) {
                    return result;
                }
                let moved = engine.progress_hastily()? || moved;
                patience.wait(moved, inner, engine)?;
            }
        })
    }

    /// Breaks the group: this rank leaves calls that others are in.
    pub(crate) fn abandon(&self) {
        let inner = &mut *self.inner.borrow_mut();
        let rank = inner.team.rank;
        with_engine(self.endpoint, |engine| {
            inner.fail(GroupError::Failed { rank }, Broken::Failed(rank), engine)
        });
    }
}

/// Sees to it that unwinding does not release memory in use.
struct DrainOnUnwind<'a, 'e> {
    group: &'a Group<'e>,
    number: u32,
}

impl Drop for DrainOnUnwind<'_, '_> {
    fn drop(&mut self) {
        self.group.abandon();
        let _ended = self.group.wait(self.number);
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.inner.get_mut().own_board {
            // Those that have it mapped keep it. Refused only in a forked child.
            let _destroyed = with_engine(self.endpoint, |engine| engine.destroy_region(&key));
        }
    }
}

impl Inner {
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
    fn enter(&mut self, operation: Operation<'_>) -> Result<u32, GroupError> {
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
            self.programs.swap(0, at);
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
    fn advance(&mut self, engine: &mut Engine) -> bool {
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
        match Running::begin(number, call, program, places, operation.reduction, signature, &mut context) {
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
        let board = &self.board;
        let furthest = (0..self.team.size).map(|rank| board.ended_of(rank)).max_by_key(|&ended| ahead(ended));
        self.ended_by_all = furthest.unwrap_or(number);
        ahead(self.ended_by_all) < crate::layout::DEPTH
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

    fn fetch(&mut self, number: u32) -> Option<Result<(), GroupError>> {
        let slot = self.calls.iter_mut().find(|slot| slot.number == number)?;
        if !matches!(slot.state, State::Ended(_)) {
            return None;
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
        for at in 0..self.calls.len() {
            let mut context = Context {
                engine,
                board: &self.board,
                members: &self.members,
                rank: self.team.rank,
                tag: self.tag,
            };
            match &mut self.calls[at].state {
                State::Running(running) => running.give_up(&mut context),
                State::Waiting(_) => {}
                State::Ended(_) | State::Fetched => continue,
            }
            self.part_with(at, engine);
            self.calls[at].state = State::Ended(Err(error.clone()));
        }
    }

    /// Waits until no living rank can be using this rank's memory for a call, at most a
    /// second.
    fn part_with(&self, at: usize, engine: &mut Engine) {
        let State::Running(running) = &self.calls[at].state else { return };
        if !running.is_exposed() {
            return;
        }
        let until = Instant::now() + PARTING;
        let uses = |rank: u32, engine: &Engine| {
            let peer = self.members[rank as usize].peer;
            running.may_be_used_by(rank, &self.board) && engine.peer_error(peer).is_none()
        };
        let others = || (0..self.team.size).filter(|&rank| rank != self.team.rank);
        while others().any(|rank| uses(rank, engine)) && Instant::now() < until {
            // What it says does not matter: a forked child has nothing to part with.
            let _slept = engine.nap(Duration::from_micros(200));
            let _moved = engine.progress();
        }
    }

    /// A rank that has died and from which a call still needs something, or that has
    /// not begun it.
    fn missed(&self, engine: &Engine) -> Option<u32> {
        let needs = |rank: u32| {
            self.calls.iter().any(|slot| match &slot.state {
                State::Running(running) => !running.has_been_ended_by(rank, &self.board),
                State::Waiting(_) => true,
                State::Ended(_) | State::Fetched => false,
            })
        };
        let gone = |&rank: &u32| engine.peer_error(self.members[rank as usize].peer).is_some();
        (0..self.team.size).filter(gone).find(|&rank| needs(rank))
    }
}

impl Watched for Inner {
    fn board(&self) -> &Board {
        &self.board
    }

    fn has_news(&mut self, engine: &mut Engine) -> bool {
        self.advance(engine)
    }

    fn look_for_deaths(&mut self, engine: &mut Engine) {
        if self.error.is_none()
            && let Some(rank) = self.missed(engine)
        {
            self.fail(GroupError::Died { rank }, Broken::Died(rank), engine);
        }
    }
}

fn empty_call(team: &Team) -> Call {
    Call {
        kind: Kind::Barrier,
        rank: team.rank,
        size: team.size,
        root: 0,
        bytes: 0,
        blocks: crate::call::Blocks::Equal(0),
        input_blocks: crate::call::Blocks::Equal(0),
        in_place: false,
        element_bytes: 1,
        domains: Rc::from([]),
        slot_bytes: 0,
    }
}
