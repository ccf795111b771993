//! The Both model: the receiver copies out of the sender's region from the front,
//! the sender into the receiver's from the back ([`lmt_core::claims`]).

use std::time::Instant;

use lmt_core::buffer::Buffer;
use lmt_core::claims::{Claims, CopiedPart, Help, PeerClaims, Side};
use lmt_core::mechanism::{Cookie, Direction, Fault, Interval, Role, Step};

use crate::driver::{DYING, Driver};
use crate::error::KnemError;
use crate::mechanism::{KnemTransfer, Remote, copy_some, demote, fault_of};
use crate::types::{InlineCopy, Length};

/// What an end keeps of such a message.
#[derive(Debug)]
pub(crate) struct Both {
    pub side: Side,
    /// On the sender's side: what names the receiver's region, until that is
    /// looked at.
    described: Option<Cookie>,
    /// Since when copies fail in a way in which they do where the other end dies.
    failing_since: Option<Instant>,
}

impl Both {
    fn new(side: Side, described: Option<Cookie>) -> Self {
        Self { side, described, failing_since: None }
    }
}

const NAME_BYTES: usize = size_of::<u64>();

/// Whether the cores that call make this driver's copies. What is under way in
/// the background would keep the other end waiting.
pub(crate) fn is_possible<D: Driver>(driver: &D) -> bool {
    D::copies_by_both_ends() && !driver.info().forced.is_asynchronous()
}

/// The receiver's side, and its cookie, made of that of its region. Without
/// `by_both` nobody is asked to help.
pub(crate) fn receive(
    claims: &mut Claims,
    peer: &mut PeerClaims,
    by_both: bool,
    interval: Interval,
    region: &Cookie,
) -> (Both, Option<Cookie>) {
    if by_both {
        claims.introduce(peer);
    }
    let reception = claims.receive(peer, interval);
    let cookie = Cookie::new(&[&reception.name().to_be_bytes(), region.as_bytes()].concat());
    (Both::new(Side::In(reception), None), cookie)
}

/// The sender has the receiver's cookie, which is untrusted; `None` when it is
/// none of these.
pub(crate) fn help(
    claims: &Claims,
    peer: &PeerClaims,
    by_both: bool,
    cookie: &Cookie,
    interval: Interval,
) -> Option<Both> {
    let (name, region) = cookie.as_bytes().split_first_chunk::<NAME_BYTES>()?;
    let help = match by_both {
        true => Help::new(peer, u64::from_be_bytes(*name), interval, claims.sharing().steal_bytes),
        false => Help::none(),
    };
    Some(Both::new(Side::Out(help), Some(Cookie::new(region)?)))
}

/// One step of either end.
pub(crate) fn step<D: Driver>(
    claims: &Claims,
    peer: &PeerClaims,
    driver: &mut D,
    transfer: &mut KnemTransfer,
    find: impl FnOnce(&mut D, &Cookie, Interval) -> Result<Remote, Fault>,
    data: &mut Buffer,
    max_bytes: u64,
) -> Result<Step, Fault> {
    let KnemTransfer { plan, remote, under_way, both, .. } = transfer;
    let Some(Both { side, described, failing_since }) = both else {
        return Err(demote("a step was asked for before the peer's cookie was there"));
    };
    let direction = if plan.role == Role::Receiver { Direction::Get } else { Direction::Put };
    side.step(claims, peer, max_bytes, |part| {
        if let Some(cookie) = described.take() {
            match find(driver, &cookie, plan.interval) {
                Ok(found) => *remote = Some(found),
                Err(fault) => return CopiedPart { bytes: 0, fault: Some(fault) },
            }
        }
        let Some((region, start)) = *remote else {
            let fault = demote("a step was asked for before the peer's cookie was there");
            return CopiedPart { bytes: 0, fault: Some(fault) };
        };
        let copy = InlineCopy {
            direction,
            region,
            region_offset: part.start - start,
            local_offset: part.start,
            length: Length::Bounded(part.bytes()),
        };
        match copy_some(driver, under_way, data, &copy) {
            Ok(bytes) => CopiedPart { bytes, fault: None },
            // It is known soon whether it has died.
            Err(KnemError::OwnerDying) => CopiedPart { bytes: 0, fault: None },
            // An honest end's region is there until both have left. A process
            // that is killed loses it a moment before its pidfd tells.
            Err(error)
                if may_be_death::<D>(&error)
                    && failing_since.get_or_insert_with(Instant::now).elapsed() < DYING =>
            {
                CopiedPart { bytes: 0, fault: None }
            }
            Err(error) => CopiedPart { bytes: 0, fault: Some(fault_of(&error, peer.process())) },
        }
    })
}

/// Whether a copy fails so, too, whose region's owner is being killed.
fn may_be_death<D: Driver>(error: &KnemError) -> bool {
    match error {
        KnemError::NotDeclared => true,
        KnemError::BadMemory(_) | KnemError::CopyFailed => !D::knows_the_dying(),
        _ => false,
    }
}
