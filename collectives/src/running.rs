//! One call under way: its program, and how far this rank is in it.
#![forbid(unsafe_code)]

use std::rc::Rc;
use std::time::Instant;

use lmt_core::buffer::{Access, Buffer};
use lmt_core::engine::{
    Engine, Label, OperationError, PeerId, RequestId, SendMode, Source, Space, TagMatch, Wanted,
};
use lmt_core::identity::EndpointId;
use lmt_core::region::{Protection, RegionKey};

use crate::algorithm::Kind;
use crate::board::Board;
use crate::call::{Block, Blocks, Call};
use crate::error::GroupError;
use crate::lent::Places;
use crate::meeting::Meeting;
use crate::program::{Action, Place, Program, Remote, Span};
use crate::reduction::{Panic, Reduction};
use crate::signature::{Said, Signature};
use crate::words::Notice;

/// Points of a call on the board: a rank has arrived, then come the program's own,
/// counted from there, and it has ended.
const ARRIVED: u32 = 1;
const ENDED: u32 = u32::MAX;

/// Messages of collective calls meet no others.
pub(crate) const SPACE: Space = match Space::new(3) {
    Some(space) => space,
    None => panic!("there are four spaces"),
};

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
    /// It meets the others.
    Meeting(Meeting),
    /// In this step of the program.
    Step(usize),
    /// At its end.
    Over,
}

/// A copy or a message under way.
#[derive(Debug)]
struct Open {
    request: RequestId,
    rank: u32,
    what: &'static str,
    /// Of a receive: how long the message must be.
    exactly: Option<u64>,
}

/// A call's place on the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Its number in its group.
    pub number: u32,
    /// Where this rank's slot of it begins.
    pub slot: u64,
}

/// One call under way.
pub(crate) struct Running {
    /// The call's number in its group.
    pub number: u32,
    call: Rc<Call>,
    program: Rc<Program>,
    places: Places,
    reduction: Option<Reduction>,
    signature: Signature,
    stage: Stage,
    regions: Vec<RegionKey>,
    open: Vec<Open>,
    awaited: Vec<(u32, u32)>,
    /// Actions of this step for which there was no room.
    put_off: Vec<usize>,
    /// Whether others were told something since the last look, which is news to them.
    told: bool,
    /// What this rank's result is, though the call went its way: its own arguments
    /// were wrong.
    pub wrong: Option<GroupError>,
    /// What the caller's own reduction has panicked with.
    pub panic: Option<Panic>,
}

impl Running {
    /// Begins a call: what comes before the meeting is done, and others can see that
    /// this rank has come.
    ///
    /// # Errors
    /// The endpoint refuses, or the program does not fit the memory.
    pub fn begin(
        turn: Turn,
        call: Rc<Call>,
        program: Rc<Program>,
        places: Places,
        reduction: Option<Reduction>,
        signature: Signature,
        context: &mut Context<'_>,
    ) -> Result<Self, GroupError> {
        let Turn { number, slot } = turn;
        context.board.place_slot(number, slot);
        let mut running = Self {
            number,
            call,
            program,
            places,
            reduction,
            signature,
            stage: Stage::Meeting(Meeting::new(context.board, number, signature.hash)),
            told: false,
            regions: Vec::new(),
            open: Vec::new(),
            awaited: Vec::new(),
            put_off: Vec::new(),
            wrong: None,
            panic: None,
        };
        match running.arrive(context) {
            Ok(()) => Ok(running),
            Err(error) => {
                running.take_back(context);
                Err(error)
            }
        }
    }

    fn arrive(&mut self, context: &mut Context<'_>) -> Result<(), GroupError> {
        let program = Rc::clone(&self.program);
        for action in &program.before {
            self.begin_action(action, context)?;
        }
        self.list_blocks(context.board);
        let notice = Notice { call: self.signature.words, regions: self.expose(context.engine)? };
        context.board.show(self.number, self.signature.hash, &notice);
        context.board.publish(self.number, ARRIVED);
        self.told = true;
        for action in program.early.iter().flatten() {
            self.begin_action(action, context)?;
        }
        Ok(())
    }

    /// Shows where this rank's blocks are and how long: the forms with lists compare
    /// lengths even where a program needs no table.
    fn list_blocks(&self, board: &Board) {
        let Call { kind, rank, root, .. } = *self.call;
        let blocks = match kind {
            Kind::Alltoall if !self.call.in_place => &self.call.input_blocks,
            Kind::Scatter | Kind::Gather if rank != root => return,
            Kind::Alltoall | Kind::Allgather | Kind::Scatter | Kind::Gather => &self.call.blocks,
            _ => return,
        };
        if matches!(blocks, Blocks::Equal(_)) {
            return;
        }
        for rank in 0..self.call.size {
            board.show_block(self.number, rank, blocks.of(rank));
        }
    }

