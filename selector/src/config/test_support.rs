//! Mechanisms for the tests of this folder.

use std::path::Path;

use lmt_core::keys::{Key, Kind, Value};
use lmt_core::mechanism::Model;

use super::known::{Known, MechanismFacts};
use super::problem::Problem;
use super::read::{Parsed, parse_file};
use crate::rules::Authority;

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
    Known { mechanisms }
}

/// Reads a user's file `lmt.toml` with these mechanisms.
pub(super) fn parse(text: &str) -> Result<Parsed, Vec<Problem>> {
    parse_file(Path::new("lmt.toml"), text, Authority::User, &known())
}

/// What is wrong with a text, a sentence each.
pub(super) fn complaints(text: &str) -> Vec<String> {
    parse(text).err().into_iter().flatten().map(|problem| problem.to_string()).collect()
}
