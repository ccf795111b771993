use lmt_core::selection::{Reuse, Warmth};
use proptest::prelude::*;

use super::{DMA_MIN_SAMPLES, Finding, check, lengths};
use crate::config::test_support::any_rule;
use crate::rules::{Bound, Rule};
use crate::topology::Place;

/// One message, as far as rules look at it.
#[derive(Clone, Copy, Debug)]
struct Case {
    bytes: u64,
    place: Place,
    contiguous: bool,
    warmth: Warmth,
    reuse: Reuse,
    processes: u32,
}

/// Whether a rule fits a message: the plain meaning of its fields.
fn fits(rule: &Rule, case: &Case, dma_min: u64) -> bool {
    let bytes = |bound: Bound| match bound {
        Bound::Bytes(bytes) => bytes,
        Bound::DmaMin => dma_min,
    };
    rule.above.is_none_or(|above| case.bytes > bytes(above))
        && rule.up_to.is_none_or(|up_to| case.bytes <= bytes(up_to))
        && (rule.places.is_empty() || rule.places.contains(&case.place))
        && rule.contiguous.is_none_or(|contiguous| contiguous == case.contiguous)
        && rule.warmth.is_none_or(|warmth| warmth == case.warmth)
        && rule.reuse.is_none_or(|reuse| reuse == case.reuse)
        && rule.min_processes.is_none_or(|least| case.processes >= least)
}

/// Every message that rules could tell apart: lengths at and beside each bound.
fn cases(rules: &[Rule], dma_min: u64) -> Vec<Case> {
    let bounds = rules.iter().flat_map(|rule| [rule.above, rule.up_to]).flatten();
    let bytes = bounds.map(|bound| match bound {
        Bound::Bytes(bytes) => bytes,
        Bound::DmaMin => dma_min,
    });
    let mut lengths: Vec<u64> = bytes.flat_map(|b| [b, b.saturating_add(1)]).chain([0, u64::MAX]).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut counts: Vec<u32> = rules.iter().filter_map(|rule| rule.min_processes).chain([1]).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut cases = Vec::new();
    for bytes in lengths {
        for place in Place::ALL {
            for contiguous in [false, true] {
                for warmth in [Warmth::Unknown, Warmth::Warm, Warmth::Cold] {
                    for reuse in [Reuse::Unknown, Reuse::Once, Reuse::Again] {
                        cases.extend(counts.iter().map(|processes| Case {
                            bytes,
                            place,
                            contiguous,
                            warmth,
                            reuse,
                            processes: *processes,
                        }));
                    }
                }
            }
        }
    }
    cases
}

/// Which rules are never the first that fits, for any message and DMAmin; and
/// which fit nothing at all.
fn silent(rules: &[Rule]) -> (Vec<usize>, Vec<usize>) {
    let mut speaks = vec![false; rules.len()];
    let mut fits_some = vec![false; rules.len()];
    for dma_min in DMA_MIN_SAMPLES {
        for case in cases(rules, dma_min) {
            let mut fitting = (0..rules.len()).filter(|at| fits(&rules[*at], &case, dma_min));
            if let Some(first) = fitting.next() {
                speaks[first] = true;
                fits_some[first] = true;
            }
            fitting.for_each(|at| fits_some[at] = true);
        }
    }
    let without = |told: &[bool]| (0..rules.len()).filter(|at| !told[*at]).collect::<Vec<usize>>();
    (without(&speaks), without(&fits_some))
}

/// Whether the two ranges have a length in common for each DMAmin for which
/// neither is empty, by trying lengths.
fn overlap(one: &Rule, other: &Rule) -> bool {
    let both = [one.clone(), other.clone()];
    let each: Vec<bool> = DMA_MIN_SAMPLES
        .into_iter()
        .filter(|dma| both.iter().all(|rule| lengths(rule.above, rule.up_to, *dma).is_some()))
        .map(|dma| cases(&both, dma).iter().any(|case| both.iter().all(|rule| fits(rule, case, dma))))
        .collect();
    !each.is_empty() && each.iter().all(|overlap| *overlap)
}

/// Whether all messages that the earlier one fits, lengths aside, the later one
/// fits too, and some more.
fn is_exception(earlier: &Rule, later: &Rule) -> bool {
    let open = |rule: &Rule| Rule { above: None, up_to: None, ..rule.clone() };
    let (earlier, later) = (open(earlier), open(later));
    let cases = cases(&[earlier.clone(), later.clone()], 1);
    let count = |rule: &Rule| cases.iter().filter(|case| fits(rule, case, 1)).count();
    cases.iter().all(|case| !fits(&earlier, case, 1) || fits(&later, case, 1))
        && count(&earlier) < count(&later)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn empty_and_unreachable_rules_are_those_that_never_speak(rules in prop::collection::vec(any_rule(), 1..5)) {
        let (never_first, fit_nothing) = silent(&rules);
        let found: Vec<usize> = check(&rules)
            .into_iter()
            .filter_map(|finding| match finding {
                Finding::Empty { rule } | Finding::Unreachable { rule, .. } => Some(rule),
                Finding::Overlap { .. } => None,
            })
            .collect();
        prop_assert_eq!(&found, &never_first, "{:#?}", rules);
        let empty: Vec<usize> = check(&rules)
            .into_iter()
            .filter_map(|finding| match finding {
                Finding::Empty { rule } => Some(rule),
                _ => None,
            })
            .collect();
        prop_assert_eq!(empty, fit_nothing);
    }

    #[test]
    fn rules_overlap_where_both_fit_and_neither_is_an_exception(one in any_rule(), other in any_rule()) {
        let rules = [one, other];
        let found = check(&rules);
        let reached = !found.iter().any(|f| !matches!(f, Finding::Overlap { .. }));
        let expected = reached && overlap(&rules[0], &rules[1]) && !is_exception(&rules[0], &rules[1]);
        prop_assert_eq!(found.contains(&Finding::Overlap { earlier: 0, later: 1 }), expected, "{:#?}", rules);
    }
}
