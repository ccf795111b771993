//! What a rank and the parent of a test say to each other, a line each.

use std::io::BufRead;

/// Variable with the number of a rank's descriptor.
pub(super) const ENV_CHANNEL: &str = "LMT_TEST_CHANNEL_FD";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromRank {
    Report(String),
    Barrier,
}

impl FromRank {
    pub fn to_line(&self) -> String {
        match self {
            Self::Report(text) => format!("report {text}\n"),
            Self::Barrier => "barrier\n".to_owned(),
        }
    }

    pub fn from_line(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("report", text)) => Some(Self::Report(text.to_owned())),
            None if line == "barrier" => Some(Self::Barrier),
            _ => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToRank {
    /// Everyone has reached the barrier.
    Go,
}

impl ToRank {
    pub fn to_line(&self) -> &'static str {
        match self {
            Self::Go => "go\n",
        }
    }

    pub fn from_line(line: &str) -> Option<Self> {
        (line == "go").then_some(Self::Go)
    }
}

/// The next whole line without its end, or `None` when there is no other.
pub(super) fn read_line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    Some(line.strip_suffix('\n')?.to_owned())
}
