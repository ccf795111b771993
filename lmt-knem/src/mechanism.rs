//! Messages by regions: the passive side declares its memory and sends the
//! cookie, the other copies (knem-jpdc2013, section 4.4).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lmt_cma::vm;
use lmt_core::buffer::{Access, Buffer};
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{
    Abilities, BothEnds, Cookie, CopiedPart, Description, Diagnosis, Direction, Fault, Hello, Interval, Lmt,
    Model, PeerFacts, Plan, Probed, Regions, RegisteredCopy, Role, Step, Unavailable,
};
use lmt_core::process::PeerProcess;
use lmt_core::region::Protection;

use crate::driver::{DYING, Driver};
use crate::error::KnemError;
use crate::faults::{demote, fault, fault_of};
use crate::ioctl::{IoctlDriver, PinCache, PinCacheConfig};
use crate::sys::{ProbeMemory, lend_part};
use crate::transfer::{KnemTransfer, Remote, copy_some};
use crate::types::{InlineCopy, Length, RegionCookie, Uses};
use crate::user::UserDriver;

/// Messages by KNEM's kernel module: `knem-ioctl`.
pub type KnemIoctl = KnemLmt<IoctlDriver>;

/// Messages by the same regions without the module: `knem-user`.
pub type KnemUser = KnemLmt<UserDriver>;

/// Messages by the regions of a driver. It opens the driver when the first peer
/// is to be told of it.
pub struct KnemLmt<D> {
    state: State<D>,
    /// Whose regions are known here, and whether the peer still is.
    met: Vec<(EndpointId, Weak<()>)>,
    /// What is done with a driver that has just been opened.
    set_up: Box<dyn FnMut(&mut D) + Send>,
}

enum State<D> {
    Closed,
    Absent(Unavailable),
    /// The driver comes first: it ends its regions before their memory goes.
    Open(Box<Opened<D>>),
}

struct Opened<D> {
    driver: D,
    probe: RegionCookie,
    nonce: [u8; ProbeMemory::NONCE_BYTES],
    _memory: ProbeMemory,
}

impl<D> std::fmt::Debug for KnemLmt<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Closed => "closed",
            State::Absent(_) => "absent",
            State::Open(_) => "open",
        };
        f.debug_struct("KnemLmt").field("state", &state).field("met", &self.met.len()).finish_non_exhaustive()
    }
}

impl<D: Driver> Default for KnemLmt<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl KnemLmt<IoctlDriver> {
    /// A new instance that keeps regions pinned when their messages are done
    /// ([`IoctlDriver::enable_pin_cache`]), and the handle that must be told of
    /// memory before it is unmapped, given back or replaced.
    pub fn keeping(keeping: PinCacheConfig) -> (Self, PinCache) {
        let kept = PinCache::new();
        let teller = kept.clone();
        (
            Self::with(move |driver: &mut IoctlDriver| {
                driver.enable_pin_cache_invalidated_by(keeping, teller.clone())
            }),
            kept,
        )
    }
}

impl<D: Driver> KnemLmt<D> {
    /// A new instance.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// A new instance whose driver is set up once it is open; for instance told
    /// to keep regions.
    pub fn with(set_up: impl FnMut(&mut D) + Send + 'static) -> Self {
        Self { state: State::Closed, met: Vec::new(), set_up: Box::new(set_up) }
    }

    /// An instance over a driver that a test has opened.
    #[cfg(test)]
    pub(crate) fn over(driver: D) -> Self {
        let opened = Opened::of(driver).expect("a driver");
        Self { state: State::Open(Box::new(opened)), ..Self::new() }
    }

    /// The driver, once a peer was told of it.
    pub fn driver(&mut self) -> Option<&mut D> {
        match &mut self.state {
            State::Open(opened) => Some(&mut opened.driver),
            State::Closed | State::Absent(_) => None,
        }
    }

    fn open(&mut self) -> Result<&mut Opened<D>, Unavailable> {
        if matches!(self.state, State::Closed) {
            self.state = match Opened::new() {
                Ok(mut opened) => {
                    (self.set_up)(&mut opened.driver);
                    State::Open(Box::new(opened))
                }
                Err(error) => State::Absent(unavailable(&error)),
            };
        }
        match &mut self.state {
            State::Open(opened) => Ok(opened),
            State::Absent(reason) => Err(reason.clone()),
            State::Closed => Err(unavailable(&KnemError::NotRegistered)),
        }
    }

