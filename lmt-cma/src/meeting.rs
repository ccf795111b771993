//! Messages whose sender opens a line of claims before it announces them, and whose receiver
//! joins it: both copy without an answer to the announcement ([`lmt_core::claims::Opened`]).

use lmt_core::buffer::{Access, Buffer};
use lmt_core::claims::{Claims, Coming, CopiedPart, Joined, Lost, Opened, Sharing, Told};
use lmt_core::crossing::begin_part;
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval, Step};

use crate::both::{There, copy, note_part};
use crate::mechanism::CmaPeer;
use crate::segments::{RemoteSegment, demote, describe_opened, opened_of};
use crate::vm::Local;

/// An address, as a receiver says it in the line.
const fn told_of(address: u64) -> Told {
    Told([address >> Told::BITS, address & ((1 << Told::BITS) - 1)])
}

/// The address that a peer has told, unchecked.
const fn address_of(Told([high, low]): Told) -> u64 {
    high << Told::BITS | low
}

/// A message that goes out or comes in without an answer to its announcement.
#[derive(Debug)]
pub(crate) enum Early {
    /// This end has opened the line.
    Opened(Opened),
    /// This end has joined it; where the message is in the sender.
    Joined(Joined, u64),
}

/// Whether a message can be opened, as far as is known before it is.
pub(crate) fn may_open(peer: &CmaPeer, data: &Buffer) -> bool {
    peer.reachable && data.is_contiguous()
}

/// The sender's end: the line, and the cookie that names it.
pub(crate) fn open(claims: &mut Claims, peer: &mut CmaPeer, data: &Buffer) -> Option<(Opened, Cookie)> {
    if !may_open(peer, data) {
        return None;
    }
    claims.introduce(&mut peer.claims);
    let opened = claims.open(&peer.claims, Interval { start: 0, end: data.total_bytes() })?;
    match describe_opened(data, opened.name()) {
        Some(cookie) => Some((opened, cookie)),
        None => {
            claims.shut(opened);
            None
        }
    }
}

/// The receiver's end: see [`lmt_core::mechanism::Lmt::meet`].
pub(crate) fn meet(
    sharing: Sharing,
    peer: &mut CmaPeer,
    interval: Interval,
    remote: &Cookie,
    data: &mut Buffer,
) -> Option<(Early, Step)> {
    let (base, opened) = opened_of(remote)?;
    let [here] = data.segments() else { return None };
    if data.access() != Access::Write {
        return None;
    }
    let joined = peer.claims.join(opened, interval, sharing, told_of(here.address as u64))?;
    let mut early = Early::Joined(joined, base);
    match step_joined(peer, &mut early, interval, data) {
        Ok(step) => Some((early, step)),
        Err(_) => {
            if let Early::Joined(joined, _) = early {
                joined.finish(&peer.claims);
            }
            None
        }
    }
}

impl Early {
    pub(crate) fn step(
        &mut self,
        claims: &Claims,
        peer: &mut CmaPeer,
        interval: Interval,
        is_timed: &mut bool,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        match self {
            Self::Opened(opened) => help(claims, peer, opened, is_timed, data, max_bytes),
            Self::Joined(..) => step_joined(peer, self, interval, data),
        }
    }

    pub(crate) fn leave(&mut self, claims: &Claims) -> bool {
        match self {
            Self::Opened(opened) => claims.leave(opened),
            Self::Joined(..) => self.sender_knows(),
        }
    }

    /// Whether a sender knows that its message, which this end has joined, has ended.
    pub(crate) fn sender_knows(&self) -> bool {
        matches!(self, Self::Joined(joined, _) if joined.sender_knows())
    }

    pub(crate) const fn copied_by_peer(&self) -> u64 {
        match self {
            Self::Opened(_) => 0,
            Self::Joined(joined, _) => joined.copied_by_sender(),
        }
    }

    pub(crate) fn finish(self, claims: &mut Claims, peer: &CmaPeer) {
        match self {
            Self::Opened(opened) => claims.shut(opened),
            Self::Joined(joined, _) => joined.finish(&peer.claims),
        }
    }
}

/// Helps the receiver, if it has joined; looks whether the message has ended.
fn help(
    claims: &Claims,
    peer: &mut CmaPeer,
    opened: &mut Opened,
    is_timed: &mut bool,
    data: &Buffer,
    max_bytes: u64,
) -> Result<Step, Fault> {
    let told = claims.begun(opened).filter(|_| max_bytes > 0);
    let part = told.and_then(|told| Some((told, claims.next_part_of(opened, max_bytes)?)));
    let Some((told, part)) = part else {
        return Ok(Step { bytes: 0, done: opened.is_over() });
    };
    let there = [RemoteSegment { address: address_of(told), bytes: data.total_bytes() }];
    let there = There { list: &there, from: Cursor::default(), start: 0 };
    let begun = begin_part(is_timed, part, data, 1);
    let CopiedPart { bytes, fault } = copy(peer.process(), Local::OutOf(data), &there, part);
    // Its receiver may wait for that.
    claims.copied(opened, bytes);
    if let Some(begun) = begun.filter(|_| fault.is_none()) {
        let took = begun.elapsed();
        note_part(&mut peer.crossing, data.total_bytes(), true, bytes, took);
    }
    // A part that is claimed is copied in this step, or is given up with the line.
    match fault {
        Some(fault) => Err(fault),
        None => Ok(Step { bytes, done: false }),
    }
}

/// Brings in what there is of a message whose line this end has joined; and ends it, if that
/// is all.
fn step_joined(
    peer: &mut CmaPeer,
    early: &mut Early,
    interval: Interval,
    data: &mut Buffer,
) -> Result<Step, Fault> {
    let Early::Joined(joined, base) = early else { return Err(lost()) };
    let there = [RemoteSegment { address: *base, bytes: interval.bytes() }];
    let process = peer.claims.process();
    let coming = joined.bring_in(&peer.claims, |part| {
        let there = There { list: &there, from: Cursor::default(), start: 0 };
        copy(process, Local::Into(data), &there, part).bytes == part.bytes()
    });
    if coming.map_err(|Lost| lost())? == Coming::Waits {
        return Ok(Step { bytes: 0, done: false });
    }
    // Nothing that was read counts before this: see `Look::ByCaller`.
    if !process.holds_pid() {
        return Err(Fault::PeerDead);
    }
    joined.end(&mut peer.claims).map_err(|Lost| lost())?;
    Ok(Step { bytes: interval.bytes(), done: true })
}

fn lost() -> Fault {
    demote("the message could not be copied as its sender had opened it; it is sent another way")
}

#[cfg(test)]
#[path = "meeting_tests.rs"]
mod tests;
