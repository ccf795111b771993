//! Messages whose sender opens a line of claims before it announces them, and whose receiver
//! joins it: both copy without an answer to the announcement ([`lmt_core::claims::Opened`]).

use std::sync::Arc;

use lmt_core::buffer::{Access, Buffer};
use lmt_core::claims::{Coming, Lost, Told};
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval, Meeting, Model, Plan, Role, Step};
use lmt_core::shared_buffer::place_of;

use crate::both::copy;
use crate::cache::Name;
use crate::cookie::{Described, Joinable, covers, demote_words, garbage, parse};
use crate::mechanism::Mapped;
use crate::peer::{Claimed, Far, Found, MappedPeer, MappedTransfer, Pieces};
use crate::sys::{Mapping, Piece, Way};

/// Where the receiver's memory is, as it says in the line.
struct Place {
    arena: u32,
    /// In the arena, in bytes.
    offset: u64,
    /// Whether what is copied there goes past the caches.
    goes_past: bool,
}

/// Beside the arena's number.
const PAST: u64 = 1 << 32;

impl Place {
    const fn tell(&self) -> Told {
        Told([self.arena as u64 | if self.goes_past { PAST } else { 0 }, self.offset])
    }

    /// What a peer has told, unchecked.
    const fn of(Told([arena, offset]): Told) -> Self {
        Self { arena: arena as u32, offset, goes_past: arena & PAST != 0 }
    }
}

impl Mapped {
    /// The sender's end: see [`lmt_core::mechanism::Lmt::open`].
    pub(crate) fn open_line(
        &mut self,
        peer: &mut MappedPeer,
        data: &Buffer,
        cookie: &mut Cookie,
    ) -> Option<MappedTransfer> {
        let interval = Interval { start: 0, end: data.total_bytes() };
        let joinable = Joinable::offer(data, peer.process())?;
        if !peer.introduce(joinable.offered.offer.arena().id()) {
            return None;
        }
        self.incoming.helped.introduce(&mut peer.claims);
        let opened = self.incoming.helped.open(&peer.claims, interval)?;
        *cookie = joinable.cookie(opened.name());
        Some(MappedTransfer {
            claimed: Some(Claimed::Opened(opened)),
            _offered: Some(joinable.offered),
            ..MappedTransfer::new(Plan::new(Role::Sender, Model::Both, interval))
        })
    }

    /// Helps the receiver, if it has joined; looks whether the message has ended.
    pub(crate) fn step_opened(
        &mut self,
        peer: &mut MappedPeer,
        transfer: &mut MappedTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let MappedTransfer { plan, claimed: Some(Claimed::Opened(opened)), far, goes_past, .. } = transfer
        else {
            return Ok(Step { bytes: 0, done: true });
        };
        let told = self.incoming.helped.begun(opened);
        let Some(place) = told.filter(|_| max_bytes > 0).map(Place::of) else {
            return Ok(Step { bytes: 0, done: opened.is_over() });
        };
        if matches!(far, Far::Unknown) {
            let interval = plan.interval;
            let parts = [[place.offset, interval.bytes()]];
            let is_true = |mapping: &Arc<Mapping>| covers(0, &parts, interval, mapping.bytes());
            *far = match self.mapping(peer, place.arena) {
                Ok(None) => Far::Unknown,
                Ok(Some(mapping)) if is_true(&mapping) => {
                    let pieces = Pieces::One([Piece { offset: place.offset, bytes: interval.bytes() }]);
                    let (local_at, remote_at) = (Cursor::default(), Cursor::default());
                    Far::Found(Found { mapping, lease: None, pieces, start: 0, local_at, remote_at })
                }
                // The receiver copies all.
                _ => Far::Absent,
            };
            *goes_past = place.goes_past;
        }
        let Far::Found(found) = far else { return Ok(Step { bytes: 0, done: false }) };
        let claims = &self.incoming.helped;
        let Some(part) = claims.next_part_of(opened, max_bytes) else {
            return Ok(Step { bytes: 0, done: opened.is_over() });
        };
        copy(found, Way { role: Role::Sender, goes_past: *goes_past }, data, part)?;
        claims.copied(opened, part.bytes());
        Ok(Step { bytes: part.bytes(), done: false })
    }

