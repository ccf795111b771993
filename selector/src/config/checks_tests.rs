use lmt_core::selection::{Reuse, Warmth};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{Finding, Subject, check};
use crate::config::test_support::known;
use crate::rules::{Bound, MechanismRange, Rule, SingleCopy, Take};
use crate::topology::Place;

/// The least that two processes are told apart by: two places, and one that no
/// rule names stands for the others.
const PLACES: [Place; 3] = [Place::SharedL2, Place::SharedL3, Place::Other];

/// The longest message and the greatest DMAmin of the world in which these tests
/// try everything; it stands for `u64::MAX` there.
const GREATEST: u64 = 9;

/// A file, its lengths from 0 to [`GREATEST`].
#[derive(Clone, Debug)]
struct File {
    rules: Vec<Rule>,
    ranges: Vec<MechanismRange>,
    eager_max_bytes: Option<u64>,
    dma_min: Option<u64>,
}

/// One message, as far as rules look at it.
#[derive(Clone, Copy, Debug)]
struct Case {
    bytes: u64,
    place: Place,
    contiguous: bool,
    warmth: Warmth,
    reuse: Reuse,
    processes: u32,
    single_copy: SingleCopy,
}

fn bytes_of(bound: Bound, dma_min: u64) -> u64 {
    match bound {
        Bound::Bytes(bytes) => bytes,
        Bound::DmaMin => dma_min,
    }
}

fn is_within(above: Option<Bound>, up_to: Option<Bound>, bytes: u64, dma_min: u64) -> bool {
    above.is_none_or(|above| bytes > bytes_of(above, dma_min))
        && up_to.is_none_or(|up_to| bytes <= bytes_of(up_to, dma_min))
}

/// Whether a rule holds for the two processes.
fn holds(rule: &Rule, case: &Case) -> bool {
    (rule.places.is_empty() || rule.places.contains(&case.place))
        && rule.min_processes.is_none_or(|least| case.processes >= least)
        && rule.single_copy.is_none_or(|speed| speed == case.single_copy)
}

/// Whether a rule fits a message: the plain meaning of its fields.
fn fits(rule: &Rule, case: &Case, dma_min: u64) -> bool {
    is_within(rule.above, rule.up_to, case.bytes, dma_min)
        && holds(rule, case)
        && rule.contiguous.is_none_or(|contiguous| contiguous == case.contiguous)
        && rule.warmth.is_none_or(|warmth| warmth == case.warmth)
        && rule.reuse.is_none_or(|reuse| reuse == case.reuse)
}

fn is_unconditional(rule: &Rule) -> bool {
    rule.contiguous.is_none() && rule.warmth.is_none() && rule.reuse.is_none()
}

/// Every message of this world.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for bytes in 0..=GREATEST {
        for place in PLACES {
            for contiguous in [false, true] {
                for warmth in [Warmth::Unknown, Warmth::Warm, Warmth::Cold] {
                    for reuse in [Reuse::Unknown, Reuse::Once, Reuse::Again] {
                        for single_copy in [SingleCopy::Fast, SingleCopy::Slow] {
                            let of = |processes| Case {
                                bytes,
                                place,
                                contiguous,
                                warmth,
                                reuse,
                                processes,
                                single_copy,
                            };
                            cases.extend((1..4).map(of));
                        }
                    }
                }
            }
        }
    }
    cases
}

/// What speaks of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Speaker {
    Rule(usize),
    /// The key `eager_max_bytes`, or what says so elsewhere.
    Key,
    /// Nothing of the file.
    Nobody,
}

