//! The environment: variables that lmt reads, and those that it would have
//! read under another name.

use lmt::checkup::{Finding, State};

use crate::nearest::nearest;

const PREFIX: &str = "LMT_";

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
    let (read, strange): (Vec<String>, Vec<String>) = set.into_iter().partition(|name| known.contains(name));
    let name = "variables";
    let mut found = vec![match error {
        Some(sentence) => {
            Finding::new(name, State::Blocked, sentence).fixed_by("correct the variable, or unset it")
        }
        None if read.is_empty() => Finding::new(name, State::Good, "none of lmt's is set"),
        None => Finding::new(name, State::Good, format!("set and read: {}", read.join(", "))),
    }];
    found.extend(strange.into_iter().map(|name| slip(name, known)));
    found
}

fn slip(name: String, known: &[String]) -> Finding {
    // Without what all of them begin with, which would make any two alike.
    let rest = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
    let rests: Vec<String> = known.iter().map(|known| rest(known)).collect();
    let near = nearest(&rest(&name), rests.iter().map(String::as_str));
    let meant = near.and_then(|near| known.iter().find(|known| rest(known) == near));
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
