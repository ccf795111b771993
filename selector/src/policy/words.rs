//! Rules in words.

use lmt_core::selection::{Reuse, Source, Warmth};

use super::pair::Pair;
use crate::rules::{Authority, Bound, Layer, MechanismRange, Rule, SingleCopy, Take};
use crate::size;
use crate::topology::Place;

/// A length as people read it: exact while it is short or whole, else with one
/// digit behind the point.
pub(super) fn length(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    match bytes {
        _ if bytes < 10 * KIB || bytes.is_multiple_of(KIB) => size::written(bytes),
        _ if bytes < 10 * MIB => format!("{:.1} KiB", bytes as f64 / KIB as f64),
        _ => format!("{:.1} MiB", bytes as f64 / MIB as f64),
    }
}

/// A time: `900 ns`, `31 us`, `2.4 ms`.
pub(super) fn time(ns: u64) -> String {
    match ns {
        0..1000 => format!("{ns} ns"),
        1000..10_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} us", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// Where a line of a layer stands.
pub(super) fn source(layer: &Layer, line: u32) -> Source {
    let path = || layer.path.display().to_string();
    match layer.authority {
        Authority::User => Source::File { path: path(), line },
        Authority::Calibration => Source::Calibration { path: path(), line },
        Authority::Default => Source::Default { line: Some(line) },
    }
}

/// What two processes have in common, as a phrase of a rule.
const fn between(place: Place) -> &'static str {
    match place {
        Place::SameCore => "on the same core",
        Place::SharedL1 => "with a shared L1",
        Place::SharedL2 => "with a shared L2",
        Place::SharedL3 => "with a shared L3",
        Place::SameNuma => "on the same NUMA node",
        Place::SamePackage => "in the same package",
        Place::Other => "with nothing in common but the machine",
    }
}

/// What two processes have in common, as a heading.
pub(super) fn heading(place: Place) -> String {
    match place {
        Place::Other => "nothing shared but the machine".to_owned(),
        place => place.to_string(),
    }
}

impl Pair<'_> {
    fn bound(&self, bound: Bound) -> String {
        match bound {
            Bound::Bytes(bytes) => length(bytes),
            Bound::DmaMin => format!("DMAmin ({})", length(self.threshold.bytes())),
        }
    }

    fn bounds(&self, above: Option<Bound>, up_to: Option<Bound>) -> String {
        match (above, up_to) {
            (None, None) => "of any length".to_owned(),
            (Some(above), None) => format!("above {}", self.bound(above)),
            (None, Some(up_to)) => format!("up to {}", self.bound(up_to)),
            (Some(above), Some(up_to)) => {
                format!("above {} and up to {}", self.bound(above), self.bound(up_to))
            }
        }
    }

    /// The lengths of a rule: "messages above 64 KiB and up to 2 MiB".
    pub(super) fn lengths(&self, rule: &Rule) -> String {
        format!("messages {}", self.bounds(rule.above, rule.up_to))
    }

    /// The lengths that are set for a mechanism.
    pub(super) fn range_lengths(&self, range: &MechanismRange) -> String {
        format!("messages {}", self.bounds(range.above, range.up_to))
    }

    /// A whole rule: "messages above 64 KiB between processes with a shared L2:
    /// a, b in this order".
    pub(super) fn rule(&self, rule: &Rule) -> String {
        let mut words = self.lengths(rule);
        if !rule.places.is_empty() {
            let places: Vec<&str> = rule.places.iter().map(|place| between(*place)).collect();
            words += " between processes ";
            words += &places.join(" or ");
        }
        words += match rule.contiguous {
            None => "",
            Some(true) => ", of one segment",
            Some(false) => ", of many segments",
        };
        words += match rule.warmth {
            Some(Warmth::Warm) => ", just written by the sender",
            Some(Warmth::Cold) => ", written long ago",
            _ => "",
        };
        words += match rule.reuse {
            Some(Reuse::Again) => ", from a buffer that is used again",
            Some(Reuse::Once) => ", from a buffer that is used once",
            _ => "",
        };
        if let Some(least) = rule.min_processes {
            words += &format!(", when at least {least} processes are known");
        }
        words += match rule.single_copy {
            None => "",
            Some(SingleCopy::Fast) => ", where single copies are fast",
            Some(SingleCopy::Slow) => ", where single copies are slow",
        };
        match &rule.take {
            Take::Eager => words + ": in cells",
            Take::Ways(ways) => {
                let ways: Vec<String> = ways.iter().map(ToString::to_string).collect();
                words + ": " + &in_order(&ways)
            }
        }
    }
}

/// "a", "a, b in this order", or "a, b, c and 4 more in this order".
pub(super) fn in_order(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        many if many.len() > 5 => {
            format!("{} and {} more in this order", names[..3].join(", "), names.len() - 3)
        }
        many => format!("{} in this order", many.join(", ")),
    }
}
