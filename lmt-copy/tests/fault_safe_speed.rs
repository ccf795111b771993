//! What a copy that may fail costs more than a plain one. Runs with `LMT_SPEED` set, in a
//! release build.
#![allow(unsafe_code)] // Copies between the test's own buffers.

use std::time::Instant;

use lmt_copy::{Distance, FaultSafeCopy};

const TURNS: u32 = 51;

fn median_ns(mut run: impl FnMut(), runs: u32) -> f64 {
    let time = |_| {
        let start = Instant::now();
        (0..runs).for_each(|_| run());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(runs)
    };
    let mut times: Vec<f64> = (0..TURNS).map(time).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn what_a_copy_that_may_fail_costs() {
    if std::env::var_os("LMT_SPEED").is_none() {
        eprintln!("SKIPPED: LMT_SPEED is not set");
        return;
    }
    let mut copier = FaultSafeCopy::new().expect("handlers");
    for bytes in [64, 1024, 16 << 10, 128 << 10] {
        let (mut target, source) = (vec![1u8; bytes], vec![2u8; bytes]);
        let (to, from) = (target.as_mut_ptr(), source.as_ptr());
        let range = from.addr()..from.addr() + bytes;
        // SAFETY: two vectors of that length.
        let plain = median_ns(|| unsafe { lmt_copy::copy_toward(to, from, bytes, Distance::Near) }, 2000);
        let safe = median_ns(
            || {
                // SAFETY: as above.
                assert!(unsafe { copier.copy(range.clone(), to, from, bytes, Distance::Near) });
            },
            2000,
        );
        println!("{bytes} B: {plain:.1} ns plain, {safe:.1} ns where it may fail");
    }
    println!("the check before: {:.1} ns", median_ns(|| FaultSafeCopy::check().expect("handled"), 2000));
}
