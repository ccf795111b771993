//! The Both model: the receiver reads from the front, the sender writes from
//! the back ([`lmt_core::claims`]).

use lmt_core::buffer::Buffer;
use lmt_core::claims::{Claims, Help, Reception};
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval, Step};

use crate::mechanism::{CmaPeer, CmaTransfer};
use crate::remote::RemoteList;
use crate::segments::{KeptList, demote, describe_behind, split};
use crate::vm::{self, Copied, Local, Look, fault_of};

/// What an end keeps of the claims on a message.
#[derive(Debug)]
pub(crate) enum Shared {
    /// The message comes in.
    In(Reception),
    /// It goes out; with what describes the receiver's memory, until that is
    /// looked at.
    Out(Help, Option<Cookie>),
}

/// The receiver's side; the sender's is as in the Get model until it helps.
pub(crate) fn prepare(
    claims: &mut Claims,
    peer: &mut CmaPeer,
    interval: Interval,
    data: &Buffer,
) -> Result<(Cookie, Option<KeptList>, Option<Shared>), Fault> {
    claims.introduce(&mut peer.claims);
    let reception = claims.receive(&mut peer.claims, interval);
    match describe_behind(reception.name(), data, interval) {
        Ok((cookie, kept)) => Ok((cookie, kept, Some(Shared::In(reception)))),
        Err(fault) => {
            claims.finish(&peer.claims, reception);
            Err(fault)
        }
    }
}

/// The sender has the receiver's cookie.
pub(crate) fn start(
    transfer: &mut CmaTransfer,
    claims: &Claims,
    remote: &Cookie,
    interval: Interval,
) -> Result<(), Fault> {
    let (name, described) = split(remote)
        .ok_or_else(|| demote("the peer's cookie names no claims; its lmt may be of another version"))?;
    transfer.shared =
        Some(Shared::Out(Help::new(name, interval, claims.sharing().steal_bytes), Some(described)));
    Ok(())
}

pub(crate) fn step(
    claims: &Claims,
    peer: &mut CmaPeer,
    transfer: &mut CmaTransfer,
    data: &mut Buffer,
    max_bytes: u64,
) -> Result<Step, Fault> {
    let CmaTransfer { plan, remote, remote_at, shared, .. } = transfer;
    let start = plan.interval.start;
    match shared {
        None => Err(demote("a transfer was stepped before it was started")),
        Some(Shared::In(reception)) => {
            let part = claims.next_part(reception, max_bytes)?;
            let mut step = Step { bytes: 0, done: false };
            if let Some(part) = part {
                let there = There { list: remote.as_slice(), from: *remote_at, start };
                let copied = copy(peer, Local::Into(data), &there, part);
                reception.copied(copied.bytes);
                step.bytes = copied.bytes;
                if copied.bytes < part.bytes() {
                    return cut_short(claims, peer, reception, copied);
                }
            }
            if claims.is_whole(reception)? {
                // Nothing that was read counts before this: see `Look::ByCaller`.
                if !peer.process().holds_pid() {
                    return Err(Fault::PeerDead);
                }
                step.bytes += reception.copied_by_sender();
                step.done = true;
            }
            Ok(step)
        }
        Some(Shared::Out(help, described)) => {
            let Some(part) = help.next_part(&peer.claims, max_bytes) else {
                return Ok(Step { bytes: 0, done: help.is_over() });
            };
            if let Some(cookie) = described.take() {
                // Not before there is a claim: the receiver may have ended the
                // message, and the list that the cookie speaks of be gone.
                (*remote, *remote_at) = RemoteList::resolve(peer.process(), &cookie, plan.interval)?;
            }
            let there = There { list: remote.as_slice(), from: *remote_at, start };
            let copied = copy(peer, Local::OutOf(data), &there, part);
            help.copied(&peer.claims, copied.bytes);
            if copied.bytes == 0 {
                return Err(reason(peer, copied));
            }
            Ok(Step { bytes: copied.bytes, done: false })
        }
    }
}

/// The receiver could not read all of a part: what it could read counts, and the
/// rest is tried again, unless nothing could; then it fails as soon as the
/// sender copies nothing any more, so that what is missing can come another way.
fn cut_short(
    claims: &Claims,
    peer: &CmaPeer,
    reception: &mut Reception,
    copied: Copied,
) -> Result<Step, Fault> {
    if !peer.process().is_alive() {
        return Err(Fault::PeerDead);
    }
    if copied.bytes > 0 || !claims.is_quiet(&peer.claims, reception) {
        return Ok(Step { bytes: copied.bytes, done: false });
    }
    Err(reason(peer, copied))
}

fn reason(peer: &CmaPeer, copied: Copied) -> Fault {
    match copied.error {
        Some(error) => fault_of(error, peer.process()),
        None => demote("the buffer here is shorter than the transfer; give the one that prepare saw"),
    }
}

/// The peer's memory of a transfer that begins at the message's byte `start`,
/// and there in the list at `from`.
struct There<'a> {
    list: &'a [vm::RemoteSegment],
    from: Cursor,
    start: u64,
}

/// Copies one part.
fn copy(peer: &CmaPeer, local: Local<'_>, there: &There<'_>, part: Interval) -> Copied {
    let mut local_at = Cursor::at(local.buffer().segments(), part.start);
    let mut remote_at = there.from;
    remote_at.advance(there.list, part.start - there.start);
    let (process, bytes) = (peer.process(), part.bytes());
    vm::copy_looking(process, local, &mut local_at, there.list, &mut remote_at, bytes, Look::ByCaller)
}
