//! The mechanism as the rendezvous protocol sees it.

use std::sync::Arc;

use lmt_core::buffer::Buffer;
use lmt_core::checkup::{Finding, Host};
use lmt_core::claims::{Claims, PeerClaims, Side};
use lmt_core::crossing::{Crossing, Limits, Looks, Slow};
use lmt_core::cursor::Cursor;
use lmt_core::keys::{Key, Kind, Value};
use lmt_core::mechanism::{
    Abilities, Cookie, DeclaredCopy, Fault, Gathered, Hello, Interval, Lines, Lmt, Model, PeerFacts, Plan,
    Role, Step, Unavailable,
};
use lmt_core::process::PeerProcess;

use crate::both;
use crate::remote::RemoteList;
use crate::segments::{KeptList, RemoteSegment, base_of, demote, describe, describe_contiguous};
use crate::vm::{self, Local, fault_of};

/// The mechanism.
#[derive(Debug)]
pub struct Cma {
    pub(crate) claims: Claims,
    /// Whether messages are passed on whose lines cross between the caches or come from memory.
    passes_on: bool,
}

impl Default for Cma {
    fn default() -> Self {
        Self { claims: Claims::default(), passes_on: true }
    }
}

/// Of buffers in use of 512 KiB it was 0.30 to 0.65, nine in ten: what was passed on is so until it
/// is 0.66.
const BEYOND: f32 = 7.0 / 6.0;

/// Where the next way is faster (docs/mechanisms/cma.md). The time in the caches was 0.67 to
/// 0.93 of what a part took where nobody used the buffers (the middle half of 64 to 256 KiB), at
/// most 0.51 where both did (nineteen in twenty of 64 to 512 KiB). Where nobody uses them it was 0.12
/// to 0.25 out of the caches, and 0.26 and more in them (nineteen in twenty of 64 KiB to 16 MiB); where
/// both use those of 2 to 16 MiB 0.11 to 0.27 and, nine in ten, 0.28 and more.
const CROSSING: Limits = Limits {
    in_use: Slow { above_bytes: 32 << 10, most_bytes: 512 << 10, parts: 0.28..0.57, beyond: BEYOND },
    long_in_use: Some(Slow {
        above_bytes: (2 << 20) - 1,
        most_bytes: 16 << 20,
        parts: 0.05..0.28,
        beyond: 1.0,
    }),
    left_alone: Some(Slow { above_bytes: 32 << 10, most_bytes: 16 << 20, parts: 0.05..0.28, beyond: 1.0 }),
};

/// A copy by a receiver alone has fetched its lines from elsewhere where it takes longer
/// than the time in the caches by so much. Of 16 and 32 KiB that time was at most 0.30 of
/// what a copy took where the sender had written them, and 0.55 and more (nineteen in
/// twenty) where nobody had.
const FETCHED_BELOW: f32 = 0.45;

/// What can be set.
const KEYS: &[Key] = &[Key {
    name: "pass_on",
    kind: Kind::Flag,
    variable: None,
    meaning: "whether senders pass messages on to the next way, as they see by the time of their own copies: those of above 32 KiB and up to 512 KiB while they take lines that the other core has changed, and those of above 32 KiB and up to 16 MiB while they come from memory and the application leaves its buffers alone between messages (from 2 MiB on also where it does not)",
    reason: "there two copies are faster; set it to false where every run is to take the same ways",
}];

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
    pub(crate) crossing: Crossing,
    /// How long messages take that this end copies at once.
    looks: Looks,
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
        Self {
            claims,
            reachable,
            crossing: Crossing::new(CROSSING),
            looks: Looks::default(),
            times_plain_copy: None,
        }
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
    /// Whether the time of this end's next part is of interest.
    pub(crate) is_timed: bool,
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
            is_timed: false,
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

    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        (key == KEYS[0].name).then_some(Value::Flag(self.passes_on))
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match (key, value) {
            ("pass_on", Value::Flag(passes_on)) => {
                self.passes_on = passes_on;
                Ok(())
            }
            (key, value) => Err(format!("there is no key {key} that could be {value:?}")),
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
        let is_timed = peer.crossing.prepare(plan, self.passes_on, data.total_bytes())?;
        let (cookie, kept, side) = match (plan.model, plan.role) {
            (Model::Both, Role::Receiver) => both::prepare(&mut self.claims, peer, plan.interval, data)?,
            _ => {
                let (cookie, kept) = describe(data, plan.interval)?;
                (cookie, kept, None)
            }
        };
        let transfer = CmaTransfer { _kept: kept, side, is_timed, ..CmaTransfer::new(*plan) };
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

    fn exposes(&self) -> bool {
        true
    }

    /// Of contiguous memory there is an address to tell, and nothing to keep.
    fn expose(&mut self, _peer: &mut CmaPeer, data: &Buffer, cookie: &mut Cookie) -> bool {
        match describe_contiguous(data) {
            Some(described) => {
                *cookie = described;
                true
            }
            None => false,
        }
    }

    fn get_at_once(
        &mut self,
        peer: &mut CmaPeer,
        remote: &Cookie,
        data: &mut Buffer,
        bytes: u64,
    ) -> Option<Lines> {
        let address = base_of(remote).filter(|_| peer.reachable)?;
        let begun = peer.looks.begin();
        let remote = [RemoteSegment { address, bytes }];
        let (mut here, mut there) = (Cursor::default(), Cursor::default());
        let copied = vm::copy(peer.process(), Local::Into(data), &mut here, &remote, &mut there, bytes);
        if copied.bytes != bytes || copied.error.is_some() {
            return None;
        }
        // It came without its sender's help, in either model: the next question is nearer.
        peer.claims.pass(bytes);
        Some(peer.looks.end(begun, || crate::speed::time_of_call(bytes), FETCHED_BELOW))
    }

    fn gets_several(&self, remote: &Cookie, data: &Buffer) -> bool {
        base_of(remote).is_some() && data.is_contiguous()
    }

    fn get_several(&mut self, peer: &mut CmaPeer, messages: &mut [Gathered]) -> usize {
        if !peer.reachable {
            return 0;
        }
        let whole = vm::read_several(peer.process(), messages);
        for message in &messages[..whole] {
            peer.claims.pass(message.bytes);
        }
        whole
    }

    fn expects_nobody(&mut self, peer: &mut CmaPeer, bytes: u64) -> bool {
        peer.claims.expects_nobody(bytes)
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
