//! Messages by regions: the passive side declares its memory and sends the
//! cookie, the other copies (knem-jpdc2013, section 4.4).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lmt_cma::vm;
use lmt_core::buffer::{Access, Buffer};
use lmt_core::checkup::{Finding, Host};
use lmt_core::claims::{Claims, PeerClaims};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{
    Abilities, Cookie, DeclaredCopy, Direction, Fault, Hello, Interval, Lmt, Model, Needs, PeerFacts, Plan,
    Role, Step, Unavailable,
};
use lmt_core::process::PeerProcess;
use lmt_core::region::Protection;

use crate::both::{self, Both};
use crate::driver::Driver;
use crate::error::KnemError;
use crate::ioctl::{IoctlDriver, Keeping, KeptRegions};
use crate::sys::{ProbeMemory, lend_part};
use crate::types::{CopyFlags, CopyId, InlineCopy, Length, RegionCookie, Uses};
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
    /// On messages that both ends copy.
    claims: Claims,
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
    /// ([`IoctlDriver::keep_regions`]), and the handle that must be told of
    /// memory before it is unmapped, given back or replaced.
    pub fn keeping(keeping: Keeping) -> (Self, KeptRegions) {
        let kept = KeptRegions::new();
        let teller = kept.clone();
        (
            Self::with(move |driver: &mut IoctlDriver| driver.keep_regions_told_by(keeping, teller.clone())),
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
        Self { state: State::Closed, met: Vec::new(), claims: Claims::default(), set_up: Box::new(set_up) }
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
            State::Closed => Err(unavailable(&KnemError::NotDeclared)),
        }
    }

    /// The open driver, and the claims.
    fn parts(&mut self) -> Result<(&mut D, &mut Claims), Fault> {
        if let Err(Unavailable { errno, sentence }) = self.open() {
            return Err(Fault::Demote { errno, for_good: true, sentence });
        }
        match &mut self.state {
            State::Open(opened) => Ok((&mut opened.driver, &mut self.claims)),
            State::Closed | State::Absent(_) => Err(fault(&KnemError::NotDeclared)),
        }
    }

    /// Gives up the tables of peers that are gone.
    fn part_with_the_gone(&mut self) {
        let State::Open(opened) = &mut self.state else { return };
        self.met.retain(|(owner, peer)| {
            let is_there = peer.strong_count() > 0;
            if !is_there {
                opened.driver.part(*owner);
            }
            is_there
        });
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
    claims: PeerClaims,
    /// None where its regions cannot be reached from here.
    reached: Option<(EndpointId, Arc<()>)>,
}

impl KnemPeer {
    fn new(process: &Arc<PeerProcess>, reached: Option<(EndpointId, Arc<()>)>) -> Self {
        Self { claims: PeerClaims::new(Arc::clone(process)), reached }
    }

    fn process(&self) -> &PeerProcess {
        self.claims.process()
    }
}

/// A region of a peer, and the message offset at which it begins.
pub(crate) type Remote = (RegionCookie, u64);

/// A transfer under way.
#[derive(Debug)]
pub struct KnemTransfer {
    pub(crate) plan: Plan,
    /// Passive: what was declared for the peer.
    declared: Option<RegionCookie>,
    /// Active: what the peer has declared.
    pub(crate) remote: Option<Remote>,
    moved_bytes: u64,
    /// Active: a copy that the driver makes in the background, because it is
    /// told to make all of them so.
    pub(crate) under_way: Option<UnderWay>,
    /// In the Both model, in which both sides are passive and active.
    pub(crate) both: Option<Both>,
}

#[derive(Debug)]
pub(crate) struct UnderWay {
    id: CopyId,
    begun: Instant,
    limit: Duration,
}

impl UnderWay {
    /// So long a copy may take before it is given up: far longer than any does.
    fn limit(bytes: u64) -> Duration {
        const SLOWEST_BYTES_PER_SECOND: u64 = 16 << 20;
        Duration::from_secs(30_u64.saturating_add(bytes / SLOWEST_BYTES_PER_SECOND))
    }

    fn is_lost(&self) -> bool {
        self.begun.elapsed() >= self.limit
    }
}

impl KnemTransfer {
    /// On the side that copies, once the other side's cookie is there: the
    /// region to copy from or into, and the message offset at which it begins.
    pub const fn remote(&self) -> Option<(RegionCookie, u64)> {
        self.remote
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

    fn name(&self) -> &'static str {
        D::mechanism_name()
    }