/// The meaning of a file, message by message.
fn speaker(file: &File, case: &Case, dma_min: u64) -> Speaker {
    let eager = file.rules.iter().position(|rule| rule.take == Take::Eager && holds(rule, case));
    let eager_at = |bytes: u64| match eager {
        // It holds up to its bound, but no longer message than one that an
        // earlier rule of ways fits, whatever else that message is.
        Some(at) => {
            let is_ended = (0..=bytes).any(|shorter| {
                file.rules[..at].iter().any(|rule| {
                    let shorter = Case { bytes: shorter, ..*case };
                    rule.take != Take::Eager && is_unconditional(rule) && fits(rule, &shorter, dma_min)
                })
            });
            !is_ended && is_within(None, file.rules[at].up_to, bytes, dma_min)
        }
        // A rule that says where it begins ends the key.
        None => {
            let is_ended = (0..=bytes).any(|shorter| {
                file.rules.iter().any(|rule| {
                    let shorter = Case { bytes: shorter, ..*case };
                    rule.take != Take::Eager
                        && rule.above.is_some()
                        && is_unconditional(rule)
                        && fits(rule, &shorter, dma_min)
                })
            });
            !is_ended && file.eager_max_bytes.is_some_and(|most| bytes <= most)
        }
    };
    if eager_at(case.bytes) {
        return eager.map_or(Speaker::Key, Speaker::Rule);
    }
    // The empty message always travels in cells.
    if case.bytes == 0 {
        return Speaker::Nobody;
    }
    let ways = file.rules.iter().position(|rule| rule.take != Take::Eager && fits(rule, case, dma_min));
    ways.map_or(Speaker::Nobody, Speaker::Rule)
}

fn dma_mins(file: &File) -> Vec<u64> {
    file.dma_min.map_or_else(|| (1..=GREATEST).collect(), |bytes| vec![bytes])
}

/// Which rules never speak, whatever the message and DMAmin; which fit nothing
/// at all; and whether the key speaks of some message.
fn silent(file: &File) -> (Vec<usize>, Vec<usize>, bool) {
    let mut speaks = vec![false; file.rules.len()];
    let mut fits_some = vec![false; file.rules.len()];
    let mut key_speaks = false;
    for dma_min in dma_mins(file) {
        for case in cases() {
            match speaker(file, &case, dma_min) {
                Speaker::Rule(at) => speaks[at] = true,
                Speaker::Key => key_speaks = true,
                Speaker::Nobody => {}
            }
            for (rule, told) in file.rules.iter().zip(&mut fits_some) {
                *told |= fits(rule, &case, dma_min);
            }
        }
    }
    let without = |told: &[bool]| (0..told.len()).filter(|at| !told[*at]).collect::<Vec<usize>>();
    (without(&speaks), without(&fits_some), key_speaks)
}

/// Whether the two ranges have a length in common for each DMAmin for which
/// neither is empty, by trying lengths.
fn overlap(file: &File, one: &Rule, other: &Rule) -> bool {
    let lengths = |rule: &Rule, dma_min| {
        (0..=GREATEST).filter(|bytes| is_within(rule.above, rule.up_to, *bytes, dma_min)).collect::<Vec<_>>()
    };
    let each: Vec<bool> = dma_mins(file)
        .into_iter()
        .map(|dma_min| (lengths(one, dma_min), lengths(other, dma_min)))
        .filter(|(one, other)| !one.is_empty() && !other.is_empty())
        .map(|(one, other)| one.iter().any(|bytes| other.contains(bytes)))
        .collect();
    !each.is_empty() && each.iter().all(|overlap| *overlap)
}

/// Whether some message, lengths aside, fits both.
fn meet(one: &Rule, other: &Rule) -> bool {
    let open = |rule: &Rule| Rule { above: None, up_to: None, ..rule.clone() };
    let (one, other) = (open(one), open(other));
    cases().iter().any(|case| fits(&one, case, 1) && fits(&other, case, 1))
}

/// Whether all messages that the earlier one fits, lengths aside, the later one
/// fits too, and some more.
fn is_exception(earlier: &Rule, later: &Rule) -> bool {
    let open = |rule: &Rule| Rule { above: None, up_to: None, ..rule.clone() };
    let (earlier, later) = (open(earlier), open(later));
    let cases = cases();
    let count = |rule: &Rule| cases.iter().filter(|case| fits(rule, case, 1)).count();
    cases.iter().all(|case| !fits(&earlier, case, 1) || fits(&later, case, 1))
        && count(&earlier) < count(&later)
}

/// Whether no mechanism that the rule takes may be taken for any of its lengths.
fn is_out_of_range(file: &File, rule: &Rule) -> bool {
    let Take::Ways(ways) = &rule.take else { return false };
    let facts = known();
    let names = ways.iter().flat_map(|way| facts.meant(&way.name)).map(|facts| facts.name);
    let names: Vec<&str> = names.collect();
    dma_mins(file).into_iter().all(|dma_min| {
        (0..=GREATEST).filter(|bytes| is_within(rule.above, rule.up_to, *bytes, dma_min)).all(|bytes| {
            names.iter().all(|name| {
                let own = file.ranges.iter().find(|range| range.mechanism == *name);
                let family =
                    file.ranges.iter().find(|range| name.starts_with(&format!("{}-", range.mechanism)));
                own.or(family).is_some_and(|range| !is_within(range.above, range.up_to, bytes, dma_min))
            })
        })
    })
}

