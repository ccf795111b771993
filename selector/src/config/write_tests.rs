use proptest::prelude::*;

use super::{quoted, write_figure, write_range, write_rule};
use crate::config::checks::{Subject, check};
use crate::config::test_support::{any_rule, known, parse};
use crate::rules::{Bound, Figure, MechanismRange, Rule};
use crate::topology::Place;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A list of rules that is written and read is the same list, apart from
    /// the lines, which are then those of the text.
    #[test]
    fn rules_come_back_as_they_were_written(candidates in prop::collection::vec(any_rule(), 0..6)) {
        let mut rules: Vec<Rule> = Vec::new();
        for rule in candidates {
            rules.push(rule);
            // One that does not go with those before it is left out.
            let known = known();
            let alone =
                Subject { rules: &rules, ranges: &[], eager_max_bytes: None, dma_min: None, known: &known };
            if !check(&alone).is_empty() {
                rules.pop();
            }
        }
        let text: String = rules.iter().map(write_rule).collect();
        let parsed = parse(&text);
        prop_assert!(parsed.is_ok(), "{text}\n{:?}", parsed.err());
        let headers = text.lines().zip(1..).filter(|(line, _)| *line == "[[rule]]").map(|(_, at)| at);
        let expected: Vec<Rule> = rules.into_iter().zip(headers).map(|(rule, line)| Rule { line, ..rule }).collect();
        prop_assert_eq!(parsed.unwrap().layer.rules, expected);
    }

    #[test]
    fn texts_come_back_as_they_were_written(text in any::<String>()) {
        let read: toml::Table = toml::from_str(&format!("text = {}", quoted(&text))).unwrap();
        prop_assert_eq!(read["text"].as_str(), Some(text.as_str()));
    }
}

#[test]
fn ranges_and_figures_come_back_as_they_were_written() {
    let range = MechanismRange {
        mechanism: "net".to_owned(),
        above: Some(Bound::Bytes(1000)),
        up_to: Some(Bound::DmaMin),
        line: 2,
    };
    let figure = Figure {
        place: Place::SharedL3,
        pairs: 2,
        off_cache: true,
        bytes: 65536,
        way: "cma:get".to_owned(),
        median_ns: 9000,
    };
    let parsed = parse(&format!("[calibration]\n{}{}", write_range(&range), write_figure(&figure))).unwrap();
    assert_eq!(parsed.layer.ranges, [range]);
    assert_eq!(parsed.layer.figures, [figure]);
}