    fn models(&self) -> &'static [Model] {
        match D::copies_by_both_ends() {
            true => &[Model::Get, Model::Put, Model::Both],
            false => &[Model::Get, Model::Put],
        }
    }

    fn needs(&self) -> Needs {
        D::needs()
    }

    fn checkups(&self, host: &Host) -> Vec<Finding> {
        D::checkups(host)
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.part_with_the_gone();
        let opened = self.open()?;
        let mut hello = opened.driver.introduce().map_err(|error| unavailable(&error))?;
        let ours = [&opened.probe.to_short_bytes()[..], &opened.nonce].concat();
        hello.bytes.splice(0..0, ours);
        Ok(hello)
    }

    fn probe(&mut self, facts: &PeerFacts, mut hello: Hello) -> Result<(KnemPeer, Abilities), Unavailable> {
        self.part_with_the_gone();
        let known_before = self.met.clone();
        let opened = self.open()?;
        let bad = || refuse("the peer's greeting cannot be read; its lmt may be of another version");
        let (short, rest) = hello.bytes.split_first_chunk().ok_or_else(bad)?;
        let (nonce, rest) = rest.split_first_chunk::<{ ProbeMemory::NONCE_BYTES }>().ok_or_else(bad)?;
        let (short, nonce): ([u8; RegionCookie::SHORT_BYTES], Nonce) = (*short, *nonce);
        hello.bytes = rest.to_vec();
        let process = Arc::clone(&facts.process);
        let owner = opened.driver.meet(process, hello).map_err(|error| unavailable(&error))?;
        // Who is known already stays known, whatever becomes of this greeting:
        // it may be another's who uses his name, and transfers may be under way.
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

    /// What the peer copies needs a region of this process, and nothing of the
    /// peer.
    fn passive(&mut self, facts: &PeerFacts) -> Option<KnemPeer> {
        self.open().ok()?;
        Some(KnemPeer::new(&facts.process, None))
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
            under_way: None,
            both: None,
        };
        if !is_passive(plan) {
            return Ok((transfer, Cookie::empty()));
        }
        let (driver, claims) = self.parts()?;
        let lent = lend_part(data, plan.interval.start..plan.interval.end)
            .ok_or_else(|| demote("the message is not memory that was lent"))?;
        let protection = if plan.role == Role::Sender { Protection::READ } else { Protection::WRITE };
        let region = driver.create_region(lent, protection, Uses::Many).map_err(|e| fault(&e))?;
        transfer.declared = Some(region);
        let mut cookie = to_cookie(&region, plan.interval.start);
        if (plan.model, plan.role) == (Model::Both, Role::Receiver)
            && let Some(of_region) = cookie
        {
            let by_both = both::is_possible(driver);
            let (both, named) = both::receive(claims, &mut peer.claims, by_both, plan.interval, &of_region);
            (transfer.both, cookie) = (Some(both), named);
        }
        let Some(cookie) = cookie else {
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
        let (driver, claims) = self.parts()?;
        transfer.plan.interval = interval;
        transfer.moved_bytes = 0;
        if (transfer.plan.model, transfer.plan.role) == (Model::Both, Role::Sender) {
            let both = both::help(claims, &peer.claims, both::is_possible(driver), remote, interval);
            transfer.both = Some(both.ok_or_else(bad_cookie)?);
            return Ok(());
        }
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
        if t.plan.model == Model::Both {
            let Some((owner, _)) = peer.reached else { return Err(unreached()) };
            let (driver, claims) = self.parts()?;
            let find = |driver: &mut D, cookie: &Cookie, interval| {
                find(driver, owner, peer.process(), cookie, interval)
            };
            return both::step(claims, &peer.claims, driver, t, find, data, max_bytes);
        }
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
            let (driver, _) = self.parts()?;
            match copy_some(driver, &mut t.under_way, data, &copy) {
                // Nothing yet: other peers are not kept waiting for its end.
                Err(KnemError::OwnerDying) => return Ok(Step { bytes: 0, done: false }),
                copied => copied_bytes = copied.map_err(|error| fault_of(&error, peer.process()))?,
            }
            t.moved_bytes += copied_bytes;
        }
        Ok(Step { bytes: copied_bytes, done: t.moved_bytes == t.plan.interval.bytes() })
    }

    fn copies_declared(&self) -> bool {
        D::reaches_all_memory()
    }

    /// Of an endpoint's own regions, whose table its engine has looked at.
    fn copy_declared(
        &mut self,
        peer: &mut KnemPeer,
        local: &mut Buffer,
        copy: &DeclaredCopy<'_>,
    ) -> Result<u64, Fault> {
        if !D::reaches_all_memory() || peer.reached.is_none() {
            return Err(demote("its driver reaches only regions of its own; let another mechanism copy"));
        }
        let copied = vm::copy_declared(peer.process(), local, copy);
        copied.error.map_or(Ok(copied.bytes), |error| Err(vm::fault_of(error, peer.process())))
    }

    fn leave(&mut self, peer: &mut KnemPeer, transfer: &mut KnemTransfer) -> bool {
        let both = transfer.both.as_mut();
        both.is_some_and(|both| both.side.leave(&self.claims, &mut peer.claims))
    }

    fn copied_by_peer(&self, transfer: &KnemTransfer) -> u64 {
        transfer.both.as_ref().map_or(0, |both| both.side.copied_by_peer())
    }

    /// The claims on messages that the peer may help with.
    fn parcel(&mut self, peer: &mut KnemPeer) -> Option<Hello> {
        peer.claims.parcel()
    }

    fn take_parcel(&mut self, peer: &mut KnemPeer, parcel: Hello) {
        peer.claims.take_parcel(parcel);
    }

    fn finish(&mut self, peer: &mut KnemPeer, transfer: KnemTransfer) {
        if let (Some(under_way), State::Open(opened)) = (&transfer.under_way, &mut self.state) {
            // The driver is at work in the message's memory, which is given
            // back next. What it has not told of by the limit has no end that
            // could be waited for.
            while let Ok(None) = opened.driver.poll(under_way.id)
                && !under_way.is_lost()
            {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        // The peer copies nothing into a region any more when that is destroyed.
        if let Some(both) = transfer.both {
            both.side.finish(&mut self.claims, &peer.claims);
        }
        if let (Some(region), State::Open(opened)) = (transfer.declared, &mut self.state) {
            // Declared by `prepare` and destroyed once, here; a forked child,
            // which may not, ends nothing of its parent's.
            let _memory = opened.driver.destroy_region(&region);
        }
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

/// Copies in the call, or has the driver copy in the background if it is to;
/// returns how many bytes have arrived by it.
pub(crate) fn copy_some<D: Driver>(
    driver: &mut D,
    under_way: &mut Option<UnderWay>,
    data: &mut Buffer,
    copy: &InlineCopy,
) -> Result<u64, KnemError> {
    if driver.info().forced.is_asynchronous() {
        copy_in_background(driver, under_way, data, copy)
    } else {
        driver.try_inline_copy(data, copy)
    }
}

/// Starts a step's copy, or looks after the one that was started; returns how
/// many bytes have arrived by it, none while it goes on. Its length is the one
/// that it was started with.
fn copy_in_background<D: Driver>(
    driver: &mut D,
    kept: &mut Option<UnderWay>,
    data: &Buffer,
    copy: &InlineCopy,
) -> Result<u64, KnemError> {
    let under_way = match kept.take() {
        Some(under_way) => under_way,
        None => {
            let local = lend_part(data, 0..data.total_bytes()).ok_or(KnemError::BadMemory("local memory"))?;
            let bytes = if let Length::Bounded(bytes) = copy.length { bytes } else { data.total_bytes() };
            let id = driver.start_inline_copy(local, copy, CopyFlags::NONE)?;
            UnderWay { id, begun: Instant::now(), limit: UnderWay::limit(bytes) }
        }
    };
    if let Some(copied) = driver.poll(under_way.id)? {
        return Ok(copied.bytes);
    }
    let is_lost = under_way.is_lost();
    *kept = Some(under_way);
    if is_lost { Err(KnemError::CopyLost) } else { Ok(0) }
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

pub(crate) fn demote(sentence: &str) -> Fault {
    Fault::Demote { errno: 0, for_good: false, sentence: sentence.to_owned() }
}

/// What an error of one's own side means for a transfer.
fn fault(error: &KnemError) -> Fault {
    let for_good = matches!(
        error,
        KnemError::OtherUser(_) | KnemError::Forked | KnemError::Unavailable { .. } | KnemError::Stranger
    );
    Fault::Demote { errno: error.errno(), for_good, sentence: error.to_string() }
}

/// What an error of a copy means for a transfer with this peer: whose region is
/// gone may be gone itself.
pub(crate) fn fault_of(error: &KnemError, process: &PeerProcess) -> Fault {
    match error {
        KnemError::OwnerDead => Fault::PeerDead,
        KnemError::NotDeclared if !process.is_alive() => Fault::PeerDead,
        _ => fault(error),
    }
}

#[cfg(test)]
#[path = "mechanism_tests.rs"]
mod tests;
