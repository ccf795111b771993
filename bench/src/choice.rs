//! Which mechanisms the command line means.

use lmt::selection::{PathName, PathNameError};
use lmt_selector::calibration::EAGER;

use crate::console::complain;
use crate::engine::{self, LeftOut, Mechanism};
use crate::error::BenchError;
use crate::memory::Memory;
use crate::nearest::unknown;

/// The engine's own choice.
pub const AUTO: &str = "auto";
/// Every mechanism that works here.
pub const ALL: &str = "all";

/// Every mechanism that works here, with all messages but the empty ones
/// announced; with a colon and a name behind it, that one.
pub const ANNOUNCED: &str = "announced";

/// The way that a name on the command line means: cells, or a mechanism for all
/// messages whatever their length; `None` for what the engine decides as users
/// know it.
pub fn path_of(name: &str) -> Option<&str> {
    if name == EAGER { Some(name) } else { name.strip_prefix(ANNOUNCED)?.strip_prefix(':') }
}

/// What the command line means on this machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The mechanisms, each once, in order.
    pub mechanisms: Vec<String>,
    /// Those that were meant too and do not work here.
    pub left_out: Vec<LeftOut>,
}

/// The mechanisms that a list with commas means, of which each part may be the
/// engine's own choice, all, a mechanism, a family, or one of these with who
/// copies behind a colon; or a way by itself (see [`path_of`]). Messages will lie
/// in such memory.
///
/// # Errors
/// There is no such mechanism, or it does not work here or with such memory.
pub fn choose(asked: Option<&str>, memory: Memory) -> Result<Choice, BenchError> {
    let asked = asked.unwrap_or(AUTO);
    // To find out what works takes a second process.
    let mut known = if asked == AUTO { Vec::new() } else { engine::mechanisms() };
    known.iter_mut().for_each(|mechanism| mechanism.unavailable = mechanism.unusable(memory));
    let choice = choose_of(&known, asked)?;
    for LeftOut { name, reason } in &choice.left_out {
        complain(&format!("{name} is left out: {reason}"));
    }
    Ok(choice)
}

fn choose_of(known: &[Mechanism], asked: &str) -> Result<Choice, BenchError> {
    let mut choice = Choice::default();
    for part in asked.split(',').map(str::trim) {
        match part {
            AUTO => choice.add(AUTO),
            ALL => choice.add_all(known, ""),
            EAGER => choice.add(EAGER),
            ANNOUNCED => choice.add_all(known, "announced:"),
            name => match path_of(name) {
                Some(way) => choice.add(&format!("{ANNOUNCED}:{}", one(known, way)?)),
                None => choice.add(&one(known, name)?),
            },
        }
    }
    if choice.mechanisms.is_empty() {
        return Err(BenchError::Failure("no mechanism works on this machine".into()));
    }
    Ok(choice)
}

impl Choice {
    fn add(&mut self, mechanism: &str) {
        if !self.mechanisms.iter().any(|known| known == mechanism) {
            self.mechanisms.push(mechanism.to_owned());
        }
    }

    fn add_all(&mut self, known: &[Mechanism], prefix: &str) {
        for mechanism in known {
            match &mechanism.unavailable {
                None => self.add(&format!("{prefix}{}", mechanism.name)),
                Some(reason) => {
                    let left_out = LeftOut { name: mechanism.name.clone(), reason: reason.clone() };
                    if !self.left_out.contains(&left_out) {
                        self.left_out.push(left_out);
                    }
                }
            }
        }
    }
}

/// Of a family, the first that works; if none does, the first.
fn one(known: &[Mechanism], asked: &str) -> Result<String, BenchError> {
    let way: PathName = asked.parse().map_err(|error: PathNameError| BenchError::Usage(error.to_string()))?;
    let mut meant = known.iter().filter(|mechanism| way.means_mechanism(&mechanism.name));
    let first = meant.clone().next();
    match meant.find(|mechanism| mechanism.unavailable.is_none()).or(first) {
        Some(mechanism) => match &mechanism.unavailable {
            None => Ok(PathName { name: mechanism.name.clone(), ..way }.to_string()),
            Some(reason) => {
                Err(BenchError::Failure(format!("{} does not work here: {reason}", mechanism.name)))
            }
        },
        None => {
            let names = known.iter().map(|mechanism| mechanism.name.as_str());
            let names: Vec<&str> = [AUTO, ALL].into_iter().chain(names).collect();
            Err(BenchError::Usage(unknown("mechanism", &way.name, &names)))
        }
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