    /// Whether what others list for this rank is as long as this rank says.
    fn check_tables(&self, context: &Context<'_>) -> Result<(), GroupError> {
        let Call { kind, rank, root, .. } = *self.call;
        let of = |other: u32, ours_bytes: u64| {
            let theirs_bytes = context.board.shown_block(other, self.number, rank).bytes;
            if theirs_bytes == ours_bytes {
                return Ok(());
            }
            Err(GroupError::Length { rank: other, theirs_bytes, ours_bytes })
        };
        match (&self.call.blocks, kind) {
            (Blocks::Equal(_), _) => Ok(()),
            (Blocks::Listed(_), Kind::Scatter | Kind::Gather) if rank != root => of(root, self.call.bytes),
            (Blocks::Listed(_), Kind::Alltoall) => {
                (0..self.call.size).try_for_each(|other| of(other, self.call.blocks.of(other).bytes))
            }
            _ => Ok(()),
        }
    }

    /// Declares what others may reach.
    fn expose(&mut self, engine: &mut Engine) -> Result<[(u64, u64); 3], GroupError> {
        let exposed = self.program.exposed;
        let mut regions = [(0, 0); 3];
        for (at, (wanted, place)) in
            [(exposed.input, Place::Input), (exposed.output, Place::Output), (exposed.work, Place::Work)]
                .into_iter()
                .enumerate()
        {
            // The input of a reduction's root that is in place is its output; the others
            // need not know that it is.
            let is_output = self.call.in_place && self.call.kind == Kind::Reduce;
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
            let key = engine.declare_region(whole, protection)?;
            self.regions.push(key);
            regions[at] = (key.handle(), bytes);
        }
        Ok(regions)
    }

    fn part(&mut self, span: Span, access: Access) -> Result<Buffer, GroupError> {
        self.places.part(span, access).ok_or_else(|| self.no_memory())
    }

    fn no_memory(&self) -> GroupError {
        GroupError::Arguments(format!("this rank's memory does not fit what {} does with it", self.call.kind))
    }

    /// Goes on as far as possible without waiting. Returns whether anything moved, or
    /// others were told something.
    ///
    /// # Errors
    /// The call has failed; it must be given up ([`Running::give_up`]), unless it is
    /// over then, which the others know.
    pub fn advance(&mut self, context: &mut Context<'_>) -> Result<bool, GroupError> {
        let mut moved = false;
        loop {
            let is_done = match &mut self.stage {
                Stage::Over => return Ok(moved | std::mem::take(&mut self.told)),
                Stage::Meeting(meeting) => meeting.is_round_met(context.board),
                Stage::Step(_) => self.is_step_done(context)?,
            };
            if !is_done {
                return Ok(moved | std::mem::take(&mut self.told));
            }
            moved = true;
            self.next(context)?;
        }
    }

