//! Mechanisms for the tests of this folder.

use std::path::Path;

use lmt_core::config_key::{Key, Kind, Value};
use lmt_core::mechanism::Model;
use lmt_core::selection::{Reuse, Warmth};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::known::{Known, MechanismFacts};
use super::parsed::Parsed;
use super::problem::Problem;
use super::read::parse_file;
use crate::collectives::{CollectiveRule, Misnamed};
use crate::rules::{Authority, Bound, Rule, SingleCopy, Take};
use crate::topology::Place;

const KEYS: &[Key] = &[
    Key {
        name: "buffer_bytes",
        kind: Kind::Bytes { least: 4096, most: 1 << 24, multiple_of: 4096 },
        variable: None,
        meaning: "bytes of one buffer",
        reason: "fits a cache",
    },
    Key {
        name: "cpu",
        kind: Kind::Cpu,
        variable: None,
        meaning: "where it runs",
        reason: "the scheduler knows best",
    },
];

/// Two operations, one of them with an algorithm of its own.
fn names(rule: &CollectiveRule) -> Result<(), Misnamed> {
    match (rule.operation.as_str(), rule.algorithm.as_str()) {
        ("collect", _) if rule.has_bounds() => {
            Err(Misnamed::Lengths("collect has no lengths; leave them out".into()))
        }
        ("*" | "spread" | "collect", "all-at-once") | ("*" | "spread", "tree:2" | "tree:4") => Ok(()),
        ("*" | "spread" | "collect", other) => {
            let sentence = format!("{} is not done by {other}; all-at-once does it", rule.operation);
            Err(Misnamed::Algorithm(sentence))
        }
        (other, _) => {
            Err(Misnamed::Operation(format!("there is no operation {other}; there are spread and collect")))
        }
    }
}

/// A few mechanisms, one of them with keys, two of one family.
pub(super) fn known() -> Known {
    let facts = |name, models, keys: &'static [Key]| MechanismFacts {
        name,
        models,
        keys,
        defaults: keys.iter().map(|_| Value::Absent).collect(),
    };
    let copies = &[Model::Get, Model::Put];
    let mechanisms = vec![
        facts("cma", copies, &[]),
        facts("net-fast", copies, KEYS),
        facts("net-slow", &[Model::Get], KEYS),
        facts("shm", &[Model::Cooperative], KEYS),
    ];
    Known { mechanisms, collectives: Some(names) }
}

/// Reads a user's file `lmt.toml` with these mechanisms.
pub(super) fn parse(text: &str) -> Result<Parsed, Vec<Problem>> {
    parse_file(Path::new("lmt.toml"), text, Authority::User, &known())
}

/// What is wrong with a text, a sentence each.
pub(super) fn complaints(text: &str) -> Vec<String> {
    parse(text).err().into_iter().flatten().map(|problem| problem.to_string()).collect()
}

/// Any rule that a file can have, with bounds that often meet others'.
pub(super) fn any_rule() -> impl Strategy<Value = Rule> {
    let bytes = select(vec![0, 1, 1000, 4096, 65536, 65537, 1 << 20, (1 << 20) + 1, 16 << 20, u64::MAX]);
    let bound = prop_oneof![3 => bytes.prop_map(Bound::Bytes), 1 => Just(Bound::DmaMin)];
    let bounds = (of(bound.clone()), of(bound));
    let places = prop_oneof![1 => Just(Vec::new()), 1 => subsequence(Place::ALL.to_vec(), 1..=7)];
    let hints = (of(select(vec![Warmth::Warm, Warmth::Cold])), of(select(vec![Reuse::Again, Reuse::Once])));
    let speed = of(select(vec![SingleCopy::Fast, SingleCopy::Slow]));
    let counts = (of(2u32..4), of(1u32..5), speed);
    let ways = subsequence(vec!["cma", "cma:put", "net", "net:get", "net-slow", "shm"], 1..=6).prop_shuffle();
    // One rule in five takes cells, with the range that such a rule has.
    (bounds, places, of(any::<bool>()), hints, counts, ways, 0u8..5, 0u64..=1 << 20).prop_map(
        |(
            (above, up_to),
            places,
            contiguous,
            (warmth, reuse),
            (min_processes, max_readers, single_copy),
            ways,
            kind,
            end,
        )| {
            let ways = ways.into_iter().map(|way| way.parse().unwrap()).collect();
            let rule = Rule {
                above,
                up_to,
                places,
                contiguous,
                warmth,
                reuse,
                min_processes,
                single_copy,
                take: Take::Ways(ways),
                max_readers,
                line: 1,
            };
            match kind {
                0 => Rule {
                    contiguous: None,
                    warmth: None,
                    reuse: None,
                    above: None,
                    up_to: Some(Bound::Bytes(end)),
                    take: Take::Eager,
                    max_readers: None,
                    ..rule
                },
                _ => rule,
            }
        },
    )
}
