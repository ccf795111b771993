//! What the environment sets.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use lmt_core::config::KEYS;
use lmt_core::config_key::{Kind, Value};

use super::known::Known;
use super::problem::{Mark, Problem};
use super::read::dma_min_of_variable;
use super::reader::way;
use super::table::{COLLECTIVES_VARIABLE, DMA_MIN_VARIABLE, MAX_READERS, SINGLE_COPY};
use super::value::{Wrong, from_text};
use crate::collectives::CollectiveRule;
use crate::configuration::DmaMinSetting;
use crate::nearest::nearest;
use crate::rules::SingleCopy;

/// What the environment sets; each with the variable that does.
#[derive(Debug, Default)]
pub(super) struct FromEnvironment {
    pub endpoint: Vec<(&'static str, Value, &'static str)>,
    pub dma_min: Option<DmaMinSetting>,
    pub max_readers: Option<u32>,
    pub single_copy: Option<Option<SingleCopy>>,
    /// Rules of collective operations.
    pub collectives: Vec<CollectiveRule>,
    /// What is wrong with these, where that stops only those who make groups.
    pub collective_problems: Vec<Problem>,
    /// Mechanism, key, value and variable.
    pub mechanisms: Vec<(&'static str, &'static str, Value, String)>,
}

/// Under which name problems of the environment are shown.
const SHOWN: &str = "the environment";

/// Variables that no key of a file is set by, with what they are for.
const OTHERS: &[&str] = &["LMT_CONFIG", "LMT_STATS", "LMT_FI", "LMT_FI_ATOMIC", "LMT_REQUIRE", "LMT_SPEED"];

/// All variables that lmt looks at, for whoever looks for slips of the pen.
pub fn known_variables(known: &Known) -> Vec<String> {
    let endpoint = KEYS.iter().filter_map(|key| key.variable);
    let own = endpoint
        .chain([DMA_MIN_VARIABLE, COLLECTIVES_VARIABLE])
        .chain(MAX_READERS.variable)
        .chain(SINGLE_COPY.variable)
        .chain(OTHERS.iter().copied());
    let mut all: Vec<String> = own.map(str::to_owned).collect();
    for facts in &known.mechanisms {
        all.extend(facts.keys.iter().map(|key| facts.variable(key.name)));
    }
    all
}

/// What the names of all variables of lmt begin with.
pub const PREFIX: &str = "LMT_";

/// A variable that is set as if lmt read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Misspelling {
    /// Its name.
    pub name: String,
    /// The variable that was probably meant.
    pub meant: Option<String>,
}

/// Those of the variables `set` that begin as lmt's do and are not among those
/// that are `read`, by name.
///
/// ```
/// let slips = lmt_selector::config::slips(["LMT_QUOTE", "HOME"], &["LMT_QUOTA".to_owned()]);
/// assert_eq!((slips.len(), slips[0].meant.as_deref()), (1, Some("LMT_QUOTA")));
/// ```
pub fn slips<'a>(set: impl IntoIterator<Item = &'a str>, read: &[String]) -> Vec<Misspelling> {
    // Without what all of them begin with, which would make any two alike.
    let rest = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
    let rests: Vec<String> = read.iter().map(|name| rest(name)).collect();
    let strange = set.into_iter().filter(|name| name.starts_with(PREFIX) && !read.iter().any(|r| r == name));
    let mut slips: Vec<Misspelling> = strange
        .map(|name| {
            let near = nearest(&rest(name), rests.iter().map(String::as_str));
            let meant = near.and_then(|near| read.iter().find(|name| rest(name) == near));
            Misspelling { name: name.to_owned(), meant: meant.cloned() }
        })
        .collect();
    slips.sort_unstable();
    slips
}

/// A sentence on each slip of the environment; `others` are read elsewhere.
pub(super) fn remarks(environment: &[(String, OsString)], known: &Known, others: &[String]) -> Vec<String> {
    let mut read = known_variables(known);
    read.extend(others.iter().cloned());
    let set = environment.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.as_str());
    let sentence = |Misspelling { name, meant }: Misspelling| {
        let help = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        format!("{name} is set, and lmt reads no such variable{help}")
    };
    slips(set, &read).into_iter().map(sentence).collect()
}

