//! The environment: variables that lmt reads, and those that it would have
//! read under another name.

use lmt::diagnostic::{Finding, State};
use lmt_selector::config::{Misspelling, PREFIX, slips};

pub(super) fn findings() -> Vec<Finding> {
    let set: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    // What is wrong with files is told of them.
    let mut sources = lmt::configuration::sources();
    sources.folder = None;
    sources.environment.retain(|(name, _)| name != "LMT_CONFIG");
    let error = lmt_selector::config::load(&sources).err().map(|error| error.to_string());
    of(set, &lmt::configuration::variables(), error)
}

fn of(mut set: Vec<String>, known: &[String], error: Option<String>) -> Vec<Finding> {
    set.sort();
    let strange = slips(set.iter().map(String::as_str), known);
    set.retain(|name| known.contains(name));
    let name = "variables";
    let mut found = vec![match error {
        Some(sentence) => {
            Finding::new(name, State::Blocked, sentence).fixed_by("correct the variable, or unset it")
        }
        None if set.is_empty() => Finding::new(name, State::Good, "none of lmt's is set"),
        None => Finding::new(name, State::Good, format!("set and read: {}", set.join(", "))),
    }];
    found.extend(strange.into_iter().map(told));
    found
}

fn told(Misspelling { name, meant }: Misspelling) -> Finding {
    let meaning = "it is set, and lmt reads no variable of this name";
    let fix = match meant {
        Some(meant) => format!("did you mean {meant}? otherwise: unset {name}"),
        None => format!("unset {name}"),
    };
    Finding::new(name, State::Limited, meaning).fixed_by(fix)
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
