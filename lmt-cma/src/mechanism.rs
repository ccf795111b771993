//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::cursor::Cursor;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::mechanism::{
    BothEnds, Cookie, CopiedPart, Description, Diagnosis, Fault, Hello, Interval, Lmt, Model, PeerFacts,
    Plan, Probed, Regions, RegisteredCopy, Role, Step, Unavailable,
};

use crate::peer::{CmaPeer, CmaTransfer};
use crate::remote::RemoteList;
use crate::segments::{demote, describe_within};
use crate::vm::{self, Copied, Local, fault_of};

/// The mechanism.
#[derive(Debug, Default)]
pub struct Cma(());

impl Cma {
    /// A new instance.
    pub fn new() -> Self {
        Self::default()
    }
}

/// What both ends take single copies to cost: the lesser of what each has found, since
/// what disturbs a look mostly makes it more. A system call that is much faster than a
/// plain copy is none that was timed well (a program under a debugger of memory copies
/// slowly by itself). The peer's word is untrusted besides: of one that says nothing
/// sensible this end's counts.
fn agreed(ours: Option<f32>, hello: &Hello) -> Option<f32> {
    let said = <[u8; 4]>::try_from(&hello.bytes[..]).map(f32::from_le_bytes).ok();
    let is_sensible = |times: &f32| (0.5..1000.0).contains(times);
    ours.into_iter().chain(said).filter(is_sensible).min_by(f32::total_cmp)
}

impl Lmt for Cma {
    type Peer = CmaPeer;
    type Transfer = CmaTransfer;

    fn description(&self) -> Description {
        Description::new("cma", &[Model::Get, Model::Put, Model::Both])
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        // As the peer's probe takes it in: see `agreed`.
        let found = crate::speed::times_plain_copy();
        let bytes = found.map_or_else(Vec::new, |times| times.to_le_bytes().to_vec());
        Ok(Hello { bytes, descriptors: Vec::new() })
    }

    /// What the peer copies needs nothing of this process but addresses.
    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<CmaPeer>, Unavailable> {
        let abilities = crate::probe::probe(facts);
        let peer = CmaPeer::new(Arc::clone(&facts.process), abilities.is_ok());
        let times_plain_copy = agreed(crate::speed::times_plain_copy(), &hello);
        Ok(Probed { peer, abilities, times_plain_copy })
    }

    fn prepare(
        &mut self,
        _peer: &mut CmaPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(CmaTransfer, Cookie), Fault> {
        let (cookie, kept) = describe_within(plan.cookie_bytes(), data, plan.interval)?;
        let transfer = CmaTransfer { _kept: kept, ..CmaTransfer::new(*plan) };
        Ok((transfer, cookie))
    }

    fn start(
        &mut self,
        peer: &mut CmaPeer,
        transfer: &mut CmaTransfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        if !peer.reachable {
            return Err(Fault::Demote {
                errno: 0,
                for_good: true,
                sentence: "this process cannot reach the peer's memory; the peer must copy".to_owned(),
            });
        }
        // Found on the first step, which knows the buffer.
        transfer.plan.interval = interval;
        let (list, at) = RemoteList::resolve(peer.process(), remote, interval)?;
        transfer.remote = list;
        transfer.remote_at = at;
        transfer.left_bytes = interval.bytes();
        Ok(())
    }

    fn step(
        &mut self,
        peer: &mut CmaPeer,
        transfer: &mut CmaTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let t = transfer;
        if t.left_bytes == t.plan.interval.bytes() {
            t.local_at = Cursor::at(data.segments(), t.plan.interval.start);
        }
        let max_bytes = max_bytes.min(t.left_bytes);
        let copied = vm::copy(
            peer.process(),
            local(t.plan.role, data),
            &mut t.local_at,
            t.remote.as_slice(),
            &mut t.remote_at,
            max_bytes,
        );
        t.left_bytes -= copied.bytes;
        match copied.error {
            // A death is final; anything else comes again in the next call,
            // after the bytes of this one have been counted.
            Some(error) if copied.bytes == 0 || error == vm::CopyError::Dead => {
                Err(fault_of(error, peer.process()))
            }
            None if copied.bytes == 0 && max_bytes > 0 => Err(short_buffer()),
            _ => Ok(Step { bytes: copied.bytes, done: t.left_bytes == 0 }),
        }
    }

    /// Nothing is held but what is dropped.
    fn finish(&mut self, _peer: &mut CmaPeer, _transfer: CmaTransfer) {}

    fn both_ends(&mut self) -> Option<&mut dyn BothEnds<CmaPeer, CmaTransfer>> {
        Some(self)
    }

    fn regions(&mut self) -> Option<&mut dyn Regions<CmaPeer>> {
        Some(self)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

/// The receiver reads from the front, the sender writes from the back.
impl BothEnds<CmaPeer, CmaTransfer> for Cma {
    fn copy_part(
        &mut self,
        peer: &mut CmaPeer,
        transfer: &mut CmaTransfer,
        data: &mut Buffer,
        part: Interval,
    ) -> CopiedPart {
        let CmaTransfer { plan, remote, remote_at, .. } = transfer;
        let (there, mut remote_at) = (remote.as_slice(), *remote_at);
        let mut local_at = Cursor::at(data.segments(), part.start);
        remote_at.advance(there, part.start - plan.interval.start);
        let (process, local) = (peer.process(), local(plan.role, data));
        let Copied { bytes, error } =
            vm::copy(process, local, &mut local_at, there, &mut remote_at, part.bytes());
        let why = || error.map_or_else(short_buffer, |error| fault_of(error, process));
        CopiedPart { bytes, fault: (bytes < part.bytes()).then(why) }
    }
}

fn local(role: Role, data: &mut Buffer) -> Local<'_> {
    match role {
        Role::Receiver => Local::Into(data),
        Role::Sender => Local::OutOf(data),
    }
}

fn short_buffer() -> Fault {
    demote("the buffer here is shorter than the transfer; give the one that prepare saw")
}

impl Regions<CmaPeer> for Cma {
    fn copy_registered(
        &mut self,
        peer: &mut CmaPeer,
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault> {
        vm::one_sided(peer.process(), local, copy)
    }
}

impl Diagnosis for Cma {
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        crate::diagnostics(host)
    }

    fn times_plain_copy(&self) -> Option<f32> {
        crate::speed::times_plain_copy()
    }
}

#[cfg(test)]
#[path = "mechanism_tests.rs"]
mod tests;