fn any_bound() -> impl Strategy<Value = Bound> {
    prop_oneof![3 => (0..7u64).prop_map(Bound::Bytes), 1 => Just(Bound::DmaMin)]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let places = prop_oneof![1 => Just(Vec::new()), 1 => subsequence(PLACES.to_vec(), 1..=3)];
    let hints = (of(select(vec![Warmth::Warm, Warmth::Cold])), of(select(vec![Reuse::Again, Reuse::Once])));
    let rare = prop::option::weighted(0.3, any::<bool>());
    let hints = prop::option::weighted(0.4, hints).prop_map(Option::unwrap_or_default);
    let ways = subsequence(vec!["cma", "net", "net-slow", "shm"], 1..=2);
    let processes = prop::option::weighted(0.4, 2u32..4);
    let speed = prop::sample::select(vec![SingleCopy::Fast, SingleCopy::Slow]);
    let pair = (processes, prop::option::weighted(0.3, speed));
    (of(any_bound()), of(any_bound()), places, rare, hints, pair, ways, 0u8..3, 0..7u64).prop_map(
        |(
            above,
            up_to,
            places,
            contiguous,
            (warmth, reuse),
            (min_processes, single_copy),
            ways,
            kind,
            end,
        )| {
            let take = Take::Ways(ways.into_iter().map(|way| way.parse().unwrap()).collect());
            let (max_readers, line) = (None, 1);
            let rule = Rule {
                above,
                up_to,
                places,
                contiguous,
                warmth,
                reuse,
                min_processes,
                single_copy,
                take,
                max_readers,
                line,
            };
            match kind {
                0 => Rule {
                    above: None,
                    up_to: Some(Bound::Bytes(end)),
                    contiguous: None,
                    warmth: None,
                    reuse: None,
                    take: Take::Eager,
                    ..rule
                },
                _ => rule,
            }
        },
    )
}

fn any_ranges() -> impl Strategy<Value = Vec<MechanismRange>> {
    subsequence(vec!["cma", "net", "net-slow", "shm"], 0..=3).prop_flat_map(|names| {
        let count = names.len();
        let bounds = (of(any_bound()), of(any_bound()));
        (Just(names), prop::collection::vec(bounds, count)).prop_map(|(names, bounds)| {
            let range = |(name, (above, up_to)): (&str, _)| MechanismRange {
                mechanism: name.to_owned(),
                above,
                up_to,
                line: 1,
            };
            names.into_iter().zip(bounds).map(range).collect()
        })
    })
}

fn any_file(rules: std::ops::Range<usize>) -> impl Strategy<Value = File> {
    let rules = prop::collection::vec(any_rule(), rules);
    let dma_min = prop::option::weighted(0.2, 1..9u64);
    (rules, any_ranges(), of(0..7u64), dma_min).prop_map(|(rules, ranges, eager_max_bytes, dma_min)| File {
        rules,
        ranges,
        eager_max_bytes,
        dma_min,
    })
}

/// What is wrong with a file. Of the three places of this world `other` stands
/// for all that no rule names.
fn findings(file: &File) -> Vec<Finding> {
    let mut rules = file.rules.clone();
    for rule in rules.iter_mut().filter(|rule| rule.places.contains(&Place::Other)) {
        let named = [Place::SharedL2, Place::SharedL3];
        rule.places
            .extend(Place::ALL.into_iter().filter(|place| !named.contains(place) && *place != Place::Other));
    }
    check(&Subject {
        rules: &rules,
        ranges: &file.ranges,
        eager_max_bytes: file.eager_max_bytes,
        dma_min: file.dma_min,
        known: &known(),
    })
}

