//! How fast the kernel copies between processes, beside a plain copy.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lmt_core::cursor::Cursor;

use crate::segments::RemoteSegment;
use crate::sys;
use crate::vm::Local;

/// Of the order of messages for which single copies begin to pay; both ends of it are
/// in any second-level cache. The look takes some tenths of a millisecond where nothing
/// disturbs it.
const BYTES: usize = 128 << 10;
/// The fastest of them counts: what interrupts some of them says nothing. Where other
/// processes start at the same time, that is most; so it goes on until so many in a row
/// were no faster...
const TRIES_WITHOUT_GAIN: usize = 10;
/// ...or there were so many.
const MAX_TRIALS: usize = 200;
/// Faster is what takes less than this part.
const FASTER: f32 = 0.98;
/// The smallest page; that of x86-64.
const PAGE_BYTES: usize = 4096;

/// How many times as long as a plain copy process_vm_readv(2) of this process's own
/// memory takes, in the caches; looked at when first asked, and kept for the process.
/// `None` where the call is refused.
///
/// What it costs beyond the copy, to look pages up and to hold them, is the same
/// whosever memory it is; what it costs to fetch lines from another core is not in it.
pub(crate) fn times_plain_copy() -> Option<f32> {
    static FOUND: OnceLock<Option<f32>> = OnceLock::new();
    *FOUND.get_or_init(measure)
}

fn measure() -> Option<f32> {
    // Both begin with a page: a target 16 to 48 bytes behind its source, counted within a
    // page, takes up to a third longer, and what the allocator returns stands so by chance.
    let mut memory = vec![1_u8; PAGE_BYTES + 2 * BYTES];
    let start = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    let (source, target) = memory[start..start + 2 * BYTES].split_at_mut(BYTES);
    let mut found = [Duration::MAX; 2];
    let (mut trials, mut in_vain) = (0, 0);
    while in_vain < TRIES_WITHOUT_GAIN && trials < MAX_TRIALS {
        let begin = Instant::now();
        target.copy_from_slice(black_box(source));
        black_box(&mut *target);
        let plain = begin.elapsed();
        let single = time_of_read(source, target)?;
        in_vain = if is_faster(&mut found, [plain, single]) { 0 } else { in_vain + 1 };
        trials += 1;
    }
    let [plain, single] = found;
    Some(single.as_secs_f32() / plain.as_secs_f32().max(f32::MIN_POSITIVE))
}

/// Takes in what was faster; whether any was, by more than a little.
fn is_faster(found: &mut [Duration; 2], now: [Duration; 2]) -> bool {
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
