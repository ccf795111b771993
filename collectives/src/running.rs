//! One call, about to begin or in flight: its program, and how far this rank is in it.
#![forbid(unsafe_code)]

use std::rc::Rc;
use std::time::Instant;

use lmt_core::buffer::{Access, Buffer, copy_between, copy_between_past_caches};
use lmt_core::endpoint::{Engine, PeerId, RequestId};
use lmt_core::identity::EndpointId;
use lmt_core::region::{Protection, RegionKey};

use crate::algorithm::Kind;
use crate::board::Board;
use crate::call::{Blocks, Call};
use crate::domains::StreamsFrom;
use crate::entry_barrier::EntryBarrier;
use crate::error::GroupError;
use crate::lent::{Memory, Places};
use crate::operation::Operation;
use crate::plan::Plan;
use crate::program::{Action, Place, Span};
use crate::reduction::{Panic, Reduction};
use crate::signature::PostedSignature;
use crate::words::Notice;

mod transfers;

pub(crate) use transfers::SPACE;
use transfers::{Open, finish};

/// Points of a call on the board: a rank has arrived, then come the program's own,
/// counted from there, and it has ended.
const ARRIVED: u32 = 1;
const ENDED: u32 = u32::MAX;

/// A half of what a core's own cache has: with as much written as read it is full.
const HALF_CACHE_BYTES: u64 = 512 << 10;

/// One rank of a group, as this endpoint knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub peer: PeerId,
    pub id: EndpointId,
}

/// What a call needs to go on.
pub(crate) struct Context<'a> {
    pub engine: &'a mut Engine,
    pub board: &'a Board,
    pub members: &'a [Member],
    /// This rank.
    pub rank: u32,
    /// Tells the group's messages from those of others; 39 bits.
    pub tag: u64,
}

/// Where a call stands.
#[derive(Debug)]
enum Stage {
    /// It has not begun.
    Waiting,
    /// It meets the others.
    EntryBarrier(EntryBarrier),
    /// In this step of the program.
    Step(usize),
    /// At its end.
    Over,
}

/// One call, about to begin or in flight.
pub(crate) struct Running {
    /// The call's number in its group.
    pub number: u32,
    plan: Rc<Plan>,
    /// Where this rank's slot begins.
    slot: u64,
    places: Places,
    reduction: Option<Reduction>,
    stage: Stage,
    regions: Vec<RegionKey>,
    open: Vec<Open>,
    awaited: Vec<(u32, u32)>,
    /// Actions of this step for which there was no room.
    put_off: Vec<usize>,
    /// Whether others were told something since [`Self::take_told`].
    told: bool,
    /// Whether what it copies into its output goes past the caches.
    past_caches: bool,
    /// What this rank's result is, though the call went its way: its own arguments
    /// were wrong.
    pub wrong: Option<Box<GroupError>>,
    /// What the caller's own reduction has panicked with.
    pub panic: Option<Panic>,
}

impl Running {
    /// A call that has not begun, and has no memory yet.
    pub fn new(number: u32, plan: Rc<Plan>) -> Self {
        Self {
            number,
            plan,
            slot: 0,
            places: Places::default(),
            reduction: None,
            stage: Stage::Waiting,
            told: false,
            regions: Vec::new(),
            open: Vec::new(),
            awaited: Vec::new(),
            put_off: Vec::new(),
            past_caches: false,
            wrong: None,
            panic: None,
        }
    }

    /// Makes of a call that has ended another that has not begun, with the memory of its
    /// lists.
    pub fn renew(&mut self, number: u32, plan: Rc<Plan>) {
        (self.number, self.plan, self.stage, self.told) = (number, plan, Stage::Waiting, false);
        self.past_caches = false;
        (self.reduction, self.wrong, self.panic) = (None, None, None);
        self.regions.clear();
        self.open.clear();
        self.awaited.clear();
        self.put_off.clear();
    }

