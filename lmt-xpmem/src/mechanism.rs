//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_cma::remote::RemoteList;
use lmt_cma::segments::describe_within;
use lmt_core::buffer::Buffer;
use lmt_core::cursor::Cursor;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::mechanism::{
    Abilities, BothEnds, Cookie, CopiedPart, Description, Diagnosis, Fault, Hello, Interval, Lmt, Model,
    Needs, PeerFacts, Plan, ProbeArea, Probed, Settings, Step, Unavailable,
};

use crate::attachments::{Attachments, Far};
use crate::config::Config;
use crate::device::Device;
use crate::driver::{Driver, Permit};
use crate::peer::{XpmemPeer, XpmemTransfer};
use crate::refusal::unavailable;

/// Version of what the two ends tell each other; both must have the same.
const VERSION: u8 = 1;

/// The mechanism, over the kernel module or what stands in for it.
#[derive(Debug)]
pub struct Xpmem<D: Driver = Device> {
    driver: D,
    attachments: Attachments<D>,
    last_peer: u64,
}

impl Xpmem {
    /// A new instance; it opens nothing before it is used.
    pub fn new() -> Self {
        Self::over(Device, Config::default())
    }
}

impl Default for Xpmem {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Driver> Xpmem<D> {
    /// A new instance over another driver.
    pub fn over(driver: D, config: Config) -> Self {
        Self { driver, attachments: Attachments::new(config), last_peer: 0 }
    }

    /// Reads the peer's nonce and writes to its scratch bytes.
    fn try_memory(&mut self, peer: &XpmemPeer<D>, facts: &PeerFacts) -> Result<Abilities, Unavailable> {
        let refused = |fault: Fault| match fault {
            Fault::Demote { errno, sentence, .. } => Unavailable { errno, sentence },
            dead => Unavailable { errno: 0, sentence: dead.to_string() },
        };
        let mut nonce = [0; 16];
        self.attachments.fetch(peer, facts.probe_address, &mut nonce).map_err(refused)?;
        if nonce != facts.nonce {
            let sentence = "the peer's segment is of another process (its nonce is not there); run both in one pid namespace";
            return Err(Unavailable { errno: 0, sentence: sentence.to_owned() });
        }
        let scratch = facts.probe_address.wrapping_add(std::mem::offset_of!(ProbeArea, scratch) as u64);
        let can_write = self.attachments.put(peer, scratch, &mut nonce).is_ok();
        Ok(Abilities { read: true, write: can_write, cooperate: false })
    }
}

impl<D: Driver> Lmt for Xpmem<D> {
    type Peer = XpmemPeer<D>;
    type Transfer = XpmemTransfer;

    fn description(&self) -> Description {
        let models = &[Model::Both, Model::Get, Model::Put];
        Description { needs: Needs::Module, ..Description::new(D::NAME, models) }
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        let segment = self.driver.segment().map_err(unavailable)?;
        let bytes = [&[VERSION], &segment.to_le_bytes()[..]].concat();
        Ok(Hello { bytes, descriptors: Vec::new() })
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<XpmemPeer<D>>, Unavailable> {
        let segment = match hello.bytes.split_first() {
            Some((&VERSION, segment)) => <[u8; 8]>::try_from(segment).ok().map(i64::from_le_bytes),
            _ => None,
        };
        let segment = segment.ok_or_else(|| Unavailable {
            errno: 0,
            sentence: "the peer's xpmem is of another version of lmt; use the same in both".to_owned(),
        })?;
        let permit = Permit::get(self.driver.clone(), segment).map_err(unavailable);
        self.last_peer += 1;
        let process = Arc::clone(&facts.process);
        let mut peer = XpmemPeer { number: self.last_peer, process, permit: permit.as_ref().ok().cloned() };
        let abilities = permit.and_then(|_| self.try_memory(&peer, facts));
        if abilities.is_err() {
            self.attachments.forget(peer.number);
            peer.permit = None;
        }
        Ok(Probed { peer, abilities, times_plain_copy: None })
    }

    fn forget_peer(&mut self, peer: XpmemPeer<D>) {
        self.attachments.forget(peer.number);
    }

    fn prepare(
        &mut self,
        _: &mut XpmemPeer<D>,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(XpmemTransfer, Cookie), Fault> {
        let (cookie, kept) = describe_within(plan.cookie_bytes(), data, plan.interval)?;
        let transfer = XpmemTransfer {
            plan: *plan,
            _kept: kept,
            remote: RemoteList::default(),
            remote_at: Cursor::default(),
            local_at: Cursor::default(),
            left_bytes: 0,
        };
        Ok((transfer, cookie))
    }

    fn start(
        &mut self,
        peer: &mut XpmemPeer<D>,
        transfer: &mut XpmemTransfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        let fetch = |address, list: &mut [u8]| self.attachments.fetch(peer, address, list);
        (transfer.remote, transfer.remote_at) = RemoteList::resolve_by(remote, interval, fetch)?;
        transfer.plan.interval = interval;
        transfer.left_bytes = interval.bytes();
        Ok(())
    }

    fn step(
        &mut self,
        peer: &mut XpmemPeer<D>,
        transfer: &mut XpmemTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        if transfer.left_bytes == transfer.plan.interval.bytes() {
            transfer.local_at = Cursor::at(data.segments(), transfer.plan.interval.start);
        }
        let XpmemTransfer { plan, local_at, remote, remote_at, left_bytes, .. } = transfer;
        let far = &mut Far { segments: remote.as_slice(), at: remote_at };
        let bytes = max_bytes.min(*left_bytes);
        let copied = self.attachments.copy(peer, plan.role, (data, local_at), far, bytes);
        if let Some(fault) = copied.fault {
            return Err(fault);
        }
        *left_bytes -= bytes;
        Ok(Step { bytes, done: *left_bytes == 0 })
    }

    fn finish(&mut self, _: &mut XpmemPeer<D>, _: XpmemTransfer) {
        self.attachments.trim();
    }

    fn both_ends(&mut self) -> Option<&mut dyn BothEnds<XpmemPeer<D>, XpmemTransfer>> {
        Some(self)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.attachments.config)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

/// The receiver reads from the front, the sender writes from the back.
impl<D: Driver> BothEnds<XpmemPeer<D>, XpmemTransfer> for Xpmem<D> {
    fn copy_part(
        &mut self,
        peer: &mut XpmemPeer<D>,
        transfer: &mut XpmemTransfer,
        data: &mut Buffer,
        part: Interval,
    ) -> CopiedPart {
        let XpmemTransfer { plan, remote, remote_at, .. } = transfer;
        let (segments, mut at) = (remote.as_slice(), *remote_at);
        at.advance(segments, part.start - plan.interval.start);
        let mut local_at = Cursor::at(data.segments(), part.start);
        let far = &mut Far { segments, at: &mut at };
        self.attachments.copy(peer, plan.role, (data, &mut local_at), far, part.bytes())
    }
}

impl<D: Driver> Diagnosis for Xpmem<D> {
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        crate::diagnostics::diagnostics(host)
    }
}