    /// The open driver.
    fn open_driver(&mut self) -> Result<&mut D, Fault> {
        if let Err(Unavailable { errno, sentence }) = self.open() {
            return Err(Fault::Demote { errno, for_good: true, sentence });
        }
        match &mut self.state {
            State::Open(opened) => Ok(&mut opened.driver),
            State::Closed | State::Absent(_) => Err(fault(&KnemError::NotRegistered)),
        }
    }

    /// Gives up the tables of peers that are gone.
    fn drop_dead_peers(&mut self) {
        let State::Open(opened) = &mut self.state else { return };
        self.met.retain(|(owner, peer)| {
            let is_there = peer.strong_count() > 0;
            if !is_there {
                opened.driver.part(*owner);
            }
            is_there
        });
    }

    /// What this process reaches of a peer.
    fn reach(&mut self, facts: &PeerFacts, mut hello: Hello) -> Result<(KnemPeer, Abilities), Unavailable> {
        self.drop_dead_peers();
        let known_before = self.met.clone();
        let opened = self.open()?;
        let bad = || refuse("the peer's handshake cannot be read; its lmt may be of another version");
        let (short, rest) = hello.bytes.split_first_chunk().ok_or_else(bad)?;
        let (nonce, rest) = rest.split_first_chunk::<{ ProbeMemory::NONCE_BYTES }>().ok_or_else(bad)?;
        let (short, nonce): ([u8; RegionCookie::SHORT_BYTES], Nonce) = (*short, *nonce);
        hello.bytes = rest.to_vec();
        let process = Arc::clone(&facts.process);
        let owner = opened.driver.meet(process, hello).map_err(|error| unavailable(&error))?;
        // Who is known already stays known, whatever becomes of this greeting:
        // it may be another's who uses his name, and transfers may be in flight.
        let known =
            known_before.into_iter().find(|(met, _)| *met == owner).and_then(|(_, token)| token.upgrade());
        let region = RegionCookie::from_short_bytes(owner, short);
        match abilities(opened, region, &nonce) {
            Ok(abilities) => {
                let token = known.unwrap_or_default();
                self.met.retain(|(met, _)| *met != owner);
                self.met.push((owner, Arc::downgrade(&token)));
                let reached = Some((owner, token));
                Ok((KnemPeer::new(&facts.process, reached), abilities))
            }
            Err(reason) => {
                if known.is_none() {
                    opened.driver.part(owner);
                    self.met.retain(|(met, _)| *met != owner);
                }
                Err(reason)
            }
        }
    }
}

impl<D: Driver> Opened<D> {
    fn new() -> Result<Self, KnemError> {
        Self::of(D::open()?)
    }

    fn of(mut driver: D) -> Result<Self, KnemError> {
        let nonce = own_bytes();
        let memory = ProbeMemory::new(nonce);
        let lent = memory.lend().unwrap_or(Buffer::empty(Access::Write));
        let probe = driver.create_region(lent, Protection::READ_WRITE, Uses::Many)?;
        Ok(Self { driver, probe, nonce, _memory: memory })
    }

    /// Copies between bytes here and a peer's probe region.
    fn try_copy(
        &mut self,
        region: RegionCookie,
        direction: Direction,
        offset: u64,
        bytes: &mut Nonce,
    ) -> bool {
        self.probe_copy(region, direction, offset, bytes).is_ok()
    }

    fn probe_copy(
        &mut self,
        region: RegionCookie,
        direction: Direction,
        region_offset: u64,
        bytes: &mut Nonce,
    ) -> Result<(), KnemError> {
        let length = Length::Bounded(bytes.len() as u64);
        let copy = InlineCopy { direction, region, region_offset, local_offset: 0, length };
        lmt_core::buffer::lend_mut(bytes, |local| self.driver.try_inline_copy(local, &copy))?;
        Ok(())
    }
}

type Nonce = [u8; ProbeMemory::NONCE_BYTES];

/// 16 bytes that nobody else writes; they guard against chance only.
fn own_bytes() -> Nonce {
    let half = || RandomState::new().build_hasher().finish();
    (u128::from(half()) << 64 | u128::from(half())).to_ne_bytes()
}