    /// The receiver's end: see [`lmt_core::mechanism::Lmt::meet`].
    pub(crate) fn join_line(
        &mut self,
        peer: &mut MappedPeer,
        plan: &Plan,
        remote: &Cookie,
        data: &mut Buffer,
    ) -> Option<Meeting<MappedTransfer>> {
        let interval = plan.interval;
        let Described { head, inline: [source, _], .. } = parse(remote, interval)?;
        let is_one = head.opened != 0 && head.count == 1 && head.list_arena == 0;
        if !is_one || data.access() != Access::Write {
            return None;
        }
        // The sender has written both lines: they come together, while all else is looked up.
        peer.claims.ask_for(head.opened);
        let mapping = self.cache.find(Name { peer: peer.number, arena: head.arena })?;
        if !covers(head.start, &[source], interval, mapping.bytes()) {
            return None;
        }
        let lease = mapping.lease(head.line)?;
        lease.take_over();
        let (arena, offset) = place_of(data)?;
        let place = |goes_past| Place { arena, offset, goes_past }.tell();
        if !peer.introduce(arena) || !peer.claims.can_join(head.opened, place(false)) {
            return None;
        }
        // From here on the sender's memory stays as it is until this is dropped. It cannot be
        // had again: a message that fails behind this goes another way.
        if !lease.take(head.generation) {
            return None;
        }
        let pieces = Pieces::One([Piece { offset: source[0], bytes: source[1] }]);
        let (local_at, remote_at) = (Cursor::default(), Cursor::default());
        let lease = Some((head.line, head.generation));
        let found = Found { mapping, lease, pieces, start: head.start, local_at, remote_at };
        let goes_past = peer.begins(plan, || data.is_cold(interval.start..interval.end));
        let sharing = self.incoming.helped.sharing();
        let Some(joined) = peer.claims.join(head.opened, interval, sharing, place(goes_past)) else {
            peer.is_over(interval.bytes(), false);
            return None;
        };
        let mut transfer = MappedTransfer {
            claimed: Some(Claimed::Joined(joined)),
            far: Far::Found(found),
            goes_past,
            coming_bytes: Some(interval.bytes()),
            ..MappedTransfer::new(*plan)
        };
        match step_joined(peer, &mut transfer, data) {
            Ok(Step { done: false, .. }) => Some(Meeting::GoesOn(transfer)),
            Ok(_) => {
                peer.is_over(interval.bytes(), true);
                let Some(Claimed::Joined(joined)) = &transfer.claimed else { return None };
                let (copied_by_sender, sender_knows) = (joined.copied_by_sender(), joined.sender_knows());
                Some(Meeting::Done { copied_by_sender, sender_knows })
            }
            Err(_) => {
                peer.is_over(interval.bytes(), false);
                if let Some(Claimed::Joined(joined)) = transfer.claimed.take() {
                    joined.finish(&peer.claims);
                }
                None
            }
        }
    }
}

/// Brings in what there is of a message whose line this end has joined; and ends it, if that
/// is all.
pub(crate) fn step_joined(
    peer: &mut MappedPeer,
    transfer: &mut MappedTransfer,
    data: &mut Buffer,
) -> Result<Step, Fault> {
    let MappedTransfer { plan, claimed: Some(Claimed::Joined(joined)), far, goes_past, .. } = transfer else {
        return Err(garbage());
    };
    let way = Way { role: Role::Receiver, goes_past: *goes_past };
    let coming = joined.bring_in(&peer.claims, |part| {
        let Far::Found(found) = far else { return false };
        copy(found, way, data, part).is_ok()
    });
    if coming.map_err(|Lost| lost())? == Coming::Waits {
        return Ok(Step { bytes: 0, done: false });
    }
    // The lease ends before the sender, who ends it too, knows of the end.
    *far = Far::Unknown;
    joined.end(&mut peer.claims).map_err(|Lost| lost())?;
    Ok(Step { bytes: plan.interval.bytes(), done: true })
}

fn lost() -> Fault {
    demote_words("the message could not be copied as its sender had opened it; it is sent another way")
}

#[cfg(test)]
#[path = "meeting_tests.rs"]
mod tests;
