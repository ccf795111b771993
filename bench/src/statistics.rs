//! What endpoints have told at their ends (`LMT_STATS`), read again and added up.

use std::path::Path;

use crate::job::PathCount;

/// The words before each line (`docs/explain.md`).
pub const PREFIX: &str = "lmt stats ";

/// What all endpoints of a file have moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Endpoints and device layers that have told.
    pub endpoints: usize,
    /// What was received by each path, in the order of their first mention.
    pub received: Vec<PathCount>,
    /// Messages that a path could not end, and left to the next one.
    pub demotions: u64,
}

impl Statistics {
    /// Reads the file that `LMT_STATS` named, or a run's output that was kept.
    ///
    /// # Errors
    /// It cannot be read, or no endpoint has told anything: one sentence.
    pub fn read(file: &Path) -> Result<Self, String> {
        let bytes =
            std::fs::read(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        let statistics = Self::of(&String::from_utf8_lossy(&bytes));
        match statistics.endpoints {
            0 => Err(format!(
                "{} has no line that begins with '{PREFIX}'; run the program with LMT_STATS and the path of a file",
                file.display()
            )),
            _ => Ok(statistics),
        }
    }

    /// Adds up what stands in a text among other things.
    pub fn of(text: &str) -> Self {
        let mut all = Self::default();
        // A launcher may write who it is before each line.
        for line in text.lines().filter_map(|line| line.split_once(PREFIX)) {
            let words: Vec<&str> = line.1.split_whitespace().collect();
            match words[..] {
                [_, _, identity] if identity.starts_with("endpoint=") => all.endpoints += 1,
                [_, path, _, _, messages, bytes, demotions, _, ..] => {
                    // The names of the columns are no numbers.
                    let numbers = [messages, bytes, demotions].map(str::parse::<u64>);
                    if let [Ok(messages), Ok(bytes), Ok(demotions)] = numbers {
                        PathCount { way: path.to_owned(), messages, bytes }.add_to(&mut all.received);
                        all.demotions += demotions;
                    }
                }
                _ => {}
            }
        }
        all.received.retain(|way| way.messages > 0);
        all
    }

    /// The bytes that were received by all paths.
    pub fn bytes(&self) -> u64 {
        self.received.iter().map(|way| way.bytes).sum()
    }

    /// The paths with their part of the bytes, the most first, as
    /// `cma 96.0 %, eager 4.0 %`.
    pub fn shares(&self) -> String {
        let all = self.bytes().max(1) as f64;
        let mut ways: Vec<&PathCount> = self.received.iter().collect();
        ways.sort_by_key(|way| std::cmp::Reverse(way.bytes));
        let share = |way: &&PathCount| format!("{} {:.1} %", way.way, 100.0 * way.bytes as f64 / all);
        ways.iter().map(share).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
