use super::*;

const BYTES: usize = 64 << 10;
/// Whichever is faster.
const FASTER: Bounds = Bounds { taken_at_percent: 100, kept_to_percent: 100 };

/// What a class does of so many copies, of which those by vectors take `vectors_ns` and
/// the others `others_ns`: how many went by vectors.
fn by_vectors(class: &Class, copies: u32, vectors_ns: u64, others_ns: u64) -> u32 {
    by_bounds(class, FASTER, copies, vectors_ns, others_ns)
}

/// The same by other bounds than [`FASTER`].
fn by_bounds(class: &Class, bounds: Bounds, copies: u32, vectors_ns: u64, others_ns: u64) -> u32 {
    let mut count = 0;
    for _ in 0..copies {
        let (vectors, is_timed) = class.next();
        if is_timed {
            class.took(vectors, BYTES, Duration::from_nanos(if vectors { vectors_ns } else { others_ns }));
            class.judge(bounds);
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
fn the_other_way_is_taken_and_given_up_by_bounds() {
    let bounds = Bounds { taken_at_percent: 90, kept_to_percent: 120 };
    let class = Class::new();
    let takes_other = |others_ns| {
        by_bounds(&class, bounds, 3000, 1000, others_ns);
        class.is_other.load(Ordering::Relaxed)
    };
    let expected = [(1190, true), (1210, false), (910, false), (890, true), (1190, true)];
    for (others_ns, is_other) in expected {
        assert_eq!(takes_other(others_ns), is_other, "{others_ns}");
    }
}

#[test]
fn at_first_the_other_way_is_judged_by_what_it_is_kept_to() {
    let bounds = Bounds { taken_at_percent: 90, kept_to_percent: 120 };
    for (others_ns, is_other) in [(1190, true), (1210, false)] {
        let class = Class::new();
        by_bounds(&class, bounds, FIRST, 1000, others_ns);
        assert_eq!(class.is_other.load(Ordering::Relaxed), is_other, "{others_ns}");
    }
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
    class.judge(FASTER);
    assert!(!class.is_other.load(Ordering::Relaxed));
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
        class.took(true, 4096, time);
        class.took(false, MOST_BYTES, time);
    }
    class.turn.store(u32::MAX, Ordering::Relaxed);
    let mut copied = 0;
    class.copy(BYTES, FASTER, |_| copied += 1);
    class.copy(BYTES, FASTER, |_| copied += 1);
    assert_eq!((copied, class.turn.load(Ordering::Relaxed)), (2, 1));
}

#[test]
fn each_power_of_two_has_a_class() {
    const LEAST_BYTES: usize = 8 << 10;
    let ways = TwoWays::<{ classes_from(LEAST_BYTES) }>::new(LEAST_BYTES, FASTER);
    let class_of = |bytes| {
        let found = ways.class_of(bytes)?;
        ways.classes.iter().position(|class| std::ptr::eq(class, found))
    };
    assert_eq!(class_of(LEAST_BYTES - 1), None);
    assert_eq!(class_of(LEAST_BYTES), Some(0));
    assert_eq!(class_of(2 * LEAST_BYTES - 1), Some(0));
    assert_eq!(class_of(MOST_BYTES), Some(ways.classes.len() - 1));
    assert_eq!(class_of(MOST_BYTES + 1), None);
    ways.copy(LEAST_BYTES - 1, |by_vectors| assert!(by_vectors));
    ways.copy(MOST_BYTES + 1, |by_vectors| assert!(!by_vectors));
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
        class.copy(BYTES, FASTER, |by_vectors| {
            seen[usize::from(by_vectors)] += 1;
            if by_vectors {
                std::thread::sleep(Duration::from_micros(500));
            }
        });
    }
    assert!(seen[1] < 20 && class.is_other.load(Ordering::Relaxed), "{seen:?}");
}