    /// From what is done to what comes next.
    fn next(&mut self, context: &mut Context<'_>) -> Result<(), GroupError> {
        let next_step = match &mut self.stage {
            Stage::Over => return Ok(()),
            Stage::Meeting(meeting) => {
                if meeting.begin_next_round(context.board) {
                    return Ok(());
                }
                if meeting.differs() {
                    let error = self.mismatch(context);
                    self.end(context);
                    return Err(error);
                }
                self.check_tables(context)?;
                0
            }
            Stage::Step(at) => *at + 1,
        };
        let program = Rc::clone(&self.program);
        let Some(step) = program.steps.get(next_step) else {
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
        let other = (0..self.call.size)
            .find(|&rank| {
                rank != context.rank && context.board.signature_of(rank, self.number) != self.signature.hash
            })
            .unwrap_or(context.rank);
        let mut theirs = Said(context.board.notice_of(other, self.number).call).to_string();
        let ours = Said(self.signature.words).to_string();
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
                if context.board.post(self.number, *at, &from) < from.total_bytes() {
                    return Err(self.no_memory());
                }
            }
            Action::Take { rank, at, into } => {
                let mut into = self.part(*into, Access::Write)?;
                if context.board.take(*rank, self.number, *at, &mut into) < into.total_bytes() {
                    // It has not told the truth about where its slot is.
                    return Err(GroupError::Failed { rank: *rank });
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
        let from = self.part(from, Access::Read)?;
        let mut into = self.part(into, Access::Write)?;
        if lmt_core::buffer::copy_between(&from, &mut into) == into.total_bytes() {
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
                Err(GroupError::Failed { rank: self.call.rank })
            }
        }
    }

    /// Where in a rank's memory: its region, and the offset there.
    fn locate(
        &self,
        rank: u32,
        remote: Remote,
        bytes: u64,
        context: &Context<'_>,
    ) -> Result<(RegionKey, u64), GroupError> {
        let (place, offset) = match remote {
            Remote::At(place, offset) => (place, offset),
            Remote::Listed { place, of } => {
                let Block { offset, bytes: theirs_bytes } = context.board.shown_block(rank, self.number, of);
                if theirs_bytes != bytes {
                    return Err(GroupError::Length { rank, theirs_bytes, ours_bytes: bytes });
                }
                (place, offset)
            }
        };
        let notice = context.board.notice_of(rank, self.number);
        let (handle, region_bytes) = notice.regions[match place {
            Place::Input => 0,
            Place::Output => 1,
            Place::Work => 2,
        }];
        Ok((RegionKey::new(context.members[rank as usize].id, handle, region_bytes), offset))
    }

    fn get_or_put(
        &mut self,
        rank: u32,
        remote: Remote,
        local: Span,
        is_get: bool,
        context: &mut Context<'_>,
    ) -> Result<bool, GroupError> {
        let (key, offset) = self.locate(rank, remote, local.bytes, context)?;
        if local.bytes == 0 {
            return Ok(true);
        }
        let what = if is_get { "reading from" } else { "writing to" };
        let begun = if is_get {
            let into = self.part(local, Access::Write)?;
            context.engine.get(&key, offset, into)
        } else {
            let from = self.part(local, Access::Read)?;
            // That this rank has come was said; now the engine looks at the region.
            context.board.fence_of_leaving();
            context.engine.put(&key, offset, from)
        };
        self.keep(begun, rank, what, None)
    }

    fn send(&mut self, rank: u32, from: Span, context: &mut Context<'_>) -> Result<bool, GroupError> {
        let buffer = self.part(from, Access::Read)?;
        let label = Label { tag: self.tag(context), space: SPACE, immediate: None };
        let peer = context.members[rank as usize].peer;
        let begun = context.engine.send(peer, label, buffer, SendMode::Standard);
        self.keep(begun, rank, "sending to", None)
    }

    fn receive(&mut self, rank: u32, into: Span, context: &mut Context<'_>) -> Result<bool, GroupError> {
        let buffer = self.part(into, Access::Write)?;
        let wanted = Wanted { space: SPACE, tags: TagMatch::exactly(self.tag(context)) };
        let peer = context.members[rank as usize].peer;
        let begun = context.engine.receive(Source::Peer(peer), wanted, buffer);
        self.keep(begun, rank, "receiving from", Some(into.bytes))
    }

    /// The messages of one call between two ranks are told from those of others.
    fn tag(&self, context: &Context<'_>) -> u64 {
        context.tag << 24 | u64::from(self.number & 0xff_ffff)
    }

    /// Notes what has begun; false if there was no room.
    fn keep(
        &mut self,
        begun: Result<RequestId, OperationError>,
        rank: u32,
        what: &'static str,
        exactly: Option<u64>,
    ) -> Result<bool, GroupError> {
        match begun {
            Ok(request) => {
                self.open.push(Open { request, rank, what, exactly });
                Ok(true)
            }
            Err(OperationError::WouldBlock { .. }) => Ok(false),
            Err(source) => Err(GroupError::Transfer { what, rank, source }),
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
        let program = Rc::clone(&self.program);
        let mut put_off = std::mem::take(&mut self.put_off);
        // In their order: messages between two ranks must not overtake each other.
        while let Some(&first) = put_off.first() {
            if !self.begin_action(&program.steps[step][first], context)? {
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
                let _known = context.engine.give_up_peer(peer, own);
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
        let exposed = self.program.exposed;
        exposed.output || exposed.work
    }

    /// Its scratch memory, for the next.
    pub fn into_work(self) -> Vec<u8> {
        self.places.into_work()
    }
}

/// Takes the result of what has ended.
fn finish(open: &Open, engine: &mut Engine) -> Result<(), GroupError> {
    let (what, rank) = (open.what, open.rank);
    match engine.wait(open.request) {
        Ok(status) => match open.exactly {
            Some(ours_bytes) if status.bytes != ours_bytes => {
                Err(GroupError::Length { rank, theirs_bytes: status.bytes, ours_bytes })
            }
            _ => Ok(()),
        },
        Err(OperationError::Truncated { message_bytes, received_bytes, .. }) => {
            Err(GroupError::Length { rank, theirs_bytes: message_bytes, ours_bytes: received_bytes })
        }
        Err(source) => Err(GroupError::Transfer { what, rank, source }),
    }
}
