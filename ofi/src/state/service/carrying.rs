//! Reads and writes: by messages where nothing of this process reaches the peer's
//! memory, and what is told of them at the other end.

use lmt::{Direction, PeerId};

use super::super::SharedState;
use super::super::completion::{CompletionTarget, Entry};
use super::super::endpoint::Endpoint;
use super::asked::{Asked, Awaited};
use super::asking::Told;
use super::errand::{Piece, Remote, SoftwareRma, flags_of};
use super::wire::{HEAD_BYTES, PIECE_BYTES, Request, What};
use crate::abi::Errno;
use crate::log::{self, Subsystem};

/// Pieces of one read or write that are in flight at a time.
const WINDOW: u32 = 8;

impl Endpoint {
    /// Whether a peer's memory is known to be out of reach.
    #[inline]
    pub(in super::super) fn is_out_of_reach(&self, peer: PeerId) -> bool {
        !self.service.out_of_reach.is_empty() && self.service.out_of_reach.contains(&peer)
    }

    /// Nothing here reaches the memory of an errand's peer: it is asked from now on.
    pub(in super::super) fn note_out_of_reach(&mut self, errand: &SoftwareRma) {
        if self.service.out_of_reach.insert(errand.peer) {
            let what = "a peer's memory is out of reach; what concerns it goes by messages, which is slower";
            log::warn(Subsystem::EpData, format_args!("{what}"));
        }
    }

    /// The memory is this domain's own: nobody is asked.
    pub(in super::super) fn copy_here(&mut self, shared_state: &mut SharedState, errand: SoftwareRma) {
        match errand.copy_here(shared_state) {
            Ok(()) => self.copied(shared_state, errand),
            Err(error) => self.told_of(shared_state, &errand, Err(error)),
        }
    }

    /// The peer is asked to read or write its memory itself.
    pub(in super::super) fn carry_by_messages(
        &mut self,
        shared_state: &mut SharedState,
        errand: SoftwareRma,
    ) {
        let errand = self.service.errands.insert(errand);
        self.carry_on(shared_state, errand);
    }

    /// A read or a write is done without messages.
    pub(in super::super) fn copied(&mut self, shared_state: &mut SharedState, mut errand: SoftwareRma) {
        (errand.has_begun, errand.begun_bytes) = (true, errand.kept.total_bytes());
        if errand.data.is_none() {
            return self.told_of(shared_state, &errand, Ok(()));
        }
        let errand = self.service.errands.insert(errand);
        self.carry_on(shared_state, errand);
    }

    /// A read or a write has ended.
    pub(in super::super) fn told_of(
        &mut self,
        shared_state: &mut SharedState,
        errand: &SoftwareRma,
        done: Result<(), Errno>,
    ) {
        let SoftwareRma { remote, direction, .. } = errand;
        let entry = Entry::bare(remote.context.unwrap_or_default(), flags_of(*direction));
        let outlet = CompletionTarget::Remote(*direction);
        self.settle(shared_state, outlet, entry, remote.reports, errand.has_context(), done);
    }

    /// Asks for as many pieces as may be in flight, and ends the errand when all are
    /// done.
    fn carry_on(&mut self, shared_state: &mut SharedState, number: usize) {
        while let Some(errand) = self.service.errands.get_mut(number) {
            if errand.is_begun() || errand.pending >= WINDOW {
                break;
            }
            match self.ask_for_piece(shared_state, number) {
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
            match self.tell(shared_state, number) {
                Ok(true) => {}
                Ok(false) => return,
                Err(Errno::AGAIN) => return self.stall(number),
                Err(error) => self.errand_failed(number, error),
            }
        }
        if let Some(errand) = self.service.errands.remove(number) {
            self.told_of(shared_state, &errand, errand.error.map_or(Ok(()), Err));
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
    pub(in super::super) fn resume_stalled(&mut self, shared_state: &mut SharedState) {
        for number in std::mem::take(&mut self.service.stalled) {
            self.carry_on(shared_state, number);
        }
    }

    fn ask_for_piece(&mut self, shared_state: &mut SharedState, number: usize) -> Result<(), Errno> {
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
                errand.kept.read(&mut shared_state.touch, start, &mut message[HEAD_BYTES..])?;
                (What::Write, 0)
            }
        };
        // Before it is asked for, since the answer may be that the peer is dead.
        (errand.begun_bytes, errand.has_begun) = (start + bytes, true);
        errand.pending += 1;
        let request = Request { what, id: 0, key, offset, count: bytes as u32, rest_bytes };
        let piece = Piece { errand: number, start };
        let asked = self.ask_for(shared_state, peer, request, &mut message, piece, answer_bytes);
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
        shared_state: &mut SharedState,
        peer: PeerId,
        request: Request,
        message: &mut [u8],
        piece: Piece,
        answer_bytes: u64,
    ) -> Result<(), Errno> {
        let asked = Asked::new(Awaited::Piece(piece), answer_bytes);
        let told = Told { context: 0, flags: 0, reports: false };
        self.ask(shared_state, peer, request, message, asked, told)
    }

    /// Has the peer's queue tell of a write. Says whether that is done.
    fn tell(&mut self, shared_state: &mut SharedState, number: usize) -> Result<bool, Errno> {
        let Some(errand) = self.service.errands.get(number) else { return Ok(true) };
        let Some(data) = errand.data else { return Ok(true) };
        let (peer, bytes) = (errand.peer, errand.kept.total_bytes());
        if self.engine.peer_id(peer) == Some(self.engine.id()) {
            let source = self.number_of(shared_state, peer);
            self.tell_of_write(shared_state, bytes, data, source);
            return Ok(true);
        }
        let Some(errand) = self.service.errands.get_mut(number) else { return Ok(true) };
        let request =
            Request { what: What::Tell(data), id: 0, key: 0, offset: bytes, count: 0, rest_bytes: 0 };
        let mut message = [0; HEAD_BYTES];
        errand.pending += 1;
        errand.data = None;
        let piece = Piece { errand: number, start: 0 };
        let asked = self.ask_for(shared_state, peer, request, &mut message, piece, 0);
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
        shared_state: &mut SharedState,
        piece: &Piece,
        answer: &[u8],
        done: Result<(), Errno>,
    ) {
        let Some(errand) = self.service.errands.get_mut(piece.errand) else { return };
        errand.pending = errand.pending.saturating_sub(1);
        let done = done.and_then(|()| errand.kept.write(&mut shared_state.touch, piece.start, answer));
        if let Err(error) = done {
            errand.error.get_or_insert(error);
        }
        self.carry_on(shared_state, piece.errand);
    }
}
