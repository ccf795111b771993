//! Reads and writes: by messages where nothing of this process reaches the peer's
//! memory, and what is told of them at the other end.

use lmt::buffer::Buffer;
use lmt::{Direction, PeerId};

use super::super::Surroundings;
use super::super::completion::Entry;
use super::super::endpoint::Endpoint;
use super::super::finish::Outlet;
use super::super::remote::{Remote, flags_of};
use super::asking::{Asked, Awaited, Told};
use super::wire::{HEAD_BYTES, PIECE_BYTES, Request, What};
use crate::abi::Errno;
use crate::lend::{Kept, Owned};
use crate::log::{self, Subsystem};

/// Pieces of one read or write that are under way at a time.
const WINDOW: u32 = 8;

/// A read or a write, until its end is told.
#[derive(Debug)]
pub struct Errand {
    /// Where in the peer's memory, and what is told of it.
    pub remote: Remote,
    /// Whose memory it is: the number may mean somebody else before the errand ends.
    peer: PeerId,
    /// Which of the two.
    pub direction: Direction,
    /// The memory here.
    kept: Kept,
    /// What nobody else keeps, of a write that was injected.
    #[expect(dead_code, reason = "it is kept, not looked at")]
    owned: Option<Owned>,
    /// What the peer's queue tells when it is done.
    data: Option<u32>,
    begun_bytes: u64,
    has_begun: bool,
    pending: u32,
    error: Option<Errno>,
}

impl Errand {
    /// One that has not begun.
    pub fn new(
        remote: Remote,
        peer: PeerId,
        direction: Direction,
        buffer: &Buffer,
        owned: Option<Owned>,
        data: Option<u32>,
    ) -> Self {
        let kept = Kept::of(buffer);
        let (begun_bytes, has_begun, pending, error) = (0, false, 0, None);
        Self { remote, peer, direction, kept, owned, data, begun_bytes, has_begun, pending, error }
    }

    /// Whether anybody knows its context, to whom its end can be told.
    pub const fn has_context(&self) -> bool {
        self.remote.context.is_some()
    }

    /// Copies from or to memory of this endpoint's own domain, as its owner does for who
    /// asks by messages.
    fn copy_here(&self, around: &mut Surroundings) -> Result<(), Errno> {
        let (exposed, touch) = (&around.exposed, &mut around.touch);
        let Remote { key, offset, .. } = self.remote;
        let (whole_bytes, mut start, mut piece) = (self.kept.total_bytes(), 0, Vec::new());
        loop {
            let rest_bytes = whole_bytes - start;
            let bytes = rest_bytes.min(PIECE_BYTES as u64) as usize;
            let there = (key, offset.checked_add(start).ok_or(Errno::INVAL)?);
            match self.direction {
                Direction::Get => {
                    piece.clear();
                    exposed.read(touch, there, rest_bytes, bytes, &mut piece)?;
                    self.kept.write(touch, start, &piece)?;
                }
                Direction::Put => {
                    piece.resize(bytes, 0);
                    self.kept.read(touch, start, &mut piece)?;
                    exposed.write(touch, there, rest_bytes, &piece)?;
                }
            }
            start += bytes as u64;
            if start == whole_bytes {
                return Ok(());
            }
        }
    }

    fn is_begun(&self) -> bool {
        self.error.is_some() || (self.has_begun && self.begun_bytes == self.kept.total_bytes())
    }
}

/// A part of an errand that a peer is asked for.
#[derive(Debug)]
pub struct Piece {
    /// The errand's number.
    errand: usize,
    /// Where in the errand's memory it begins.
    start: u64,
}

impl Endpoint {
    /// Whether a peer's memory is known to be out of reach.
    #[inline]
    pub(in super::super) fn is_out_of_reach(&self, peer: PeerId) -> bool {
        !self.service.out_of_reach.is_empty() && self.service.out_of_reach.contains(&peer)
    }

    /// Nothing here reaches the memory of an errand's peer: it is asked from now on.
    pub(in super::super) fn note_out_of_reach(&mut self, errand: &Errand) {
        if self.service.out_of_reach.insert(errand.peer) {
            let what = "a peer's memory is out of reach; what concerns it goes by messages, which is slower";
            log::warn(Subsystem::EpData, format_args!("{what}"));
        }
    }

    /// The memory is this domain's own: nobody is asked.
    pub(in super::super) fn copy_here(&mut self, around: &mut Surroundings, errand: Errand) {
        match errand.copy_here(around) {
            Ok(()) => self.copied(around, errand),
            Err(error) => self.told_of(around, &errand, Err(error)),
        }
    }

    /// The peer is asked to read or write its memory itself.
    pub(in super::super) fn carry_by_messages(&mut self, around: &mut Surroundings, errand: Errand) {
        let errand = self.service.errands.insert(errand);
        self.carry_on(around, errand);
    }

    /// A read or a write is done without messages.
    pub(in super::super) fn copied(&mut self, around: &mut Surroundings, mut errand: Errand) {
        (errand.has_begun, errand.begun_bytes) = (true, errand.kept.total_bytes());
        if errand.data.is_none() {
            return self.told_of(around, &errand, Ok(()));
        }
        let errand = self.service.errands.insert(errand);
        self.carry_on(around, errand);
    }

    /// A read or a write has ended.
    pub(in super::super) fn told_of(
        &mut self,
        around: &mut Surroundings,
        errand: &Errand,
        done: Result<(), Errno>,
    ) {
        let Errand { remote, direction, .. } = errand;
        let entry = Entry::bare(remote.context.unwrap_or_default(), flags_of(*direction));
        let outlet = Outlet::Remote(*direction);
        self.settle(around, outlet, entry, remote.reports, errand.has_context(), done);
    }

