//! A transfer of a message by regions, and its copies.

use std::time::{Duration, Instant};

use lmt_core::buffer::Buffer;
use lmt_core::mechanism::Plan;

use crate::driver::Driver;
use crate::error::KnemError;
use crate::sys::lend_part;
use crate::types::{CopyFlags, CopyId, InlineCopy, Length, RegionCookie};

/// A region of a peer, and the message offset at which it begins.
pub(crate) type Remote = (RegionCookie, u64);

/// A transfer in flight.
#[derive(Debug)]
pub struct KnemTransfer {
    pub(crate) plan: Plan,
    /// Passive: what was declared for the peer.
    pub(crate) declared: Option<RegionCookie>,
    /// Active: what the peer has declared.
    pub(crate) remote: Option<Remote>,
    pub(crate) moved_bytes: u64,
    /// Active: a copy that the driver makes in the background, because it is
    /// told to make all of them so.
    pub(crate) in_flight: Option<InFlight>,
    /// In the Both model: since when copies fail in a way in which they do where the other
    /// end dies.
    pub(crate) failing_since: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) id: CopyId,
    begun: Instant,
    limit: Duration,
}

impl InFlight {
    /// So long a copy may take before it is given up: far longer than any does.
    fn limit(bytes: u64) -> Duration {
        const SLOWEST_BYTES_PER_SECOND: u64 = 16 << 20;
        Duration::from_secs(30_u64.saturating_add(bytes / SLOWEST_BYTES_PER_SECOND))
    }

    pub(crate) fn is_lost(&self) -> bool {
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

/// Copies in the call, or has the driver copy in the background if it is to;
/// returns how many bytes have arrived by it.
pub(crate) fn copy_some<D: Driver>(
    driver: &mut D,
    in_flight: &mut Option<InFlight>,
    data: &mut Buffer,
    copy: &InlineCopy,
) -> Result<u64, KnemError> {
    if driver.info().forced.is_asynchronous() {
        copy_in_background(driver, in_flight, data, copy)
    } else {
        driver.try_inline_copy(data, copy)
    }
}

/// Starts a step's copy, or looks after the one that was started; returns how
/// many bytes have arrived by it, none while it goes on. Its length is the one
/// that it was started with.
fn copy_in_background<D: Driver>(
    driver: &mut D,
    kept: &mut Option<InFlight>,
    data: &Buffer,
    copy: &InlineCopy,
) -> Result<u64, KnemError> {
    let in_flight = match kept.take() {
        Some(in_flight) => in_flight,
        None => {
            let local = lend_part(data, 0..data.total_bytes()).ok_or(KnemError::BadMemory("local memory"))?;
            let bytes = if let Length::Bounded(bytes) = copy.length { bytes } else { data.total_bytes() };
            let id = driver.start_inline_copy(local, copy, CopyFlags::NONE)?;
            InFlight { id, begun: Instant::now(), limit: InFlight::limit(bytes) }
        }
    };
    if let Some(copied) = driver.poll(in_flight.id)? {
        return Ok(copied.bytes);
    }
    let is_lost = in_flight.is_lost();
    *kept = Some(in_flight);
    if is_lost { Err(KnemError::CopyLost) } else { Ok(0) }
}