    /// Gives it the operation's memory.
    pub fn lend(&mut self, operation: Operation<'_>) {
        self.places.lend(operation.input.map(Memory::into_buffer), operation.output.map(Memory::into_buffer));
        self.reduction = operation.reduction;
    }

    /// Has what this rank copies into its output go past the caches if it is that much;
    /// never what is combined next.
    pub fn stream_from(&mut self, from: StreamsFrom) {
        let Plan { call, program, .. } = &*self.plan;
        // All write as much at once, but in a gather the root.
        let bytes = if call.kind == Kind::Gather { from.alone_bytes } else { from.together_bytes };
        self.past_caches = !call.kind.combines() && program.written_bytes >= bytes;
    }

    /// How much of its slot this rank uses.
    pub fn slot_bytes(&self) -> u64 {
        self.plan.program.slot_bytes
    }

    /// Whether so much is taken out of slots in this call that who reads them has let go of
    /// their lines by the next one: then the same lines again leave more of a shared cache to
    /// the rest. Where one rank posts, or two do, slots take little of it.
    pub fn fills_caches(&self) -> bool {
        let Call { kind, size, .. } = self.plan.call;
        let others = match kind {
            Kind::Broadcast | Kind::Scatter => return false,
            // Each reader takes its own part of what each rank posts.
            Kind::Alltoall => 1,
            _ => u64::from(size) - 1,
        };
        size > 2 && self.slot_bytes().saturating_mul(others) >= HALF_CACHE_BYTES
    }

    /// Begins the call, with this rank's slot from `slot` on and memory to be used as
    /// scratch: what comes before the meeting is done, and others can see that this rank
    /// has come.
    ///
    /// # Errors
    /// The endpoint refuses, or the program does not fit the memory.
    pub fn begin(
        &mut self,
        slot: u64,
        mut work: Vec<u8>,
        context: &mut Context<'_>,
    ) -> Result<(), GroupError> {
        work.resize(self.plan.program.work_bytes as usize, 0);
        self.places.lend_work(work);
        self.slot = slot;
        self.stage =
            Stage::EntryBarrier(EntryBarrier::new(context.board, self.number, self.plan.signature.hash));
        let arrived = self.arrive(context);
        if arrived.is_err() {
            self.take_back(context);
        }
        arrived
    }

    fn arrive(&mut self, context: &mut Context<'_>) -> Result<(), GroupError> {
        let plan = Rc::clone(&self.plan);
        for action in &plan.program.before {
            self.begin_action(action, context)?;
        }
        self.list_blocks(context.board);
        let notice = Notice { call: self.plan.signature.words, regions: self.expose(context.engine)? };
        // All words of a line at once: others look at it all the time, and each look takes
        // it away.
        context.board.place_slot(self.number, self.slot);
        context.board.show(self.number, self.plan.signature.hash, &notice);
        context.board.publish(self.number, ARRIVED);
        self.told = true;
        for action in plan.program.early.iter().flatten() {
            self.begin_action(action, context)?;
        }
        Ok(())
    }

    /// Shows where this rank's blocks are and how long: the forms with lists compare
    /// lengths even where a program needs no table.
    fn list_blocks(&self, board: &Board) {
        let Call { kind, rank, root, .. } = self.plan.call;
        let blocks = match kind {
            Kind::Alltoall if !self.plan.call.in_place => &self.plan.call.input_blocks,
            Kind::Scatter | Kind::Gather if rank != root => return,
            Kind::Alltoall | Kind::Allgather | Kind::Scatter | Kind::Gather => &self.plan.call.blocks,
            _ => return,
        };
        if matches!(blocks, Blocks::Equal(_)) {
            return;
        }
        for rank in 0..self.plan.call.size {
            board.show_block(self.number, rank, blocks.of(rank));
        }
    }