/// How often written bytes may come back changed: other peers that probe at the
/// same moment may write there too.
const WRITE_TRIES: u32 = 16;

/// A peer, and whose regions are its.
#[derive(Debug)]
pub struct KnemPeer {
    process: Arc<PeerProcess>,
    /// None where its regions cannot be reached from here.
    reached: Option<(EndpointId, Arc<()>)>,
}

impl KnemPeer {
    fn new(process: &Arc<PeerProcess>, reached: Option<(EndpointId, Arc<()>)>) -> Self {
        Self { process: Arc::clone(process), reached }
    }

    fn process(&self) -> &PeerProcess {
        &self.process
    }
}

/// Whether this side declares its memory.
fn is_passive(plan: &Plan) -> bool {
    let one = matches!((plan.role, plan.model), (Role::Sender, Model::Get) | (Role::Receiver, Model::Put));
    one || plan.model == Model::Both
}

/// The cookie of a region that begins at message offset `start`: 8 bytes for
/// the message's beginning, so that it travels in one cache line.
fn to_cookie(region: &RegionCookie, start: u64) -> Option<Cookie> {
    let short = region.to_short_bytes();
    match start {
        0 => Cookie::new(&short),
        _ => Cookie::new(&[short, start.to_be_bytes()].concat()),
    }
}

/// Reads [`to_cookie`].
fn from_cookie(owner: EndpointId, cookie: &Cookie) -> Option<(RegionCookie, u64)> {
    let (short, start) = cookie.as_bytes().split_at_checked(RegionCookie::SHORT_BYTES)?;
    let region = RegionCookie::from_short_bytes(owner, short.try_into().ok()?);
    let start = if start.is_empty() { 0 } else { u64::from_be_bytes(start.try_into().ok()?) };
    Some((region, start))
}

impl<D: Driver> Lmt for KnemLmt<D> {
    type Peer = KnemPeer;
    type Transfer = KnemTransfer;

