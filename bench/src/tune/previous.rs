//! The calibration that was there before, and what changed against it.

use std::path::Path;

use lmt_selector::calibration::{CourseRules, Load, taken};
use lmt_selector::config::parse_file;
use lmt_selector::rules::{Authority, Rule};

use crate::sizes::human;

/// The calibration that is about to be replaced.
#[derive(Clone, Debug)]
pub enum Previous {
    /// There is none.
    Absent,
    /// It cannot be read: why, in a line.
    Unreadable(String),
    /// Its rules, and whether it was complete.
    Rules {
        /// They.
        rules: Vec<Rule>,
        /// Whether everything was measured for it.
        complete: bool,
    },
}

impl Previous {
    /// Reads it.
    pub fn read(path: &Path) -> Self {
        // A device or a pipe holds none, and might never end.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Self::Absent;
        }
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::Absent,
            Err(error) => return Self::Unreadable(error.to_string()),
        };
        if text.is_empty() {
            return Self::Absent;
        }
        match parse_file(path, &text, Authority::Calibration, &lmt::configuration::sources().known) {
            Ok(parsed) => Self::Rules {
                rules: parsed.layer.rules,
                complete: parsed.calibration.is_some_and(|calibration| calibration.complete),
            },
            Err(problems) => {
                let first = problems.first().map(ToString::to_string).unwrap_or_default();
                Self::Unreadable(first.lines().next().unwrap_or_default().to_owned())
            }
        }
    }

    /// What changed, a line each.
    pub fn changes(&self, courses: &[CourseRules]) -> Vec<String> {
        let old = match self {
            Self::Absent => return Vec::new(),
            Self::Unreadable(why) => {
                return vec![format!(
                    "what changed is not known: the calibration before cannot be read: {why}"
                )];
            }
            Self::Rules { rules, .. } => rules,
        };
        let new: Vec<Rule> = courses.iter().flat_map(|course| course.rules.iter().cloned()).collect();
        let (mut lines, mut same, mut all) = (Vec::new(), 0, 0);
        for course in courses.iter().rev() {
            for chosen in &course.chosen {
                all += 1;
                match change(old, &new, course.load, chosen.bytes) {
                    None => same += 1,
                    Some(change) => lines.push(format!(
                        "{}, {}: {change}",
                        super::summary::load_in_words(course.load),
                        human(chosen.bytes)
                    )),
                }
            }
        }
        lines.insert(0, format!("the same path as in the calibration before for {same} of {all} sizes"));
        lines
    }
}

/// How the two sets of rules differ for one message; `None` where they do not.
fn change(old: &[Rule], new: &[Rule], load: Load, bytes: u64) -> Option<String> {
    let shown = |way: &Option<String>| way.clone().unwrap_or_else(|| "no rule".to_owned());
    let (before, now) = (taken(old, load, bytes), taken(new, load, bytes));
    (before != now).then(|| format!("{} was {}", shown(&now), shown(&before)))
}

#[cfg(test)]
#[path = "previous_tests.rs"]
mod tests;
