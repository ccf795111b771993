//! Messages whose sender opens a line of claims before it announces them, and whose receiver
//! joins it: both copy without an answer to the announcement ([`lmt_core::claims::Opened`]).

use lmt_core::buffer::Buffer;
use lmt_core::claims::{Claims, CopiedPart, Opened, Sharing, Told};
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval, Met, Step};

use crate::both::{There, copy};
use crate::mechanism::CmaPeer;
use crate::segments::{RemoteSegment, describe_opened, opened_of};
use crate::vm::{Local, Look};

/// An address, as a receiver says it in the line.
const fn told_of(address: u64) -> Told {
    Told([address >> Told::BITS, address & ((1 << Told::BITS) - 1)])
}

/// The address that a peer has told, unchecked.
const fn address_of(Told([high, low]): Told) -> u64 {
    high << Told::BITS | low
}

/// The sender's end: the line, and the cookie that names it.
pub(crate) fn open(claims: &mut Claims, peer: &mut CmaPeer, data: &Buffer) -> Option<(Opened, Cookie)> {
    if !peer.reachable || !data.is_contiguous() {
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

/// Helps the receiver, if it has joined; looks whether the message has ended.
pub(crate) fn step(
    claims: &Claims,
    peer: &CmaPeer,
    opened: &mut Opened,
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
    let CopiedPart { bytes, fault } = copy(peer.process(), Local::OutOf(data), &there, part, Look::ByCaller);
    claims.copied(opened, bytes);
    match fault {
        Some(fault) if bytes == 0 => Err(fault),
        _ => Ok(Step { bytes, done: false }),
    }
}

/// The receiver's end: see [`lmt_core::mechanism::Lmt::meet`].
pub(crate) fn meet(
    sharing: Sharing,
    peer: &CmaPeer,
    interval: Interval,
    remote: &Cookie,
    data: &mut Buffer,
) -> Option<Met> {
    let (base, opened) = opened_of(remote)?;
    let [here] = data.segments() else { return None };
    let joined = peer.claims.join(opened, interval, sharing, told_of(here.address as u64))?;
    let there = [RemoteSegment { address: base, bytes: interval.bytes() }];
    let met = joined.bring_in(|part| {
        let there = There { list: &there, from: Cursor::default(), start: 0 };
        copy(peer.process(), Local::Into(data), &there, part, Look::ByCaller).bytes == part.bytes()
    })?;
    // Nothing that was read counts before this: see `Look::ByCaller`.
    peer.process().holds_pid().then_some(met)
}