fn silent_by_check(findings: &[Finding]) -> Vec<usize> {
    let rule = |finding: &Finding| match finding {
        Finding::Empty { rule } | Finding::Unreachable { rule, .. } | Finding::Short { rule, .. } => {
            Some(*rule)
        }
        _ => None,
    };
    findings.iter().filter_map(rule).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rules_and_keys_are_refused_that_never_speak(file in any_file(1..5)) {
        let found = findings(&file);
        let (never, fit_nothing, key_speaks) = silent(&file);
        prop_assert_eq!(&silent_by_check(&found), &never, "{:#?}", file);
        let empty = |finding: &Finding| match finding {
            Finding::Empty { rule } => Some(*rule),
            _ => None,
        };
        prop_assert_eq!(found.iter().filter_map(empty).collect::<Vec<_>>(), fit_nothing);
        if found.iter().any(|finding| matches!(finding, Finding::KeyUnused { .. })) {
            prop_assert!(file.eager_max_bytes.is_some() && !key_speaks, "{:#?}", file);
        }
    }

    #[test]
    fn rules_overlap_where_both_fit_and_neither_is_an_exception(file in any_file(2..3)) {
        let found = findings(&file);
        let [one, other] = &file.rules[..] else { unreachable!("there are two") };
        let compete = one.take != Take::Eager || other.take == Take::Eager;
        let expected = silent_by_check(&found).is_empty()
            && compete
            && meet(one, other)
            && overlap(&file, one, other)
            && !is_exception(one, other);
        prop_assert_eq!(found.contains(&Finding::Overlap { earlier: 0, later: 1 }), expected, "{:#?}", file);
    }

    #[test]
    fn rules_are_out_of_range_where_nothing_that_they_take_may_be_taken(file in any_file(1..2)) {
        let found = findings(&file);
        let expected = silent_by_check(&found).is_empty() && is_out_of_range(&file, &file.rules[0]);
        let told = found.iter().any(|finding| matches!(finding, Finding::OutOfRange { rule: 0, .. }));
        prop_assert_eq!(told, expected, "{:#?}", file);
    }

    /// What a rule that fits all places and any number of processes leaves of the
    /// key: nothing, and otherwise something.
    #[test]
    fn the_key_is_unused_where_rules_hold_for_all(file in any_file(1..4)) {
        let found = findings(&file);
        let told = found.iter().any(|finding| matches!(finding, Finding::KeyUnused { .. }));
        let holds_for = |place, speed| {
            file.rules.iter().any(|rule| {
                rule.take == Take::Eager
                    && rule.min_processes.is_none()
                    && rule.single_copy.is_none_or(|asked| asked == speed)
                    && (rule.places.is_empty() || rule.places.contains(&place))
            })
        };
        let speeds = [SingleCopy::Fast, SingleCopy::Slow];
        let holds_for_all =
            PLACES.into_iter().all(|place| speeds.into_iter().all(|speed| holds_for(place, speed)));
        let has_ways_before = file.rules.iter().any(|rule| rule.take != Take::Eager && is_unconditional(rule));
        if file.eager_max_bytes.is_some() && !has_ways_before {
            prop_assert_eq!(told, holds_for_all, "{:#?}", file);
        }
    }
}

/// DMAmin between two named sizes that none of a few samples hits.
#[test]
fn every_value_of_dma_min_counts() {
    let rule = |above, up_to| Rule {
        above,
        up_to,
        places: Vec::new(),
        contiguous: None,
        warmth: None,
        reuse: None,
        min_processes: None,
        single_copy: None,
        take: Take::Ways(vec!["shm".parse().unwrap()]),
        max_readers: None,
        line: 1,
    };
    let bytes = |bytes| Some(Bound::Bytes(bytes));
    // Up to a DMAmin of 5000 they have nothing in common.
    let rules = [rule(bytes(4000), Some(Bound::DmaMin)), rule(bytes(5000), None)];
    let check = |dma_min| {
        let known = known();
        check(&Subject { rules: &rules, ranges: &[], eager_max_bytes: None, dma_min, known: &known })
    };
    assert_eq!(check(None), []);
    assert_eq!(check(Some(4500)), []);
    assert_eq!(check(Some(4000)), [Finding::Empty { rule: 0 }]);
    assert_eq!(check(Some(5001)), [Finding::Overlap { earlier: 0, later: 1 }]);
    assert_eq!(check(Some(u64::MAX)), [Finding::Unreachable { rule: 1, behind: vec![0] }]);
}