    /// Whether what others list for this rank is as long as this rank says.
    fn check_tables(&self, context: &Context<'_>) -> Result<(), GroupError> {
        let Call { kind, rank, root, .. } = self.plan.call;
        let of = |other: u32, ours_bytes: u64| {
            let theirs_bytes = context.board.shown_block(other, self.number, rank).bytes;
            if theirs_bytes == ours_bytes {
                return Ok(());
            }
            Err(GroupError::Length { rank: other, theirs_bytes, ours_bytes })
        };
        match (&self.plan.call.blocks, kind) {
            (Blocks::Equal(_), _) => Ok(()),
            (Blocks::Listed(_), Kind::Scatter | Kind::Gather) if rank != root => {
                of(root, self.plan.call.bytes)
            }
            (Blocks::Listed(_), Kind::Alltoall) => (0..self.plan.call.size)
                .try_for_each(|other| of(other, self.plan.call.blocks.of(other).bytes)),
            _ => Ok(()),
        }
    }

    /// Declares what others may reach.
    fn expose(&mut self, engine: &mut Engine) -> Result<[(u64, u64); 3], GroupError> {
        let exposed = self.plan.program.exposed;
        let mut regions = [(0, 0); 3];
        for (at, (wanted, place)) in
            [(exposed.input, Place::Input), (exposed.output, Place::Output), (exposed.work, Place::Work)]
                .into_iter()
                .enumerate()
        {
            // The input of a reduction's root that is in place is its output; the others
            // need not know that it is.
            let is_output = self.plan.call.in_place && self.plan.call.kind == Kind::Reduce;
            let place = if place == Place::Input && is_output { Place::Output } else { place };
            let bytes = self.places.bytes_of(place);
            if !wanted || bytes == 0 {
                continue;
            }
            let (access, protection) = match place {
                Place::Input => (Access::Read, Protection::READ),
                Place::Output | Place::Work => (Access::Write, Protection::READ_WRITE),
            };
            let whole = self.part(Span { place, offset: 0, bytes }, access)?;
            let key = engine.register_region(whole, protection)?;
            self.regions.push(key);
            regions[at] = (key.handle(), bytes);
        }
        Ok(regions)
    }

    fn part(&mut self, span: Span, access: Access) -> Result<Buffer, GroupError> {
        self.places.part(span, access).ok_or_else(|| self.no_memory())
    }

    fn no_memory(&self) -> GroupError {
        GroupError::Arguments(format!(
            "this rank's memory does not fit what {} does with it",
            self.plan.call.kind
        ))
    }

    /// Whether others were told something since this was last taken: then those that sleep
    /// are to be woken.
    pub fn take_told(&mut self) -> bool {
        std::mem::take(&mut self.told)
    }

    /// Goes on as far as possible without waiting. Returns whether anything moved.
    ///
    /// # Errors
    /// The call has failed; it must be given up ([`Running::give_up`]), unless it is
    /// over then, which the others know.
    pub fn advance(&mut self, context: &mut Context<'_>) -> Result<bool, GroupError> {
        let mut moved = false;
        loop {
            let is_done = match &mut self.stage {
                Stage::Waiting | Stage::Over => return Ok(moved),
                Stage::EntryBarrier(entry_barrier) => entry_barrier.is_round_complete(context.board),
                Stage::Step(_) => self.is_step_done(context)?,
            };
            if !is_done {
                return Ok(moved);
            }
            moved = true;
            self.next(context)?;
        }
    }

    /// From what is done to what comes next.
    fn next(&mut self, context: &mut Context<'_>) -> Result<(), GroupError> {
        let next_step = match &mut self.stage {
            Stage::Waiting | Stage::Over => return Ok(()),
            Stage::EntryBarrier(entry_barrier) => {
                if entry_barrier.begin_next_round(context.board) {
                    self.told = true;
                    return Ok(());
                }
                if entry_barrier.differs() {
                    let error = self.mismatch(context);
                    self.end(context);
                    return Err(error);
                }
                self.check_tables(context)?;
                0
            }
            Stage::Step(at) => *at + 1,
        };
        let plan = Rc::clone(&self.plan);
        let Some(step) = plan.program.steps.get(next_step) else {
            self.end(context);
            return Ok(());
        };
        self.stage = Stage::Step(next_step);
        for (at, action) in step.iter().enumerate() {
            // Behind one for which there is no room all wait: what comes after it in the
            // step may be a message that must not overtake it, or say that it is done.
            if !self.put_off.is_empty() || !self.begin_action(action, context)? {
                self.put_off.push(at);
            }
        }
        Ok(())
    }

