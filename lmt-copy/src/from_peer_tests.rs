use super::*;

const BYTES: usize = 64 << 10;

/// What a class does of so many copies, of which those by vectors take `vectors_ns` and
/// the others `others_ns`: how many went by vectors.
fn by_vectors(class: &Class, copies: u32, vectors_ns: u64, others_ns: u64) -> u32 {
    let mut count = 0;
    for _ in 0..copies {
        let (vectors, is_timed) = class.next();
        if is_timed {
            class.took(vectors, BYTES, Duration::from_nanos(if vectors { vectors_ns } else { others_ns }));
        }
        count += u32::from(vectors);
    }
    count
}

#[test]
fn what_is_faster_is_done_but_for_trials() {
    let class = Class::new();
    assert!(by_vectors(&class, 1000, 1000, 2000) > 970);
    let class = Class::new();
    assert!(by_vectors(&class, 1000, 2000, 1000) < 30);
}

#[test]
fn it_changes_with_the_machine() {
    let class = Class::new();
    by_vectors(&class, 10_000, 2700, 5000);
    // Both get faster, one more so: as if the host had moved the cores together.
    by_vectors(&class, 1000, 1700, 1400);
    assert!(by_vectors(&class, 1000, 1700, 1400) < 30);
    by_vectors(&class, 3000, 2700, 5000);
    assert!(by_vectors(&class, 1000, 2700, 5000) > 970);
}

#[test]
fn one_that_was_interrupted_changes_nothing() {
    let class = Class::new();
    by_vectors(&class, 1000, 1000, 1300);
    class.took(true, BYTES, Duration::from_secs(10));
    assert!(class.prefers_vectors());
    // The very first, which meets pages that are not there yet.
    let class = Class::new();
    by_vectors(&class, 1, 1_000_000, 0);
    by_vectors(&class, 100, 1000, 1300);
    assert!(by_vectors(&class, 1000, 1000, 1300) > 970);
}

#[test]
fn figures_at_their_ends_do_no_harm() {
    let class = Class::new();
    for time in [Duration::ZERO, Duration::MAX, Duration::ZERO, Duration::MAX, Duration::MAX] {
        class.took(true, LEAST_BYTES, time);
        class.took(false, MOST_BYTES, time);
    }
    class.turn.store(u32::MAX, Ordering::Relaxed);
    let mut copied = 0;
    class.copy(BYTES, |_| copied += 1);
    class.copy(BYTES, |_| copied += 1);
    assert_eq!((copied, class.turn.load(Ordering::Relaxed)), (2, 1));
}

#[test]
fn each_power_of_two_has_a_class() {
    assert_eq!(class_of(LEAST_BYTES - 1), None);
    assert_eq!(class_of(LEAST_BYTES), Some(0));
    assert_eq!(class_of(2 * LEAST_BYTES - 1), Some(0));
    assert_eq!(class_of(MOST_BYTES), Some(COUNT - 1));
    assert_eq!(class_of(MOST_BYTES + 1), None);
}

#[test]
fn both_ways_are_tried_with_all_pieces_of_messages() {
    for pieces in 1..=16 {
        let turns = (0..31 * 256).filter_map(|turn| Some((turn % pieces, timed(turn)?)));
        let tried: std::collections::BTreeSet<_> = turns.collect();
        assert_eq!(tried.len(), 2 * pieces as usize, "of {pieces}");
    }
}

#[test]
fn copies_are_timed_as_they_go() {
    let class = Class::new();
    let mut seen = [0; 2];
    for _ in 0..200 {
        class.copy(BYTES, |by_vectors| {
            seen[usize::from(by_vectors)] += 1;
            if by_vectors {
                std::thread::sleep(Duration::from_micros(500));
            }
        });
    }
    assert!(seen[1] < 20 && !class.prefers_vectors(), "{seen:?}");
}

#[test]
fn every_length_is_copied() {
    for bytes in [1, 200, LEAST_BYTES - 1, LEAST_BYTES, 3 * LEAST_BYTES + 7, MOST_BYTES + 1] {
        let source: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
        // As often as both ways are tried.
        for _ in 0..3 {
            let mut target = vec![0; bytes];
            // SAFETY: two vectors of so many bytes.
            unsafe { copy_from_peer(target.as_mut_ptr(), source.as_ptr(), bytes) };
            assert!(target == source, "{bytes}");
        }
    }
}
