use super::*;
use crate::report::tests::{line, point};

/// Times at 1 KiB, 2 KiB and so on, with quartiles a twentieth apart.
fn times(name: &str, usec: &[f64]) -> Series {
    let points = (10..).zip(usec).map(|(power, &usec)| point(1 << power, usec, 0.05));
    Series { points: points.collect(), ..Series::new(name, Kind::Way) }
}

fn crossing(all: &[Series]) -> Vec<(u64, String, String)> {
    let found = Findings::of(all).crossovers.into_iter();
    found.map(|crossover| (crossover.bytes, crossover.from, crossover.to)).collect()
}

fn at(bytes: u64, from: &str, to: &str) -> (u64, String, String) {
    (bytes, from.to_owned(), to.to_owned())
}

#[test]
fn one_is_faster_by_more_than_both_spreads_only() {
    assert!(is_faster(&point(8, 1.0, 0.05), &point(8, 1.1, 0.05)));
    // Either spread may be the larger.
    assert!(!is_faster(&point(8, 1.0, 0.2), &point(8, 1.1, 0.05)));
    assert!(!is_faster(&point(8, 1.0, 0.05), &point(8, 1.1, 0.2)));
    assert!(!is_faster(&point(8, 1.1, 0.05), &point(8, 1.0, 0.05)));
    // However steady, little is nothing.
    assert!(!is_faster(&point(8, 1.0, 0.0), &point(8, 1.02, 0.0)));
    // Without quartiles nothing is known.
    let unknown = Point { quartiles: None, ..point(8, 1.0, 0.0) };
    assert!(!is_faster(&unknown, &point(8, 2.0, 0.05)) && !is_faster(&point(8, 0.5, 0.05), &unknown));
}

#[test]
fn what_took_the_same_path_is_never_compared() {
    let on = |path: &str, usec| Point { path: Some(path.to_owned()), ..point(8, usec, 0.01) };
    assert!(!is_faster(&on("eager", 1.0), &on("eager", 2.0)));
    assert!(is_faster(&on("eager", 1.0), &on("cma", 2.0)));
}

#[test]
fn crossovers_are_where_the_fastest_changes() {
    // 0.3 + b/7000 > 1.1 + b/12000 from 13440 bytes on.
    assert_eq!(crossing(&[line("shm", 0.3, 7000.0), line("cma", 1.1, 12000.0)]), [at(16384, "shm", "cma")]);
    assert!(crossing(&[]).is_empty());
    assert!(crossing(&[line("alone", 1.0, 1000.0)]).is_empty());
}

#[test]
fn a_crossover_has_to_hold_at_the_next_size() {
    let first = times("eager", &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(crossing(&[first.clone(), times("cma", &[2.0, 1.0, 4.0, 5.0])]), []);
    assert_eq!(crossing(&[first.clone(), times("cma", &[2.0, 1.0, 2.0, 5.0])]), [at(2048, "eager", "cma")]);
    // Nothing is known of what would follow the last size.
    assert_eq!(crossing(&[first, times("cma", &[2.0, 3.0, 4.0, 1.0])]), []);
}

#[test]
fn nothing_better_than_eager_is_said() {
    let slower = times("cma", &[2.0, 3.0, 4.0]);
    let findings = Findings::of(&[times("eager", &[1.0, 2.0, 3.0]), slower.clone()]);
    let said = "Nothing is better than eager up to 4 KiB: no path is faster by more than their spreads.";
    assert_eq!(findings.sentences, [said]);
    // Not where something is better, nor where eager is alone.
    let better = Findings::of(&[times("eager", &[1.0, 5.0, 6.0]), slower]);
    assert_eq!(better.sentences, ["From 2 KiB, cma is faster than eager."]);
    assert!(Findings::of(&[times("eager", &[1.0, 2.0])]).sentences.is_empty());
    // Nor where something else is better from the first size on.
    let never = Findings::of(&[times("eager", &[5.0, 5.0, 5.0]), times("cma", &[1.0, 1.0, 1.0])]);
    assert_eq!(never.sentences, ["From 1 KiB, cma is faster than eager."]);
}

#[test]
fn where_eager_ends_the_fastest_of_the_others_is_named_with_its_equals() {
    let all = [
        times("eager", &[1.0, 1.0]),
        times("cma", &[2.0, 2.0, 2.0, 2.0]),
        times("knem-user", &[2.02, 2.02, 2.02, 2.02]),
        times("writev", &[9.0, 9.0, 9.0, 9.0]),
    ];
    let findings = Findings::of(&all);
    let [end] = &findings.crossovers[..] else { panic!("{findings:?}") };
    assert!(end.is_end && end.bytes == 4096, "{end:?}");
    assert_eq!((end.to.as_str(), &end.equals[..]), ("cma", &["knem-user".to_owned()][..]));
    let said = "From 4 KiB, which is longer than eager goes, cma is the fastest (as fast within the spreads: knem-user).";
    assert_eq!(findings.sentences[1], said);
}

#[test]
fn one_sentence_says_what_is_best_and_how_far_auto_is_from_it() {
    let eager = line("eager", 0.3, 3000.0);
    let auto = Series { kind: Kind::Auto, ..line("auto", 0.3, 3000.0) };
    let cma =
        Series { points: line("cma", 5.0, 12000.0).points.split_off(10), ..Series::new("cma", Kind::Way) };
    let summary = Findings::of(&[auto, eager, cma]).summary.unwrap();
    let best = "The best path is eager for short messages (1 B to 4 KiB), cma for middle ones (8 KiB to 256 KiB) and \
                cma for long ones (512 KiB to 16 MiB); auto takes 1.00, ";
    assert!(summary.starts_with(best), "{summary}");
    assert!(summary.ends_with(" and 3.86 times as long as these."), "{summary}");
    // Without auto nothing is said of it; without anything nothing at all.
    assert!(!Findings::of(&[line("eager", 0.3, 3000.0)]).summary.unwrap().contains("auto"));
    assert_eq!(Findings::of(&[]).summary, None);
}

/// What was measured between other buffers is in no crossover between these.
#[test]
fn other_buffers_are_told_of_apart() {
    let mapped = Series { kind: Kind::OtherBuffers, ..times("mapped", &[3.0, 0.5, 0.5, 0.5]) };
    let eager = times("eager", &[1.0, 1.0, 1.0, 1.0]);
    let findings = Findings::of(&[eager.clone(), mapped]);
    assert_eq!(findings.crossovers, []);
    let said = "Between buffers of lmt::alloc, mapped is faster than each of the others from 2 KiB.";
    assert_eq!(findings.sentences, [said]);
    let slow = Series { kind: Kind::OtherBuffers, ..times("mapped", &[3.0, 3.0, 3.0, 3.0]) };
    let said = "Between buffers of lmt::alloc, mapped is at no size faster than each of the others.";
    assert_eq!(Findings::of(&[eager, slow]).sentences, [said]);
}

#[test]
fn of_many_that_are_as_good_the_first_are_named() {
    let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
    let said = |number: usize| alternatives(&names[..number]);
    assert_eq!([1, 2, 3].map(said), ["a", "a or b", "a or b or c"]);
    assert_eq!([4, 5].map(said), ["a, b, c or another as good", "a, b, c or 2 others as good"]);
}