    fn mismatch(&self, context: &Context<'_>) -> GroupError {
        let other = (0..self.plan.call.size)
            .find(|&rank| {
                rank != context.rank
                    && context.board.signature_of(rank, self.number) != self.plan.signature.hash
            })
            .unwrap_or(context.rank);
        let mut theirs = PostedSignature(context.board.notice_of(other, self.number).call).to_string();
        let ours = PostedSignature(self.plan.signature.words).to_string();
        if theirs == ours {
            theirs += " with another reduction, other lengths in its list, or in place where this one is not";
        }
        GroupError::Mismatch { rank: other, theirs, own_rank: context.rank, ours }
    }

    /// Begins, or does, one action; false if there is no room for it now.
    fn begin_action(&mut self, action: &Action, context: &mut Context<'_>) -> Result<bool, GroupError> {
        match action {
            Action::Publish(point) => {
                context.board.publish(self.number, ARRIVED + 1 + point);
                self.told = true;
            }
            Action::Await { rank, point } => self.awaited.push((*rank, ARRIVED + 1 + point)),
            Action::Copy { from, into } => self.copy(*from, *into)?,
            Action::CombineBefore { from, into } => self.combine(*from, *into, true)?,
            Action::CombineAfter { from, into } => self.combine(*from, *into, false)?,
            Action::Post { from, at } => {
                let from = self.part(*from, Access::Read)?;
                if context.board.post(self.slot, *at, &from) < from.total_bytes() {
                    return Err(self.no_memory());
                }
            }
            Action::Take { rank, at, into } => {
                let past_caches = self.past_caches && into.place == Place::Output;
                let mut into = self.part(*into, Access::Write)?;
                let taken = context.board.take(*rank, self.number, *at, &mut into, past_caches);
                if taken < into.total_bytes() {
                    // It has not told the truth about where its slot is.
                    return Err(GroupError::Failed { rank: *rank });
                }
            }
            Action::Hand { from, cell } => {
                let from = self.part(*from, Access::Read)?;
                if context.board.hand(self.number, *cell, &from) < from.total_bytes() {
                    return Err(self.no_memory());
                }
            }
            Action::Accept { cell, into } => {
                let mut into = self.part(*into, Access::Write)?;
                if context.board.accept(self.number, *cell, &mut into) < into.total_bytes() {
                    return Err(self.no_memory());
                }
            }
            Action::Get { rank, from, into } => return self.get_or_put(*rank, *from, *into, true, context),
            Action::Put { rank, from, into } => return self.get_or_put(*rank, *into, *from, false, context),
            Action::Send { rank, from } => return self.send(*rank, *from, context),
            Action::Receive { rank, into } => return self.receive(*rank, *into, context),
        }
        Ok(true)
    }

    fn copy(&mut self, from: Span, into: Span) -> Result<(), GroupError> {
        let past_caches = self.past_caches && into.place == Place::Output;
        let from = self.part(from, Access::Read)?;
        let mut into = self.part(into, Access::Write)?;
        let copy = if past_caches { copy_between_past_caches } else { copy_between };
        if copy(&from, &mut into) == into.total_bytes() {
            return Ok(());
        }
        Err(self.no_memory())
    }

