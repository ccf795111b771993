use proptest::prelude::*;

use super::*;
use crate::copy::{copy_overlapping, copy_toward};
use crate::{Alignment, Distance};

#[path = "routine_tests/guarded.rs"]
mod guarded;

use guarded::Guarded;

/// Every routine that this machine has; says which it has not.
fn available() -> Vec<Routine> {
    let (here, missing): (Vec<_>, Vec<_>) = Routine::ALL.into_iter().partition(|r| r.is_available());
    for routine in missing {
        println!("SKIPPED {}: this CPU or this build cannot run it", routine.name());
    }
    here
}

/// Miri takes its time over each byte.
const MAX_BYTES: usize = if cfg!(miri) { 2000 } else { 200_000 };

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251 + 1) as u8).collect()
}

/// Copies between two places within plain memory, and checks every byte of the
/// target and around it.
fn check(copy: impl FnOnce(*mut u8, *const u8, usize), from_at: usize, to_at: usize, bytes: usize) {
    let source = pattern(from_at + bytes + 64);
    let mut target = vec![0xee; to_at + bytes + 64];
    copy(target[to_at..].as_mut_ptr(), source[from_at..].as_ptr(), bytes);
    assert_eq!(target[to_at..to_at + bytes], source[from_at..from_at + bytes], "{bytes} B");
    let shared_state = target[..to_at].iter().chain(&target[to_at + bytes..]);
    assert!(
        shared_state.copied().all(|byte| byte == 0xee),
        "{bytes} B from {from_at} to {to_at}: more was written"
    );
}

fn run(routine: Routine) -> impl Fn(*mut u8, *const u8, usize) {
    // SAFETY: `check` and the guarded tests give two separate pieces of memory of
    // at least as many bytes.
    move |target, source, bytes| unsafe { routine.run(target, source, bytes) }
}

fn toward(distance: Distance) -> impl Fn(*mut u8, *const u8, usize) {
    // SAFETY: as in `run`.
    move |target, source, bytes| unsafe { copy_toward(target, source, bytes, distance) }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no pages that must not be touched")]
fn every_length_is_copied_and_nothing_beside_it_is_touched() {
    // One end of each at a page that must not be touched: at the back, then at
    // the front.
    let (source, target) = (Guarded::new(1), Guarded::new(1));
    for routine in available() {
        for bytes in 0..=1100 {
            for at_end in [true, false] {
                let bytes_of_source = pattern(bytes);
                let from = source.place(bytes, at_end);
                let to = target.place(bytes, at_end);
                source.fill(from, &bytes_of_source);
                target.fill(to, &vec![0xee; bytes]);
                run(routine)(target.pointer(to), source.pointer(from), bytes);
                assert_eq!(target.bytes(to, bytes), bytes_of_source, "{routine:?} {bytes} B");
                target.fill(to, &vec![0xee; bytes]);
                toward(Distance::Peer)(target.pointer(to), source.pointer(from), bytes);
                assert_eq!(target.bytes(to, bytes), bytes_of_source, "the short path, {bytes} B");
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it takes Miri an hour")]
fn every_alignment_of_both_sides_is_right() {
    for routine in available() {
        for from_at in 0..64 {
            for to_at in 0..64 {
                // Up to 15 blocks, of every remainder.
                check(run(routine), from_at, to_at, 256 + (from_at * 67 + to_at * 13) % 800);
            }
        }
    }
    for from_at in 0..64 {
        for to_at in 0..64 {
            check(toward(Distance::Near), from_at, to_at, (from_at * 7 + to_at * 31) % 300);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 20 } else { 200 }))]
    #[test]
    fn any_length_at_any_place_is_as_the_portable_routine_has_it(
        which in 0usize..Routine::ALL.len(), from_at in 0usize..5000, to_at in 0usize..5000,
        bytes in prop_oneof![0usize..1100, 0..MAX_BYTES],
    ) {
        let routine = Some(Routine::ALL[which]).filter(|r| r.is_available()).unwrap_or_default();
        check(run(routine), from_at, to_at, bytes);
        check(run(Routine::Portable), from_at, to_at, bytes);
    }

    #[test]
    fn what_overlaps_is_moved(from_at in 0usize..700, to_at in 0usize..700, bytes in 0usize..700) {
        let mut memory = pattern(1400);
        let mut expected = memory.clone();
        expected.copy_within(from_at..from_at + bytes, to_at);
        let base = memory.as_mut_ptr();
        let (target, source) = (base.wrapping_add(to_at), base.wrapping_add(from_at));
        // SAFETY: both lie within the vector, which has 1400 bytes.
        unsafe { copy_overlapping(target, source, bytes, Distance::Away) };
        prop_assert_eq!(memory, expected);
    }
}

#[test]
fn names_lead_back_and_every_machine_has_two() {
    for routine in Routine::ALL {
        assert_eq!(Routine::named(routine.name()), Some(routine));
        assert_eq!(Routine::of_code(routine as u64), routine);
    }
    assert_eq!(Routine::named("memcpy"), None);
    assert!(Routine::Libc.is_available() && Routine::Portable.is_available());
}

#[test]
fn alignments_are_told_apart_by_the_distance_modulo_a_page() {
    let of = |target, source| Alignment::of(target, source);
    assert_eq!(of(0x2001, 0x1000), Alignment::Aliased);
    assert_eq!(of(0x203f, 0x7000), Alignment::Aliased);
    assert_eq!(of(0x2040, 0x7000), Alignment::Same);
    assert_eq!(of(0x2041, 0x7000), Alignment::Other);
    assert_eq!(of(0x1fff, 0x2000), Alignment::Other);
}