    /// Asks for as many pieces as may be under way, and ends the errand when all are
    /// done.
    fn carry_on(&mut self, around: &mut Surroundings, number: usize) {
        while let Some(errand) = self.service.errands.get_mut(number) {
            if errand.is_begun() || errand.pending >= WINDOW {
                break;
            }
            match self.ask_for_piece(around, number) {
                Ok(()) => {}
                Err(Errno::AGAIN) => return self.stall(number),
                Err(error) => self.errand_failed(number, error),
            }
        }
        let Some(errand) = self.service.errands.get_mut(number) else { return };
        if errand.pending > 0 || !errand.is_begun() {
            return;
        }
        if errand.error.is_none() && errand.data.is_some() {
            match self.tell(around, number) {
                Ok(true) => {}
                Ok(false) => return,
                Err(Errno::AGAIN) => return self.stall(number),
                Err(error) => self.errand_failed(number, error),
            }
        }
        if let Some(errand) = self.service.errands.remove(number) {
            self.told_of(around, &errand, errand.error.map_or(Ok(()), Err));
        }
    }

    fn errand_failed(&mut self, number: usize, error: Errno) {
        if let Some(errand) = self.service.errands.get_mut(number) {
            errand.error.get_or_insert(error);
        }
    }

    fn stall(&mut self, number: usize) {
        if !self.service.stalled.contains(&number) {
            self.service.stalled.push(number);
        }
    }

    /// Goes on with errands for which there was no room.
    pub(in super::super) fn resume_stalled(&mut self, around: &mut Surroundings) {
        for number in std::mem::take(&mut self.service.stalled) {
            self.carry_on(around, number);
        }
    }

    fn ask_for_piece(&mut self, around: &mut Surroundings, number: usize) -> Result<(), Errno> {
        self.check_room()?;
        let Some(errand) = self.service.errands.get_mut(number) else { return Ok(()) };
        let start = errand.begun_bytes;
        let rest_bytes = errand.kept.total_bytes() - start;
        let bytes = rest_bytes.min(PIECE_BYTES as u64);
        let mut message = vec![0; HEAD_BYTES];
        let (peer, Remote { key, offset, .. }) = (errand.peer, errand.remote);
        let offset = offset.checked_add(start).ok_or(Errno::INVAL)?;
        let (what, answer_bytes) = match errand.direction {
            Direction::Get => (What::Read, bytes),
            Direction::Put => {
                message.resize(HEAD_BYTES + bytes as usize, 0);
                errand.kept.read(&mut around.touch, start, &mut message[HEAD_BYTES..])?;
                (What::Write, 0)
            }
        };
        // Before it is asked for, since the answer may be that the peer is dead.
        (errand.begun_bytes, errand.has_begun) = (start + bytes, true);
        errand.pending += 1;
        let request = Request { what, id: 0, key, offset, count: bytes as u32, rest_bytes };
        let piece = Piece { errand: number, start };
        let asked = self.ask_for(around, peer, request, &mut message, piece, answer_bytes);
        if asked.is_err()
            && let Some(errand) = self.service.errands.get_mut(number)
        {
            errand.begun_bytes = start;
            errand.has_begun = start > 0;
            errand.pending -= 1;
        }
        asked
    }

    fn ask_for(
        &mut self,
        around: &mut Surroundings,
        peer: PeerId,
        request: Request,
        message: &mut [u8],
        piece: Piece,
        answer_bytes: u64,
    ) -> Result<(), Errno> {
        let asked = Asked::new(Awaited::Piece(piece), answer_bytes);
        let told = Told { context: 0, flags: 0, reports: false };
        self.ask(around, peer, request, message, asked, told)
    }

    /// Has the peer's queue tell of a write. Says whether that is done.
    fn tell(&mut self, around: &mut Surroundings, number: usize) -> Result<bool, Errno> {
        let Some(errand) = self.service.errands.get(number) else { return Ok(true) };
        let Some(data) = errand.data else { return Ok(true) };
        let (peer, bytes) = (errand.peer, errand.kept.total_bytes());
        if self.engine.peer_id(peer) == Some(self.engine.id()) {
            let source = self.number_of(around, peer);
            self.tell_of_write(around, bytes, data, source);
            return Ok(true);
        }
        let Some(errand) = self.service.errands.get_mut(number) else { return Ok(true) };
        let request =
            Request { what: What::Tell(data), id: 0, key: 0, offset: bytes, count: 0, rest_bytes: 0 };
        let mut message = [0; HEAD_BYTES];
        errand.pending += 1;
        errand.data = None;
        let piece = Piece { errand: number, start: 0 };
        let asked = self.ask_for(around, peer, request, &mut message, piece, 0);
        if asked.is_err()
            && let Some(errand) = self.service.errands.get_mut(number)
        {
            errand.pending -= 1;
            errand.data = Some(data);
        }
        asked.map(|()| false)
    }

    /// The answer to a piece has come.
    pub(super) fn piece_done(
        &mut self,
        around: &mut Surroundings,
        piece: &Piece,
        answer: &[u8],
        done: Result<(), Errno>,
    ) {
        let Some(errand) = self.service.errands.get_mut(piece.errand) else { return };
        errand.pending = errand.pending.saturating_sub(1);
        let done = done.and_then(|()| errand.kept.write(&mut around.touch, piece.start, answer));
        if let Err(error) = done {
            errand.error.get_or_insert(error);
        }
        self.carry_on(around, piece.errand);
    }
}
