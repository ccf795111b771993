//! [`Group`]: ranks that do things together.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use lmt::{Endpoint, EndpointId};
use lmt_core::region::RegionKey;

use crate::algorithm::Algorithm;
use crate::backoff::WaitBackoff;
use crate::board::Board;
use crate::calls::Calls;
use crate::check::Team;
use crate::choice::Chooser;
use crate::copies;
use crate::domains::{Place, StreamsFrom};
use crate::engine::with_engine;
use crate::error::GroupError;
use crate::operation::Operation;
use crate::others;
use crate::running::Member;

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
/// broken: whatever is in flight on others ends in an error that names the rank, and so
/// does every later call. A new group of the living takes its place. A call that has
/// failed returns when the other ranks are known to have left this rank's memory; one
/// that does not say so for a second, because it is stopped, may be writing to it still.
/// If a message with it is in flight then, the endpoint forgets it as
/// [`lmt::Endpoint::remove_peer`] does.
///
/// # Threads
/// Whoever uses the endpoint uses the group: one thread at a time. Calls that are under
/// way move in every wait and [`Group::progress`] of all groups of the endpoint, which
/// move its messages too; the endpoint's own waits for messages move no calls. A
/// reduction of the caller's must not use its group or endpoint.
pub struct Group<'e> {
    endpoint: &'e Endpoint,
    /// The endpoint's, which cannot be asked while its engine is in use.
    id: EndpointId,
    inner: Rc<RefCell<Calls>>,
}

impl<'e> Group<'e> {
    pub(crate) fn new(
        endpoint: &'e Endpoint,
        board: Board,
        members: Vec<Member>,
        team: Team,
        tag: u64,
        chooser: Chooser,
    ) -> Self {
        let inner = Rc::new(RefCell::new(Calls::new(board, members, team, tag, chooser)));
        let id = endpoint.id();
        others::enter(id, &inner);
        Self { endpoint, id, inner }
    }

    /// What the ranks have told each other: whether all may reach into each other's
    /// memory, and where they are.
    pub(crate) fn settle(&self, single_copy: bool, places: &[Place], streams_from: StreamsFrom) {
        self.inner.borrow_mut().settle(single_copy, places, streams_from);
    }

    /// The board is this region of this endpoint's.
    pub(crate) fn keep_board(&self, key: RegionKey) {
        self.inner.borrow_mut().keep_board(key);
    }

    /// What a part of this group chooses by.
    pub(crate) fn chooser(&self) -> Chooser {
        self.inner.borrow().chooser().clone()
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        self.inner.borrow().members().to_vec()
    }

    pub(crate) fn member(&self, rank: u32) -> Option<Member> {
        self.inner.borrow().member(rank)
    }

    /// This process's rank, from 0.
    pub fn rank(&self) -> u32 {
        self.inner.borrow().rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.inner.borrow().size()
    }

    /// The endpoint of this rank.
    pub fn endpoint(&self) -> &'e Endpoint {
        self.endpoint
    }

    /// A rank, as a peer of the endpoint.
    pub fn peer(&self, rank: u32) -> Option<lmt::PeerId> {
        self.inner.borrow().member(rank).map(|member| member.peer)
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

    /// Which algorithm a call would take if none is named, and why, in words; where it
    /// copies out of or into others' memory, by which mechanism, too.
    ///
    /// # Errors
    /// What the call would end with at once.
    pub fn explain(&self, operation: &Operation<'_>) -> Result<(Algorithm, String), GroupError> {
        let (choice, passed_over) = self.inner.borrow_mut().explain(operation)?;
        let copies = self.inner.borrow().copies(operation, choice.algorithm)?;
        let ways = with_engine(self.endpoint, |engine| copies::ways(&copies, engine));
        let reason = [choice.reason.into_owned()];
        let told: Vec<String> = reason.into_iter().chain(passed_over).chain(ways).collect();
        Ok((choice.algorithm, told.join("; ")))
    }

    /// Moves calls that are in flight forward, without waiting; so do [`crate::Scope`]'s
    /// requests. Returns whether anything moved; where call after call finds nothing, others
    /// are let run ([`Endpoint::progress`]).
    ///
    /// # Errors
    /// This is a forked child.
    pub fn progress(&self) -> Result<bool, GroupError> {
        let moved = {
            let inner = &mut *self.inner.borrow_mut();
            with_engine(self.endpoint, |engine| {
                let moved = engine.progress()?;
                let moved = inner.poll_and_advance(engine) | moved;
                if !moved {
                    engine.yield_if_idle();
                }
                Ok::<_, GroupError>(moved)
            })?
        };
        self.resume();
        Ok(moved | with_engine(self.endpoint, |engine| others::advance(self.id, engine)))
    }

    /// Begins an operation whose memory the caller keeps lent until it has ended.
    pub(crate) fn start(&self, operation: Operation<'_>) -> Result<u32, GroupError> {
        let number = {
            let inner = &mut *self.inner.borrow_mut();
            let number = inner.enter(operation)?;
            with_engine(self.endpoint, |engine| inner.advance(engine));
            number
        };
        self.resume();
        Ok(number)
    }

    /// Goes on with a panic of the caller's own reduction: its call and all others of the
    /// group have ended, and nothing is borrowed.
    fn resume(&self) {
        let panic = self.inner.borrow_mut().take_panic();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// The result of a call if it has ended.
    pub(crate) fn fetch(&self, number: u32) -> Option<Result<(), GroupError>> {
        self.inner.borrow_mut().fetch(number)
    }

    /// Waits for a call, and takes its result.
    pub(crate) fn wait(&self, number: u32) -> Result<(), GroupError> {
        let result = self.wait_quietly(number);
        self.resume();
        result
    }

    fn wait_quietly(&self, number: u32) -> Result<(), GroupError> {
        let inner = &mut *self.inner.borrow_mut();
        with_engine(self.endpoint, |engine| {
            let mut backoff = WaitBackoff::new(engine, inner.size());
            loop {
                let moved = inner.advance(engine);
                if let Some(result) = inner.fetch(number) {
                    return result;
                }
                let mut moved = engine.progress()? || moved;
                if !moved && backoff.is_time_for_others() {
                    moved = others::advance(self.id, engine);
                }
                backoff.wait(moved, inner, engine)?;
            }
        })
    }

    /// Waits for several calls, whatever becomes of them; then goes on with a panic of
    /// the caller's own reduction, if there was one.
    pub(crate) fn wait_all(&self, numbers: impl IntoIterator<Item = u32>) {
        let mut panic = None;
        for number in numbers {
            let waited = catch_unwind(AssertUnwindSafe(|| drop(self.wait(number))));
            panic = panic.or(waited.err());
        }
        if let Some(panic) = panic.filter(|_| !std::thread::panicking()) {
            resume_unwind(panic);
        }
    }

    /// Breaks the group: this rank leaves calls that others are in.
    pub(crate) fn abandon(&self) {
        let inner = &mut *self.inner.borrow_mut();
        with_engine(self.endpoint, |engine| inner.give_up(engine));
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
        let mut inner = self.inner.borrow_mut();
        with_engine(self.endpoint, |engine| inner.leave(engine));
    }
}
