//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::checkup::{Finding, Host};
use lmt_core::claims::{Claims, PeerClaims, Side};
use lmt_core::cursor::Cursor;
use lmt_core::mechanism::{
    Abilities, Cookie, DeclaredCopy, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Role, Step,
    Unavailable,
};
use lmt_core::process::PeerProcess;

use crate::both;
use crate::remote::RemoteList;
use crate::segments::{KeptList, demote, describe};
use crate::vm::{self, Local, fault_of};

/// The mechanism.
#[derive(Debug, Default)]
pub struct Cma {
    pub(crate) claims: Claims,
}

impl Cma {
    /// A new instance.
    pub fn new() -> Self {
        Self::default()
    }
}

/// A peer whose memory the kernel lets this process reach, or which may reach
/// this process's.
#[derive(Debug)]
pub struct CmaPeer {
    pub(crate) claims: PeerClaims,
    /// Whether its nonce was read: its pid names it here, and no stranger.
    pub(crate) reachable: bool,
    /// How many times a plain copy's time a single copy takes, as both ends say.
    times_plain_copy: Option<f32>,
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

impl CmaPeer {
    pub(crate) fn new(claims: PeerClaims, reachable: bool) -> Self {
        Self { claims, reachable, times_plain_copy: None }
    }

    /// The peer's process, for [`vm`]'s copies.
    pub fn process(&self) -> &PeerProcess {
        self.claims.process()
    }
}

/// A transfer under way.
#[derive(Debug)]
pub struct CmaTransfer {
    pub(crate) plan: Plan,
    /// A long list of our own, which the peer fetches by its address.
    _kept: Option<KeptList>,
    pub(crate) remote: RemoteList,
    local_at: Cursor,
    pub(crate) remote_at: Cursor,
    left_bytes: u64,
    /// In the Both model: this end's part; what describes the receiver's memory,
    /// until its sender looks at that.
    pub(crate) side: Option<Side>,
    pub(crate) described: Option<Cookie>,
}

impl CmaTransfer {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            _kept: None,
            remote: RemoteList::default(),
            local_at: Cursor::default(),
            remote_at: Cursor::default(),
            left_bytes: 0,
            side: None,
            described: None,
        }
    }
}

impl Lmt for Cma {
    type Peer = CmaPeer;
    type Transfer = CmaTransfer;

    fn name(&self) -> &'static str {
        "cma"
    }

    fn models(&self) -> &'static [Model] {
        &[Model::Get, Model::Put, Model::Both]
    }

    fn checkups(&self, host: &Host) -> Vec<Finding> {
        crate::checkups(host)
    }

    fn times_plain_copy(&self, peer: Option<&CmaPeer>) -> Option<f32> {
        match peer {
            Some(peer) => peer.times_plain_copy,
            None => crate::speed::times_plain_copy(),
        }
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        // As the peer's probe takes it in: see `agreed`.
        let found = crate::speed::times_plain_copy();
        let bytes = found.map_or_else(Vec::new, |times| times.to_le_bytes().to_vec());
        Ok(Hello { bytes, descriptors: Vec::new() })
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<(CmaPeer, Abilities), Unavailable> {
        let abilities = crate::probe::probe(facts)?;
        let claims = PeerClaims::new(Arc::clone(&facts.process));
        let mut peer = CmaPeer::new(claims, true);
        peer.times_plain_copy = agreed(crate::speed::times_plain_copy(), &hello);
        Ok((peer, abilities))
    }

    /// What the peer copies needs nothing of this process but addresses.
    fn passive(&mut self, facts: &PeerFacts) -> Option<CmaPeer> {
        let claims = PeerClaims::new(Arc::clone(&facts.process));
        Some(CmaPeer::new(claims, false))
    }

    fn prepare(
        &mut self,
        peer: &mut CmaPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(CmaTransfer, Cookie), Fault> {
        let (cookie, kept, side) = match (plan.model, plan.role) {
            (Model::Both, Role::Receiver) => both::prepare(&mut self.claims, peer, plan.interval, data)?,
            _ => {
                let (cookie, kept) = describe(data, plan.interval)?;
                (cookie, kept, None)
            }
        };
        let transfer = CmaTransfer { _kept: kept, side, ..CmaTransfer::new(*plan) };
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
        if (transfer.plan.model, transfer.plan.role) == (Model::Both, Role::Sender) {
            return both::start(transfer, &self.claims, peer, remote, interval);
        }
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
        if transfer.plan.model == Model::Both {
            return both::step(&self.claims, peer, transfer, data, max_bytes);
        }
        let t = transfer;
        if t.left_bytes == t.plan.interval.bytes() {
            t.local_at = Cursor::at(data.segments(), t.plan.interval.start);
        }
        let local = match t.plan.role {
            Role::Receiver => Local::Into(data),
            Role::Sender => Local::OutOf(data),
        };
        let max_bytes = max_bytes.min(t.left_bytes);
        let copied = vm::copy(
            peer.process(),
            local,
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
            None if copied.bytes == 0 && max_bytes > 0 => {
                Err(demote("the buffer here is shorter than the transfer; give the one that prepare saw"))
            }
            _ => Ok(Step { bytes: copied.bytes, done: t.left_bytes == 0 }),
        }
    }

    fn leave(&mut self, peer: &mut CmaPeer, transfer: &mut CmaTransfer) -> bool {
        transfer.side.as_mut().is_some_and(|side| side.leave(&self.claims, &mut peer.claims))
    }

    fn copied_by_peer(&self, transfer: &CmaTransfer) -> u64 {
        transfer.side.as_ref().map_or(0, Side::copied_by_peer)
    }

    fn finish(&mut self, peer: &mut CmaPeer, transfer: CmaTransfer) {
        if let Some(side) = transfer.side {
            side.finish(&mut self.claims, &peer.claims);
        }
    }

    /// The claims on messages that the peer may help with.
    fn parcel(&mut self, peer: &mut CmaPeer) -> Option<Hello> {
        peer.claims.parcel()
    }

    fn take_parcel(&mut self, peer: &mut CmaPeer, parcel: Hello) {
        peer.claims.take_parcel(parcel);
    }

    fn copies_declared(&self) -> bool {
        true
    }

    fn copy_declared(
        &mut self,
        peer: &mut CmaPeer,
        local: &mut Buffer,
        copy: &DeclaredCopy<'_>,
    ) -> Result<u64, Fault> {
        let copied = vm::copy_declared(peer.process(), local, copy);
        copied.error.map_or(Ok(copied.bytes), |error| Err(fault_of(error, peer.process())))
    }
}

#[cfg(test)]
#[path = "mechanism_tests.rs"]
mod tests;
