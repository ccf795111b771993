//! Messages moved by an engine that reaches the peer's memory: the receiver's
//! engine reads (Get) or the sender's writes (Put), while both processes do
//! something else.
//!
//! The whole interval is submitted as soon as the other side's cookie is there;
//! from then on a step only looks how far the engine is.

use std::sync::Arc;

use lmt_cma::remote::RemoteList;
use lmt_cma::segments::{KeptList, describe};
use lmt_cma::vm::{self, CopyError, fault_of};
use lmt_core::buffer::Buffer;
use lmt_core::config_key::{Key, Value};
use lmt_core::cursor::Cursor;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::doorbell::Doorbell;
use lmt_core::mechanism::{
    Abilities, Background, Cookie, Description, Diagnosis, Fault, Hello, Interval, Lmt, Model, PeerFacts,
    Plan, Probed, Regions, RegisteredCopy, Role, Settings, Step, Unavailable,
};
use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use crate::engine::{CopyEngine, CopyFailure, Reach, SubmitError};
use crate::few::Few;
use crate::mapped::{self, Mapped};
use crate::places::{CopyList, ListError, Place};
use crate::software::{Config, Software};
use crate::steps::{DONE_TOO_EARLY, NOT_STARTED, StepReport, tell};

/// Single copy by an engine in the background.
#[derive(Debug)]
pub struct Offload<E> {
    name: &'static str,
    engine: E,
}

impl<E: CopyEngine> Offload<E> {
    /// Messages by `engine`, which must reach mapped and peers' memory, under
    /// the mechanism's name `name`.
    pub const fn new(name: &'static str, engine: E) -> Self {
        Self { name, engine }
    }

    /// The engine.
    pub const fn engine(&self) -> &E {
        &self.engine
    }
}

impl Offload<Software> {
    /// The mechanism `ioat-software`: a thread of this process copies.
    pub fn software(config: Config) -> Self {
        Self::new("ioat-software", Software::new(config))
    }
}

impl Default for Offload<Software> {
    fn default() -> Self {
        Self::software(Config::default())
    }
}

/// A peer whose memory the engine reaches, or whose engine reaches this
/// process's.
#[derive(Debug)]
pub struct OffloadPeer {
    process: Arc<PeerProcess>,
    /// Whether its nonce was read: its pid names it here, and no stranger.
    is_reachable: bool,
}

/// A transfer in flight. The job goes first when it is dropped: then nothing
/// uses what comes after it.
#[derive(Debug)]
pub struct OffloadTransfer<J> {
    job: Option<J>,
    plan: Plan,
    /// A long list of our own, which the peer fetches by its address.
    _kept: Option<KeptList>,
    /// This side's memory, if it is this side that copies.
    pieces: Few<Mapped>,
    told_bytes: u64,
}

/// Whether this end's engine copies.
pub(crate) fn copies_here(plan: &Plan) -> bool {
    matches!((plan.role, plan.model), (Role::Receiver, Model::Get) | (Role::Sender, Model::Put))
}

impl<E: CopyEngine> Lmt for Offload<E> {
    type Peer = OffloadPeer;
    type Transfer = OffloadTransfer<E::Job>;

    fn description(&self) -> Description {
        let needs = self.engine.needs();
        Description { needs, ..Description::new(self.name, &[Model::Get, Model::Put]) }
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.engine.available()?;
        Ok(Hello::default())
    }

    /// What the peer's engine copies needs nothing of this process but
    /// addresses.
    fn probe(&mut self, facts: &PeerFacts, _hello: Hello) -> Result<Probed<OffloadPeer>, Unavailable> {
        let Reach { mapped, peer_read, peer_write, .. } = self.engine.reach();
        let abilities = lmt_cma::probe(facts).map(|allowed| Abilities {
            read: allowed.read && mapped && peer_read,
            write: allowed.write && mapped && peer_write,
            cooperate: false,
        });
        let peer = OffloadPeer { process: Arc::clone(&facts.process), is_reachable: abilities.is_ok() };
        Ok(Probed { peer, abilities, times_plain_copy: None })
    }

