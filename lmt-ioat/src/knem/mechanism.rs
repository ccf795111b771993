//! Messages by KNEM's DMA engine.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::mechanism::{
    Cookie, Description, Diagnosis, Fault, Hello, Interval, Lmt, Needs, PeerFacts, Plan, Probed, Role, Step,
    Unavailable,
};
use lmt_core::process::PeerProcess;
use lmt_knem::ioctl::IoctlDriver;
use lmt_knem::{Driver, KnemLmt, KnemPeer, KnemTransfer};

use super::dma::{How, KnemDma, KnemJob};
use super::shared::Shared;
use crate::engine::{CopyEngine, SubmitError};
use crate::few::Few;
use crate::mapped::{self, Mapped};
use crate::offload::copies_here;
use crate::places::{CopyList, ListError, Place};
use crate::steps::{DONE_TOO_EARLY, NOT_STARTED, StepReport, tell};

const NAME: &str = "ioat-knem";

/// The mechanism `ioat-knem`: regions as KNEM's own mechanism has them, copied
/// by the driver's DMA engine in the background.
#[derive(Debug)]
pub struct OffloadKnem<D: Driver = IoctlDriver> {
    regions: KnemLmt<Shared<D>>,
    how: How,
    is_one_by_one: bool,
}

impl<D: Driver> OffloadKnem<D> {
    /// A new instance; the driver is opened when the first peer is greeted.
    pub fn new(how: How) -> Self {
        Self { regions: KnemLmt::new(), how, is_one_by_one: false }
    }

    /// See [`KnemDma::one_by_one`].
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { is_one_by_one: true, ..self }
    }

    /// The engine of the opened driver.
    fn engine(&mut self) -> Option<KnemDma<D>> {
        let engine = KnemDma::new(self.regions.driver()?.clone(), self.how);
        Some(if self.is_one_by_one { engine.one_by_one() } else { engine })
    }
}

impl<D: Driver> Default for OffloadKnem<D> {
    fn default() -> Self {
        Self::new(How::default())
    }
}

/// A peer.
#[derive(Debug)]
pub struct OffloadKnemPeer {
    regions: KnemPeer,
    process: Arc<PeerProcess>,
}

/// A transfer in flight. The job goes first when it is dropped.
#[derive(Debug)]
pub struct OffloadKnemTransfer<D: Driver> {
    job: Option<KnemJob<D>>,
    regions: KnemTransfer,
    plan: Plan,
    /// This side's memory, if it is this side that copies.
    pieces: Few<Mapped>,
    told_bytes: u64,
}

impl<D: Driver> Lmt for OffloadKnem<D> {
    type Peer = OffloadKnemPeer;
    type Transfer = OffloadKnemTransfer<D>;

    fn description(&self) -> Description {
        // A device behind a module.
        Description { name: NAME, needs: Needs::Device, ..self.regions.description() }
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        let hello = self.regions.hello()?;
        match self.engine() {
            Some(mut engine) => engine.available()?,
            None => return Err(closed()),
        }
        Ok(hello)
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<OffloadKnemPeer>, Unavailable> {
        let process = Arc::clone(&facts.process);
        Ok(self.regions.probe(facts, hello)?.map(|regions| OffloadKnemPeer { regions, process }))
    }

    #[allow(unsafe_code)] // Lends the buffer's memory to the engine.
    fn prepare(
        &mut self,
        peer: &mut OffloadKnemPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(Self::Transfer, Cookie), Fault> {
        let (regions, cookie) = self.regions.prepare(&mut peer.regions, plan, data)?;
        let pieces = match copies_here(plan) {
            // SAFETY: the pieces are kept in the transfer, and go from there
            // into its job alone. `finish` drops them and returns when
            // the job's drop has waited for the driver; the transfer's own drop does the same.
            true => unsafe { mapped::lent_by(data, plan.interval) },
            false => Few::None,
        };
        Ok((OffloadKnemTransfer { job: None, regions, plan: *plan, pieces, told_bytes: 0 }, cookie))
    }

    fn start(
        &mut self,
        peer: &mut OffloadKnemPeer,
        transfer: &mut Self::Transfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        self.regions.start(&mut peer.regions, &mut transfer.regions, remote, interval)?;
        let mut list = CopyList::with_peer(Arc::clone(&peer.process));
        fill(&mut list, transfer, interval).map_err(|error| fault(&error.to_string()))?;
        transfer.pieces = Few::None;
        transfer.plan.interval = interval;
        let mut engine = self.engine().ok_or_else(|| given_up(closed()))?;
        transfer.job = Some(engine.submit(list).map_err(|error| match error {
            SubmitError::Unavailable(why) => given_up(why),
            other => fault(&other.to_string()),
        })?);
        Ok(())
    }

    fn step(
        &mut self,
        _peer: &mut OffloadKnemPeer,
        transfer: &mut Self::Transfer,
        _data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let mut engine = self.engine().ok_or_else(|| given_up(closed()))?;
        let Some(job) = &mut transfer.job else { return Err(fault(NOT_STARTED)) };
        let progress = engine.poll(job);
        match tell(&mut transfer.told_bytes, transfer.plan.interval.bytes(), progress, max_bytes) {
            StepReport::Step(step) => Ok(step),
            StepReport::Failed(failure) => Err(failure.to_fault(NAME)),
            StepReport::DoneTooEarly => Err(fault(DONE_TOO_EARLY)),
        }
    }

    fn finish(&mut self, peer: &mut OffloadKnemPeer, mut transfer: Self::Transfer) {
        // Its drop waits until the driver is quiet.
        drop(transfer.job.take());
        self.regions.finish(&mut peer.regions, transfer.regions);
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

impl<D: Driver> Diagnosis for OffloadKnem<D> {
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        let mut found = Diagnosis::diagnostics(&self.regions, host);
        found.push(super::diagnostics::dma_channels(host));
        found
    }
}

/// Puts the copies of a transfer's `interval` into the list.
fn fill<D: Driver>(
    list: &mut CopyList,
    transfer: &OffloadKnemTransfer<D>,
    interval: Interval,
) -> Result<(), ListError> {
    let short = |room| ListError::TooShort { bytes: interval.bytes(), room };
    let Some((cookie, begins_at)) = transfer.regions.remote() else { return Err(short(0)) };
    let mut at = transfer.plan.interval.start;
    for piece in transfer.pieces.iter() {
        let behind = at + piece.bytes() as u64;
        let (from, to) = (at.max(interval.start), behind.min(interval.end));
        if from < to {
            let here = piece.advanced(from - at).map(Place::Mapped).ok_or(short(0))?;
            let offset = from.checked_sub(begins_at).ok_or(short(0))?;
            let there = Place::Region { cookie, offset };
            match transfer.plan.role {
                Role::Receiver => list.push(there, here, to - from)?,
                Role::Sender => list.push(here, there, to - from)?,
            }
        }
        at = behind;
    }
    if list.total_bytes() == interval.bytes() { Ok(()) } else { Err(short(list.total_bytes())) }
}

fn fault(sentence: &str) -> Fault {
    Fault::Demote { errno: 0, for_good: false, sentence: format!("{NAME}: {sentence}") }
}

fn given_up(why: Unavailable) -> Fault {
    Fault::Demote { errno: why.errno, for_good: true, sentence: why.sentence }
}

fn closed() -> Unavailable {
    let sentence = "the KNEM driver is not open; load its module, let this user open /dev/knem, and greet \
                    the peer by another endpoint"
        .to_owned();
    Unavailable { errno: 0, sentence }
}