    fn combine(&mut self, from: Span, into: Span, from_is_left: bool) -> Result<(), GroupError> {
        let Some(reduction) = &self.reduction else { return Err(self.no_memory()) };
        match self.places.combine(from, into, from_is_left, reduction) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.no_memory()),
            Err(panic) => {
                self.panic = Some(panic);
                Err(GroupError::Failed { rank: self.plan.call.rank })
            }
        }
    }

    /// Whether all of the step has ended; begins what there was no room for.
    fn is_step_done(&mut self, context: &mut Context<'_>) -> Result<bool, GroupError> {
        let number = self.number;
        let board = context.board;
        self.awaited.retain(|&(rank, point)| board.point_of(rank, number).is_none_or(|at| at < point));
        let mut at = 0;
        while let Some(open) = self.open.get(at) {
            if context.engine.is_done(open.request) {
                let open = self.open.swap_remove(at);
                finish(&open, context.engine)?;
            } else {
                at += 1;
            }
        }
        if !self.put_off.is_empty() {
            self.begin_put_off(context)?;
        }
        Ok(self.awaited.is_empty() && self.open.is_empty() && self.put_off.is_empty())
    }

    fn begin_put_off(&mut self, context: &mut Context<'_>) -> Result<(), GroupError> {
        let Stage::Step(step) = self.stage else { return Ok(()) };
        let plan = Rc::clone(&self.plan);
        let mut put_off = std::mem::take(&mut self.put_off);
        // In their order: messages between two ranks must not overtake each other.
        while let Some(&first) = put_off.first() {
            if !self.begin_action(&plan.program.steps[step][first], context)? {
                break;
            }
            put_off.remove(0);
        }
        self.put_off = put_off;
        Ok(())
    }

    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    fn end(&mut self, context: &mut Context<'_>) {
        self.take_back(context);
        context.board.publish(self.number, ENDED);
        self.told = true;
        self.stage = Stage::Over;
    }

    /// No copy of others begins any more in this call.
    fn take_back(&mut self, context: &mut Context<'_>) {
        for key in self.regions.drain(..) {
            // Refused only in a forked child, which nobody reaches.
            let _destroyed = context.engine.destroy_region(&key);
        }
    }

    /// Has what this rank has begun end as soon as it can, and no copy of others begin.
    pub fn cancel(&mut self, context: &mut Context<'_>) {
        for open in &self.open {
            let _forked = context.engine.cancel(open.request);
        }
        self.take_back(context);
    }

    /// What this rank has begun and not ended.
    pub fn requests(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.open.iter().map(|open| open.request)
    }

    /// Ends a call that was cancelled without its result: what this rank has begun is
    /// waited for until then, and the others can see that it is done with their memory.
    /// Ranks that have not ended a matched message with this one by then, because they are
    /// stopped, are given up, if nothing but the group's `own` requests names them.
    pub fn give_up(&mut self, context: &mut Context<'_>, until: Instant, own: &[RequestId]) {
        for open in self.open.drain(..) {
            if context.engine.wait_until(open.request, Some(until)).is_none() {
                let peer = context.members[open.rank as usize].peer;
                // Refused where it was given up for a message before, or is needed.
                let _known = context.engine.abandon_peer(peer, own);
                let _ended = context.engine.wait(open.request);
            }
        }
        self.end(context);
    }

    /// Whether this call needs nothing of a rank any more.
    pub fn has_been_ended_by(&self, rank: u32, board: &Board) -> bool {
        board.point_of(rank, self.number) == Some(ENDED)
    }

    /// Whether a rank may still be reading or writing this rank's memory for this call,
    /// as far as the board says; once this call was given up.
    pub fn may_be_used_by(&self, rank: u32, board: &Board) -> bool {
        // The regions were taken back; now this rank looks who has come.
        board.fence_of_leaving();
        board.point_of(rank, self.number).is_some_and(|point| point != ENDED)
    }

    /// Whether others were ever allowed to.
    pub fn is_exposed(&self) -> bool {
        let exposed = self.plan.program.exposed;
        exposed.output || exposed.work
    }

    /// Its memory and reduction are not lent any more. Returns what was scratch, for the next.
    pub fn take_memory(&mut self) -> Vec<u8> {
        (self.reduction, self.panic) = (None, None);
        std::mem::take(&mut self.places).into_work()
    }
}
