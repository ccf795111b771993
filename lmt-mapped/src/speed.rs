//! How fast this process copies in its caches.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lmt_core::two_buffers::TwoBuffers;

/// Both ends of it are in any second-level cache. The look takes some tens of microseconds.
const BYTES: usize = 64 << 10;
/// The fastest of so many counts: what interrupts some of them says nothing.
const TRIALS: usize = 10;

/// How long a copy of so many bytes takes, all of them in the caches; looked at when first
/// asked, and kept for the process.
pub(crate) fn time_of_copy(bytes: u64) -> Duration {
    static FOUND: OnceLock<Duration> = OnceLock::new();
    // Those who ask do so for less than a MiB.
    FOUND.get_or_init(look).mul_f32(bytes as f32 / BYTES as f32)
}

fn look() -> Duration {
    let mut buffers = TwoBuffers::of(BYTES);
    let (source, target) = buffers.both();
    let times = (0..TRIALS).map(|_| {
        let begin = Instant::now();
        lmt_copy::copy_slice(target, black_box(source));
        black_box(&mut *target);
        begin.elapsed()
    });
    times.min().unwrap_or_default()
}
