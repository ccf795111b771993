//! The copy routine against the C library's `memcpy`: never slower by more than
//! 3 % at any length, by whatever table.
//!
//! Only with `LMT_SPEED=1` (`make speed`): other work on the machine would be
//! what is measured.
#![allow(unsafe_code)] // Copies by both.

use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};
use std::time::{Duration, Instant};

use lmt_copy::{Alignment, Distance, Effort, Plan, Routine, paired_ratio};

const MAX_RATIO: f64 = 1.03;

/// The machine is shared, and others' work only adds time: one good measurement
/// of a length shows what the routine can do there.
const ATTEMPTS: u32 = 7;
const EFFORT: Effort = Effort { turns: 21, turn: Duration::from_micros(20), most_bytes: 16 << 20 };
const PAGE_BYTES: usize = 4096;

/// Under this variable's table a process measures; a process has one.
const PLAN: &str = "COPY_SPEED_PLAN";

/// Where source and target begin within a page.
const OFFSETS: [(usize, usize); 7] = [(0, 0), (16, 16), (16, 0), (0, 16), (3, 5), (5, 3), (0, 100)];

fn lengths() -> Vec<usize> {
    let mut lengths: Vec<usize> = (1..=66).collect();
    lengths.extend((72..=512).step_by(24));
    for power in 7..=EFFORT.most_bytes.ilog2() {
        let two = 1usize << power;
        lengths.extend([two - 1, two, two + 1, two + two / 2]);
    }
    lengths.retain(|bytes| *bytes <= EFFORT.most_bytes);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Our time over the C library's for one length and place.
fn ratio(memory: &mut (Vec<u8>, Vec<u8>), bytes: usize, (from_at, to_at): (usize, usize)) -> f64 {
    let page = |pointer: *const u8| pointer.align_offset(PAGE_BYTES).min(PAGE_BYTES);
    let source = memory.0.as_ptr();
    let source = source.wrapping_add(page(source) + from_at);
    let target = memory.1.as_mut_ptr();
    let target = target.wrapping_add(page(target) + to_at);
    // Both read what they copy from one place, so that neither has more on the
    // stack than the other.
    let place = (AtomicPtr::new(target), AtomicPtr::new(source.cast_mut()), AtomicUsize::new(bytes));
    let place = black_box(&place);
    let get = || (place.0.load(Relaxed), place.1.load(Relaxed).cast_const(), place.2.load(Relaxed));
    let ours = || {
        let (target, source, bytes) = get();
        // SAFETY: both vectors have two pages more than the longest copy, and
        // the places before it take less.
        unsafe { lmt_copy::copy_nonoverlapping(target, source, bytes) };
    };
    let theirs = || {
        let (target, source, bytes) = get();
        // SAFETY: as above. With a length that is not known it calls `memcpy`.
        unsafe { std::ptr::copy_nonoverlapping(source, target, bytes) };
    };
    paired_ratio(EFFORT, ours, theirs)
}

/// Calls `measure` with the stack so many times 400 bytes further down: where a
/// return address and the target share the lower bits of their addresses, loads
/// wait for stores, of one of the two routines alone.
#[inline(never)]
fn deeper<T>(times: u32, measure: &mut dyn FnMut() -> T) -> T {
    let room = black_box([0u8; 400]);
    let value = if times == 0 { measure() } else { deeper(times - 1, measure) };
    black_box(&room);
    value
}

/// Measures every length and place under one table; prints what is exceeded.
#[test]
fn of_one_table() {
    let Ok(plan) = std::env::var(PLAN) else {
        println!("SKIPPED of_one_table: copies_are_never_slower_than_the_c_librarys runs it");
        return;
    };
    let begin = Instant::now();
    let copier = plan.parse::<Plan>().expect("a plan").copier();
    println!("{plan}: {copier} (known after {:?})", begin.elapsed());
    lmt_copy::install(copier.clone()).expect("this process copies by nothing else");
    let whole = EFFORT.most_bytes + 2 * PAGE_BYTES;
    let mut memory = (vec![1; whole], vec![2; whole]);
    // Length and place, and its least ratio.
    type Found = ((usize, (usize, usize)), f64);
    let places = lengths().into_iter().flat_map(|bytes| OFFSETS.map(|offsets| (bytes, offsets)));
    let mut least: Vec<Found> = places.map(|place| (place, f64::INFINITY)).collect();
    for attempt in 0..ATTEMPTS {
        // What disturbed one measurement is over when its turn comes again.
        for (place, least) in least.iter_mut().filter(|(_, least)| *least > MAX_RATIO) {
            *least = least.min(deeper(attempt, &mut || ratio(&mut memory, place.0, place.1)));
        }
    }
    for power in 0..=EFFORT.most_bytes.ilog2() {
        let of_length =
            || least.iter().filter(|((bytes, _), _)| *bytes == 1 << power).map(|(_, ratio)| *ratio);
        let (best, worst) = (of_length().fold(f64::INFINITY, f64::min), of_length().fold(0.0, f64::max));
        println!("  {:>8} B: {best:.2} to {worst:.2} of the C library's time", 1usize << power);
    }
    let worst = least.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
    println!("  at most {worst:.3} of it, over {} lengths and places", least.len());
    let exceeded = least.iter().filter(|(_, ratio)| *ratio > MAX_RATIO);
    let exceeded: Vec<String> = exceeded
        .map(|((bytes, offsets), ratio)| {
            let routine = copier.routine(Distance::Near, Alignment::of(offsets.1, offsets.0), *bytes);
            format!("{bytes} B at {offsets:?} by {}: {ratio:.3}", routine.name())
        })
        .collect();
    assert!(exceeded.is_empty(), "slower than the C library's by more than 3 %: {exceeded:#?}");
}

#[test]
fn copies_are_never_slower_than_the_c_librarys() {
    if std::env::var_os("LMT_SPEED").is_none_or(|value| value != "1") {
        println!("SKIPPED copies_are_never_slower_than_the_c_librarys: it measures only with LMT_SPEED=1");
        return;
    }
    let (measured, _) = lmt_copy::measure(Effort::FULL);
    for plan in [Routine::Libc.name(), "auto", &measured.to_string()] {
        let done = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "of_one_table", "--nocapture"])
            .env(PLAN, plan)
            .status()
            .expect("it starts");
        assert!(done.success(), "copies by {plan} are too slow");
    }
}
