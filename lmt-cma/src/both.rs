//! The Both model: the receiver reads from the front, the sender writes from
//! the back ([`lmt_core::claims`]).

use lmt_core::buffer::Buffer;
use lmt_core::claims::{Claims, CopiedPart, Help, Side};
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{Cookie, Fault, Interval, Role, Step};
use lmt_core::process::PeerProcess;

use crate::mechanism::{CmaPeer, CmaTransfer};
use crate::remote::RemoteList;
use crate::segments::{KeptList, demote, describe_behind, split};
use crate::vm::{self, Copied, Local, Look, fault_of};

/// The receiver's side; the sender's is as in the Get model until it helps.
pub(crate) fn prepare(
    claims: &mut Claims,
    peer: &mut CmaPeer,
    interval: Interval,
    data: &Buffer,
) -> Result<(Cookie, Option<KeptList>, Option<Side>), Fault> {
    claims.introduce(&mut peer.claims);
    let reception = claims.receive(&mut peer.claims, interval);
    match describe_behind(reception.name(), data, interval) {
        Ok((cookie, kept)) => Ok((cookie, kept, Some(Side::In(reception)))),
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
    peer: &CmaPeer,
    remote: &Cookie,
    interval: Interval,
) -> Result<(), Fault> {
    let (name, described) = split(remote)
        .ok_or_else(|| demote("the peer's cookie names no claims; its lmt may be of another version"))?;
    let help = Help::new(&peer.claims, name, interval, claims.sharing().steal_bytes);
    transfer.side = Some(Side::Out(help));
    transfer.described = Some(described);
    Ok(())
}

pub(crate) fn step(
    claims: &Claims,
    peer: &mut CmaPeer,
    transfer: &mut CmaTransfer,
    data: &mut Buffer,
    max_bytes: u64,
) -> Result<Step, Fault> {
    let CmaTransfer { plan, remote, remote_at, side, described, .. } = transfer;
    let Some(side) = side else {
        return Err(demote("a transfer was stepped before it was started"));
    };
    let process = peer.claims.process();
    let step = side.step(claims, &peer.claims, max_bytes, |part| {
        if let Some(cookie) = described.take() {
            match RemoteList::resolve(process, &cookie, plan.interval) {
                Ok(found) => (*remote, *remote_at) = found,
                Err(fault) => return CopiedPart { bytes: 0, fault: Some(fault) },
            }
        }
        let local = if plan.role == Role::Receiver { Local::Into(data) } else { Local::OutOf(data) };
        let there = There { list: remote.as_slice(), from: *remote_at, start: plan.interval.start };
        copy(process, local, &there, part)
    })?;
    // Nothing that was read counts before this: see `Look::ByCaller`.
    if step.done && plan.role == Role::Receiver && !process.holds_pid() {
        return Err(Fault::PeerDead);
    }
    Ok(step)
}

/// The peer's memory of a transfer that begins at the message's byte `start`,
/// and there in the list at `from`.
struct There<'a> {
    list: &'a [vm::RemoteSegment],
    from: Cursor,
    start: u64,
}

/// Copies one part. That the process is still the peer's is to be looked at before what was
/// read counts: see [`Look::ByCaller`].
fn copy(process: &PeerProcess, local: Local<'_>, there: &There<'_>, part: Interval) -> CopiedPart {
    let mut local_at = Cursor::at(local.buffer().segments(), part.start);
    let mut remote_at = there.from;
    remote_at.advance(there.list, part.start - there.start);
    let bytes = part.bytes();
    let Copied { bytes: copied_bytes, error, .. } =
        vm::copy_looking(process, local, &mut local_at, there.list, &mut remote_at, bytes, Look::ByCaller);
    let fault = (copied_bytes < bytes).then(|| match error {
        Some(error) => fault_of(error, process),
        None => demote("the buffer here is shorter than the transfer; give the one that prepare saw"),
    });
    CopiedPart { bytes: copied_bytes, fault }
}