    fn description(&self) -> Description {
        let models: &[Model] = match D::copies_by_both_ends() {
            true => &[Model::Get, Model::Put, Model::Both],
            false => &[Model::Get, Model::Put],
        };
        Description { needs: D::needs(), ..Description::new(D::mechanism_name(), models) }
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.drop_dead_peers();
        let opened = self.open()?;
        let mut hello = opened.driver.introduce().map_err(|error| unavailable(&error))?;
        let ours = [&opened.probe.to_short_bytes()[..], &opened.nonce].concat();
        hello.bytes.splice(0..0, ours);
        Ok(hello)
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<KnemPeer>, Unavailable> {
        match self.reach(facts, hello) {
            Ok((peer, abilities)) => Ok(Probed::new(peer, abilities)),
            // What the peer copies needs a region of this process, and nothing of the peer.
            Err(why) if self.open().is_ok() => {
                let peer = KnemPeer::new(&facts.process, None);
                Ok(Probed { peer, abilities: Err(why), times_plain_copy: None })
            }
            Err(why) => Err(why),
        }
    }

    fn prepare(
        &mut self,
        peer: &mut KnemPeer,
        plan: &Plan,
        data: &Buffer,
    ) -> Result<(KnemTransfer, Cookie), Fault> {
        let mut transfer = KnemTransfer {
            plan: *plan,
            declared: None,
            remote: None,
            moved_bytes: 0,
            in_flight: None,
            failing_since: None,
        };
        if !is_passive(plan) {
            return Ok((transfer, Cookie::empty()));
        }
        let driver = self.open_driver()?;
        if (plan.model, plan.role) == (Model::Both, Role::Receiver) && !both_ends_copy(driver) {
            // So the sender is not asked to help.
            return Ok((transfer, Cookie::empty()));
        }
        let lent = lend_part(data, plan.interval.start..plan.interval.end)
            .ok_or_else(|| demote("the message is not memory that was lent"))?;
        let protection = if plan.role == Role::Sender { Protection::READ } else { Protection::WRITE };
        let region = driver.create_region(lent, protection, Uses::Many).map_err(|e| fault(&e))?;
        transfer.declared = Some(region);
        let Some(cookie) = to_cookie(&region, plan.interval.start) else {
            // Known to nobody.
            self.finish(peer, transfer);
            return Err(demote(
                "the region's cookie is longer than a packet can take; use another mechanism",
            ));
        };
        Ok((transfer, cookie))
    }

    fn start(
        &mut self,
        peer: &mut KnemPeer,
        transfer: &mut KnemTransfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        let Some((owner, _)) = &peer.reached else { return Err(unreached()) };
        let driver = self.open_driver()?;
        transfer.plan.interval = interval;
        transfer.moved_bytes = 0;
        transfer.remote = Some(find(driver, *owner, peer.process(), remote, interval)?);
        Ok(())
    }

    fn step(
        &mut self,
        peer: &mut KnemPeer,
        transfer: &mut KnemTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let t = transfer;
        let Some((region, start)) = t.remote else {
            return Err(demote("a step was asked for before the peer's cookie was there"));
        };
        let bytes = max_bytes.min(t.plan.interval.bytes() - t.moved_bytes);
        let mut copied_bytes = 0;
        if bytes > 0 {
            let front = t.plan.interval.start + t.moved_bytes;
            let copy = InlineCopy {
                direction: if t.plan.role == Role::Receiver { Direction::Get } else { Direction::Put },
                region,
                region_offset: front - start,
                local_offset: front,
                length: Length::Bounded(bytes),
            };
            let driver = self.open_driver()?;
            match copy_some(driver, &mut t.in_flight, data, &copy) {
                // Nothing yet: other peers are not kept waiting for its end.
                Err(KnemError::OwnerDying) => return Ok(Step { bytes: 0, done: false }),
                copied => copied_bytes = copied.map_err(|error| fault_of(&error, peer.process()))?,
            }
            t.moved_bytes += copied_bytes;
        }
        Ok(Step { bytes: copied_bytes, done: t.moved_bytes == t.plan.interval.bytes() })
    }

    fn finish(&mut self, _peer: &mut KnemPeer, transfer: KnemTransfer) {
        if let (Some(in_flight), State::Open(opened)) = (&transfer.in_flight, &mut self.state) {
            // The driver is at work in the message's memory, which is given
            // back next. What it has not told of by the limit has no end that
            // could be waited for.
            while let Ok(None) = opened.driver.poll(in_flight.id)
                && !in_flight.is_lost()
            {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        if let (Some(region), State::Open(opened)) = (transfer.declared, &mut self.state) {
            // Declared by `prepare` and destroyed once, here; a forked child,
            // which may not, ends nothing of its parent's.
            let _memory = opened.driver.destroy_region(&region);
        }
    }

    fn both_ends(&mut self) -> Option<&mut dyn BothEnds<KnemPeer, KnemTransfer>> {
        if D::copies_by_both_ends() { Some(self) } else { None }
    }

    fn regions(&mut self) -> Option<&mut dyn Regions<KnemPeer>> {
        if D::reaches_all_memory() { Some(self) } else { None }
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

/// The receiver copies out of the sender's region from the front, the sender into the
/// receiver's from the back.
impl<D: Driver> BothEnds<KnemPeer, KnemTransfer> for KnemLmt<D> {
    fn is_ready(
        &mut self,
        _peer: &mut KnemPeer,
        transfer: &mut KnemTransfer,
        _ahead: Option<(&Cookie, Interval)>,
    ) -> Result<bool, Fault> {
        match transfer.plan.role {
            Role::Sender if !both_ends_copy(self.open_driver()?) => {
                Err(demote("the driver copies in the background; the receiver must copy"))
            }
            _ => Ok(true),
        }
    }

    fn copy_part(
        &mut self,
        peer: &mut KnemPeer,
        transfer: &mut KnemTransfer,
        data: &mut Buffer,
        part: Interval,
    ) -> CopiedPart {
        let KnemTransfer { plan, remote, in_flight, failing_since, .. } = transfer;
        let copied = match (*remote, self.open_driver()) {
            (Some((region, start)), Ok(driver)) => {
                let copy = InlineCopy {
                    direction: if plan.role == Role::Receiver { Direction::Get } else { Direction::Put },
                    region,
                    region_offset: part.start - start,
                    local_offset: part.start,
                    length: Length::Bounded(part.bytes()),
                };
                copy_some(driver, in_flight, data, &copy)
            }
            (None, _) => Err(KnemError::NotRegistered),
            (_, Err(fault)) => return CopiedPart { bytes: 0, fault: Some(fault) },
        };
        let fault = match copied {
            Ok(bytes) => return CopiedPart { bytes, fault: None },
            // It is known soon whether it has died.
            Err(KnemError::OwnerDying) => None,
            // An honest end's region is there until both have left. A process
            // that is killed loses it a moment before its pidfd tells.
            Err(error)
                if may_be_death::<D>(&error)
                    && failing_since.get_or_insert_with(Instant::now).elapsed() < DYING =>
            {
                None
            }
            Err(error) => Some(fault_of(&error, peer.process())),
        };
        CopiedPart { bytes: 0, fault }
    }
}

/// Whether the cores that call make this driver's copies. What is in flight in
/// the background would keep the other end waiting.
fn both_ends_copy<D: Driver>(driver: &D) -> bool {
    D::copies_by_both_ends() && !driver.info().forced.is_asynchronous()
}

/// Whether a copy fails so, too, whose region's owner is being killed.
fn may_be_death<D: Driver>(error: &KnemError) -> bool {
    match error {
        KnemError::NotRegistered => true,
        KnemError::BadMemory(_) | KnemError::CopyFailed => !D::reports_dying_owners(),
        _ => false,
    }
}

impl<D: Driver> Regions<KnemPeer> for KnemLmt<D> {
    /// Of an endpoint's own regions, whose table its engine has looked at.
    fn copy_registered(
        &mut self,
        peer: &mut KnemPeer,
        local: &mut Buffer,
        copy: &RegisteredCopy<'_>,
    ) -> Result<u64, Fault> {
        if peer.reached.is_none() {
            return Err(unreached());
        }
        vm::one_sided(peer.process(), local, copy)
    }
}

impl<D: Driver> Diagnosis for KnemLmt<D> {
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        D::diagnostics(host)
    }
}

/// The peer's region behind its cookie, which is untrusted, if it has the whole
/// interval.
fn find<D: Driver>(
    driver: &mut D,
    owner: EndpointId,
    process: &PeerProcess,
    cookie: &Cookie,
    interval: Interval,
) -> Result<Remote, Fault> {
    let (region, start) = from_cookie(owner, cookie).ok_or_else(bad_cookie)?;
    let bytes = driver.region_bytes(&region).map_err(|e| fault_of(&e, process))?;
    let first = interval.start.checked_sub(start).ok_or_else(bad_cookie)?;
    if first.checked_add(interval.bytes()).is_none_or(|end| end > bytes) {
        return Err(bad_cookie());
    }
    Ok((region, start))
}

/// Finds out by real copies what can be done with a peer's regions.
fn abilities<D: Driver>(
    opened: &mut Opened<D>,
    region: RegionCookie,
    nonce: &Nonce,
) -> Result<Abilities, Unavailable> {
    let mut seen = Nonce::default();
    let read = opened.probe_copy(region, Direction::Get, 0, &mut seen);
    read.map_err(|error| unavailable(&error))?;
    if seen != *nonce {
        return Err(refuse("the driver shows other bytes than the peer's; both must use the same driver"));
    }
    let write = (0..WRITE_TRIES).any(|_| {
        let (mut own, mut back) = (own_bytes(), Nonce::default());
        let scratch = ProbeMemory::place(RandomState::new().build_hasher().finish());
        opened.try_copy(region, Direction::Put, scratch, &mut own)
            && opened.try_copy(region, Direction::Get, scratch, &mut back)
            && own == back
    });
    Ok(Abilities { read: true, write, cooperate: false })
}

fn refuse(sentence: &str) -> Unavailable {
    Unavailable { errno: 0, sentence: sentence.to_owned() }
}

fn unavailable(error: &KnemError) -> Unavailable {
    Unavailable { errno: error.errno(), sentence: error.to_string() }
}

fn bad_cookie() -> Fault {
    demote("the peer's cookie does not describe the message; its lmt may be of another version")
}

fn unreached() -> Fault {
    let sentence = "this process cannot reach the peer's regions; the peer must copy".to_owned();
    Fault::Demote { errno: 0, for_good: true, sentence }
}

#[cfg(test)]
#[path = "mechanism_tests.rs"]
mod tests;