/// A variable's value; `None` when it is not set, or empty.
pub(super) fn find<'e>(environment: &'e [(String, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = environment.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
}

/// Reads all variables but LMT_CONFIG.
pub(super) fn read(
    environment: &[(String, OsString)],
    known: &Known,
    problems: &mut Vec<Problem>,
) -> FromEnvironment {
    let mut read = FromEnvironment::default();
    let mut noted = |name: &str, text: &str, result: Result<(), Wrong>| {
        if let Err(wrong) = result {
            problems.push(problem(name, text, &wrong));
        }
    };
    let mut each = |name: &str, take: &mut dyn FnMut(&str) -> Result<(), Wrong>| {
        let Some(value) = find(environment, name) else { return };
        match value.to_str() {
            Some(text) => noted(name, text, take(text)),
            None => noted(name, &value.to_string_lossy(), Err(Wrong::new("is no UTF-8", "write plain text"))),
        }
    };
    for key in KEYS {
        let Some(variable) = key.variable else { continue };
        each(variable, &mut |text| {
            let value = from_text(key.kind, text)?;
            check_names(known, &value)?;
            read.endpoint.push((key.name, value, variable));
            Ok(())
        });
    }
    each(DMA_MIN_VARIABLE, &mut |text| {
        read.dma_min = Some(dma_min_of_variable(text)?);
        Ok(())
    });
    if let Some(variable) = MAX_READERS.variable {
        each(variable, &mut |text| {
            if let Value::Number(readers) = from_text(MAX_READERS.kind, text)? {
                // Within the key's bounds it fits 32 bits.
                read.max_readers = Some(readers as u32);
            }
            Ok(())
        });
    }
    if let Some(variable) = SINGLE_COPY.variable {
        each(variable, &mut |text| {
            if let Value::Text(word) = from_text(SINGLE_COPY.kind, text)? {
                read.single_copy = Some(SingleCopy::from_name(&word));
            }
            Ok(())
        });
    }
    for facts in &known.mechanisms {
        for key in facts.keys {
            let variable = facts.variable(key.name);
            each(&variable, &mut |text| {
                let value = from_text(key.kind, text)?;
                if matches!(key.kind, Kind::Mechanisms) {
                    check_names(known, &value)?;
                }
                read.mechanisms.push((facts.name, key.name, value, variable.clone()));
                Ok(())
            });
        }
    }
    let problems = if known.collectives.is_some() { problems } else { &mut read.collective_problems };
    read.collectives = collectives(environment, known, problems);
    read
}

/// The rules of collective operations that the variable has.
fn collectives(
    environment: &[(String, OsString)],
    known: &Known,
    problems: &mut Vec<Problem>,
) -> Vec<CollectiveRule> {
    let Some(value) = find(environment, COLLECTIVES_VARIABLE) else { return Vec::new() };
    let read = value.to_str().ok_or_else(|| Wrong::new("is no UTF-8", "write plain text"));
    let rules = read.and_then(|text| super::read_collective::of_variable(known, text));
    rules.unwrap_or_else(|wrong| {
        problems.push(problem(COLLECTIVES_VARIABLE, &value.to_string_lossy(), &wrong));
        Vec::new()
    })
}

fn check_names(known: &Known, value: &Value) -> Result<(), Wrong> {
    let Value::Names(names) = value else { return Ok(()) };
    for name in names {
        way(known, name)
            .map_err(|wrong| Wrong::new(format!("names `{name}`, which {}", wrong.is), wrong.help))?;
    }
    Ok(())
}

fn problem(name: &str, value: &str, wrong: &Wrong) -> Problem {
    let source: Arc<str> = Arc::from(format!("{name}={value}"));
    let span = name.len() + 1..source.len();
    let mark = Mark { span, label: "this value".to_owned() };
    let message = format!("the variable {name} {}", wrong.is);
    Problem::of_variable(Path::new(SHOWN), &source, mark, message, wrong.help.clone())
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