    #[allow(unsafe_code)] // Lends the buffer's memory to the engine.
    fn prepare(
        &mut self,
        _peer: &mut OffloadPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault> {
        let (cookie, kept) = describe(data, plan.interval)?;
        let pieces = match copies_here(plan) {
            // SAFETY: the pieces are kept in the transfer, and go from there
            // into its job alone. `finish` drops them and returns when
            // the engine is quiet about the job; the transfer's own drop does the same.
            true => unsafe { mapped::lent_by(data, plan.interval) },
            false => Few::None,
        };
        Ok((OffloadTransfer { job: None, plan: *plan, _kept: kept, pieces, told_bytes: 0 }, cookie))
    }

    fn start(
        &mut self,
        peer: &mut OffloadPeer,
        transfer: &mut Self::Transfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        if !peer.is_reachable {
            return Err(Fault::Demote {
                errno: 0,
                for_good: true,
                sentence: "this process cannot reach the peer's memory; the peer must copy".to_owned(),
            });
        }
        let (there, at) = RemoteList::resolve(&peer.process, remote, interval)?;
        let mut list = CopyList::with_peer(Arc::clone(&peer.process));
        fill(&mut list, transfer, (&there, at), interval).map_err(|error| self.fault(&error.to_string()))?;
        transfer.pieces = Few::None;
        transfer.plan.interval = interval;
        let job = self.engine.submit(list).map_err(|error| match error {
            SubmitError::Unavailable(why) => {
                Fault::Demote { errno: why.errno, for_good: true, sentence: why.sentence }
            }
            other => self.fault(&other.to_string()),
        })?;
        transfer.job = Some(job);
        Ok(())
    }

    fn step(
        &mut self,
        peer: &mut OffloadPeer,
        transfer: &mut Self::Transfer,
        _data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let Some(job) = &mut transfer.job else {
            return Err(self.fault(NOT_STARTED));
        };
        let progress = self.engine.poll(job);
        let total_bytes = transfer.plan.interval.bytes();
        match tell(&mut transfer.told_bytes, total_bytes, progress, max_bytes) {
            StepReport::Step(step) => Ok(step),
            StepReport::Failed(failure) => Err(self.fault_of(failure, &peer.process)),
            StepReport::DoneTooEarly => Err(self.fault(DONE_TOO_EARLY)),
        }
    }

    fn finish(&mut self, _peer: &mut OffloadPeer, mut transfer: Self::Transfer) {
        if let Some(job) = transfer.job.take() {
            // Whatever it was still doing, it no longer does.
            let _progress = self.engine.quiesce(job);
        }
    }

    fn regions(&mut self) -> Option<&mut dyn Regions<OffloadPeer>> {
        Some(self)
    }

    fn background(&mut self) -> Option<&mut dyn Background> {
        Some(self)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

impl<E: CopyEngine> Regions<OffloadPeer> for Offload<E> {
    /// At once and by the caller, as nothing is left for it to do meanwhile.
    fn copy_registered(
        &mut self,
        peer: &mut OffloadPeer,
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault> {
        vm::one_sided(&peer.process, local, copy)
    }
}

impl<E: CopyEngine> Background for Offload<E> {
    fn take_doorbell(&mut self, doorbell: &Doorbell) {
        self.engine.take_doorbell(doorbell);
    }
}

impl<E: CopyEngine> Settings for Offload<E> {
    fn keys(&self) -> &'static [Key] {
        self.engine.keys()
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.engine.get(key)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        self.engine.set(key, value)
    }
}

impl<E: CopyEngine> Diagnosis for Offload<E> {
    /// The engine reaches a peer by the kernel's copies between two processes.
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        let mut found = lmt_cma::diagnostics(host);
        found.extend(self.engine.diagnostics(host));
        found
    }
}

impl<E: CopyEngine> Offload<E> {
    fn fault(&self, sentence: &str) -> Fault {
        Fault::Demote { errno: 0, for_good: false, sentence: format!("{}: {sentence}", self.name) }
    }

    fn fault_of(&self, failure: CopyFailure, process: &PeerProcess) -> Fault {
        match failure {
            CopyFailure::Refused { errno } => fault_of(CopyError::Refused(Errno::from_raw(errno)), process),
            other => other.to_fault(self.name),
        }
    }
}

/// Puts the copies of a transfer's `interval` into the list: pieces here, of
/// which the first begins where the plan's interval does, and the peer's list
/// from a place on.
fn fill<J>(
    list: &mut CopyList,
    transfer: &OffloadTransfer<J>,
    (there, mut at): (&RemoteList, Cursor),
    interval: Interval,
) -> Result<(), ListError> {
    let mut skip_bytes = interval.start.saturating_sub(transfer.plan.interval.start);
    let mut left_bytes = interval.bytes();
    for piece in transfer.pieces.iter() {
        let Some(mut here) = piece.advanced(skip_bytes) else {
            skip_bytes -= piece.bytes() as u64;
            continue;
        };
        skip_bytes = 0;
        while let Some(piece) = at.take(there.as_slice(), left_bytes.min(here.bytes() as u64)) {
            let segment = there.as_slice()[piece.index];
            let remote = Place::Peer(segment.address.saturating_add(piece.offset));
            let (from, to) = match transfer.plan.role {
                Role::Receiver => (remote, Place::Mapped(here)),
                Role::Sender => (Place::Mapped(here), remote),
            };
            list.push(from, to, piece.bytes)?;
            left_bytes -= piece.bytes;
            let Some(rest) = here.advanced(piece.bytes) else { break };
            here = rest;
        }
    }
    match left_bytes {
        0 => Ok(()),
        left => Err(ListError::TooShort { bytes: interval.bytes(), room: interval.bytes() - left }),
    }
}

#[cfg(test)]
#[path = "offload_tests.rs"]
mod tests;
