use std::path::Path;

use lmt_core::config_key::Value;
use lmt_core::mechanism::Model;
use lmt_core::selection::Source;

use super::*;
use crate::calibration::testing::{Line, MACHINE, measured, order};
use crate::config::{Known, MechanismFacts, parse_file};
use crate::contention::BROADWELL;
use crate::rules::Authority;
use crate::topology::Place;

fn provenance() -> Provenance {
    Provenance {
        date: "2026-11-21T10:00:00Z".into(),
        machine: "a-machine-2".into(),
        cpu: "A \"processor\" with a \\".into(),
        kernel: "Linux 6.1".into(),
        cpus: "0-1".into(),
        lmt: "0.1.0".into(),
        hwloc: Some("1 package".into()),
        options: "--quick".into(),
        complete: true,
        skipped: vec!["the same core: there is\nnone".into()],
    }
}

fn known() -> Known {
    let facts = |name| MechanismFacts { name, models: &Model::ALL, keys: &[], defaults: Vec::new() };
    Known { mechanisms: ["read", "driver", "ring"].map(facts).to_vec(), collectives: None }
}

/// Every kind of load, each with a choice of its own.
fn courses() -> Vec<Course> {
    let mut all = Vec::new();
    for place in [Place::SharedL2, Place::Other] {
        for (seed, (pairs, off_cache)) in
            [(1, false), (1, true), (4, false), (4, true)].into_iter().enumerate()
        {
            let factor = 1.0 + seed as f64;
            let change = |line: &Line| match line.way {
                "driver:get" => Line { byte_ns: line.byte_ns * 2.5 / factor, ..line.clone() },
                "ring:cooperative" => Line { byte_ns: line.byte_ns / factor, ..line.clone() },
                _ => line.clone(),
            };
            let lines: Vec<Line> = MACHINE.iter().map(change).collect();
            all.push(measured(&lines, Load { place, pairs, off_cache }, seed as u64, 0.02, 3, 5));
        }
    }
    all
}

/// As they are read from line to line of the file.
fn collectives() -> Vec<CollectiveRule> {
    let rule = CollectiveRule::new("spread", "tree:4", Source::Call);
    let measured = CollectiveRule { min_ranks: Some(2), max_ranks: Some(2), ..rule.clone() };
    vec![
        CollectiveRule { above: Some(65536), up_to: Some(1 << 20), ..measured.clone() },
        CollectiveRule { above: Some(1 << 20), ..measured },
        CollectiveRule { up_to: Some(1000), ..rule },
    ]
}

#[test]
fn what_is_written_is_read_back_without_a_problem() {
    let calibration = Calibration::new(provenance(), &courses(), &order(&MACHINE))
        .with_copy_routine("portable aliased 2KiB-".to_owned())
        .with_contention(Some(BROADWELL.parameters.clone()))
        .with_collectives(collectives());
    let text = calibration.to_toml();
    let parsed = parse_file(Path::new("c.toml"), &text, Authority::Calibration, &known());
    let parsed = parsed.unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
    let mut rules: Vec<Rule> = calibration.rules.iter().map(|(_, rule)| rule.clone()).collect();
    assert!(
        rules.iter().any(|rule| rule.warmth.is_some())
            && rules.iter().any(|rule| rule.min_processes.is_some())
    );
    for (rule, read) in rules.iter_mut().zip(&parsed.layer.rules) {
        rule.line = read.line;
    }
    assert_eq!(parsed.layer.rules, rules);
    assert_eq!(parsed.layer.figures, calibration.figures);
    assert_eq!(parsed.contention.map(|(contention, _)| contention), Some(BROADWELL.parameters.clone()));
    let mut collectives = collectives();
    for (rule, read) in collectives.iter_mut().zip(&parsed.collectives) {
        assert!(matches!(read.source, Source::Calibration { .. }));
        rule.source = read.source.clone();
    }
    assert_eq!(parsed.collectives, collectives);
    let copies = parsed.endpoint.iter().map(|(key, value, _)| (*key, value.clone()));
    let written = Value::Text("portable aliased 2KiB-".to_owned());
    assert_eq!(copies.collect::<Vec<_>>(), [("copy_routine", written)]);
    let told = parsed.calibration.unwrap();
    assert_eq!(told.machine.as_deref(), Some("a-machine-2"));
    assert!(told.complete);
    assert!(told.told.contains(&("cpu", "A \"processor\" with a \\".into())));
}

#[test]
fn an_interrupted_one_says_so() {
    let provenance = Provenance { complete: false, ..provenance() };
    let text = Calibration { provenance, ..Calibration::default() }.to_toml();
    let parsed = parse_file(Path::new("c.toml"), &text, Authority::Calibration, &known()).unwrap();
    assert!(!parsed.calibration.unwrap().complete);
}
