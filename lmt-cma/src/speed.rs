//! How fast the kernel copies between processes, beside a plain copy.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lmt_core::cursor::Cursor;
use lmt_core::two_buffers::TwoBuffers;

use crate::segments::RemoteSegment;
use crate::sys;
use crate::vm::Local;

/// Of the order of messages for which single copies begin to pay; both ends of it are
/// in any second-level cache. The look takes some tenths of a millisecond where nothing
/// disturbs it.
const BYTES: usize = 128 << 10;
/// What one call costs, whatever it moves, is told by a short one.
const PAGE_BYTES: usize = 4096;
/// Beyond this nobody asks; it keeps the sum a duration.
const MOST_BYTES: f32 = 1e12;
/// The fastest of them counts: what interrupts some of them says nothing. Where other
/// processes start at the same time, that is most; so it goes on until so many in a row
/// were no faster...
const IN_VAIN: usize = 10;
/// ...or there were so many.
const MOST_TRIALS: usize = 200;
/// Faster is what takes less than this part.
const FASTER: f32 = 0.98;

/// How many times as long as a plain copy process_vm_readv(2) of this process's own
/// memory takes, in the caches; looked at when first asked, and kept for the process.
/// `None` where the call is refused.
///
/// What it costs beyond the copy, to look pages up and to hold them, is the same
/// whosever memory it is; what it costs to fetch lines from another core is not in it.
pub(crate) fn times_plain_copy() -> Option<f32> {
    found().map(|found| found.single.as_secs_f32() / found.plain.as_secs_f32().max(f32::MIN_POSITIVE))
}

/// How long a call that moves so many bytes takes, all of them in the caches.
pub(crate) fn time_of_call(bytes: u64) -> Option<Duration> {
    let Found { single, page, .. } = found()?;
    let each = single.saturating_sub(page).as_secs_f32() / (BYTES - PAGE_BYTES) as f32;
    let more = bytes.saturating_sub(PAGE_BYTES as u64) as f32;
    Some(page + Duration::from_secs_f32(each * more.min(MOST_BYTES)))
}

/// The fastest of each.
#[derive(Clone, Copy)]
struct Found {
    plain: Duration,
    single: Duration,
    /// Of a call that moves a page.
    page: Duration,
}

fn found() -> Option<Found> {
    static FOUND: OnceLock<Option<Found>> = OnceLock::new();
    *FOUND.get_or_init(look)
}

fn look() -> Option<Found> {
    let mut buffers = TwoBuffers::of(BYTES);
    let (source, target) = buffers.both();
    let mut found = [Duration::MAX; 3];
    let (mut trials, mut in_vain) = (0, 0);
    while in_vain < IN_VAIN && trials < MOST_TRIALS {
        let begin = Instant::now();
        target.copy_from_slice(black_box(source));
        black_box(&mut *target);
        let plain = begin.elapsed();
        let single = time_of_read(source, target)?;
        let page = time_of_read(&source[..PAGE_BYTES], &mut target[..PAGE_BYTES])?;
        in_vain = if is_faster(&mut found, [plain, single, page]) { 0 } else { in_vain + 1 };
        trials += 1;
    }
    let [plain, single, page] = found;
    Some(Found { plain, single, page })
}

/// Takes in what was faster; whether any was, by more than a little.
fn is_faster(found: &mut [Duration; 3], now: [Duration; 3]) -> bool {
    let mut is_faster = false;
    for (least, now) in found.iter_mut().zip(now) {
        is_faster |= now.as_secs_f32() < least.as_secs_f32() * FASTER;
        *least = now.min(*least);
    }
    is_faster
}

/// The time of one call that reads all of `source`, if it did.
fn time_of_read(source: &[u8], target: &mut [u8]) -> Option<Duration> {
    let own = nix::unistd::getpid().as_raw();
    let remote = [RemoteSegment { address: source.as_ptr().addr() as u64, bytes: source.len() as u64 }];
    lmt_core::buffer::lend_mut(target, |buffer| {
        let begin = Instant::now();
        let (from, to) = (Cursor::default(), Cursor::default());
        let mut local = Local::Into(buffer);
        let read = sys::copy_once::<1>(own, &mut local, to, &remote, from, source.len() as u64);
        let took = begin.elapsed();
        (read == Ok(source.len() as u64)).then_some(took)
    })
}

#[cfg(test)]
#[path = "speed_tests.rs"]
mod tests;
