//! Why a message takes its way, in words and as data.

use std::fmt;

use serde::Serialize;

use crate::vocabulary::model::Model;

/// The way that a message takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Taken {
    /// In cells of the receiver's inbox.
    Eager,
    /// It is announced, and this mechanism moves it.
    By {
        /// The mechanism.
        mechanism: String,
        /// Who copies.
        model: Model,
    },
    /// It stays within the process: sender and receiver are the same.
    Within,
    /// It is not known yet: the two have not met.
    Unknown,
    /// There is none.
    Nothing,
}

/// Who has decided. The earlier ones outrank the later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Source {
    /// The program that embeds the library, by a call.
    Call,
    /// A variable of the environment.
    Environment {
        /// Its name.
        variable: String,
    },
    /// The user's file.
    File {
        /// Which.
        path: String,
        /// Where in it, from 1.
        line: u32,
    },
    /// A calibration of this machine.
    Calibration {
        /// The file that holds it.
        path: String,
        /// Where in it, from 1.
        line: u32,
    },
    /// What is built in.
    Default {
        /// Where in the file of the defaults, from 1, if it stands there.
        line: Option<u32>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call => f.write_str("the program's own call"),
            Self::Environment { variable } => write!(f, "{variable} in the environment"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Calibration { path, line } => write!(f, "the calibration {path}:{line}"),
            Self::Default { line: Some(line) } => write!(f, "the built-in default.toml:{line}"),
            Self::Default { line: None } => f.write_str("the built-in default"),
        }
    }
}

/// Why a mechanism is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Why {
    /// It does not work between the two.
    Unavailable,
    /// It works, but not for a message like this by the rules.
    OutOfRange,
    /// It was measured to be slower.
    Slower,
    /// It is named behind the one that is taken, or not at all, and would be
    /// tried if those before it fail.
    Later,
    /// An explicit choice leaves it out.
    LeftOut,
    /// As many messages of this process are being read as the cap allows.
    Crowded,
    /// It copies from or to shared buffers only, and this message's are none.
    NotShared,
    /// The message is short enough to need none.
    NotNeeded,
    /// The two have not met yet.
    Unknown,
}

/// What is said of [`Why::NotShared`].
pub const NOT_SHARED: &str = "it copies from or to shared buffers (lmt::alloc), and the message is in none";

/// A mechanism that is not taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotTaken {
    /// The mechanism.
    pub mechanism: String,
    /// Why, as a word.
    pub why: Why,
    /// Why, in a sentence.
    pub sentence: String,
    /// What the kernel answered, where a call was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

/// Why one message takes the way it takes.
///
/// Written out it is a few lines for people; it serializes for programs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Explanation {
    /// The message's length.
    pub bytes: u64,
    /// What the places where the two processes may run have in common.
    pub place: String,
    /// The way that is taken.
    pub taken: Taken,
    /// The ways that are tried after it, should it fail, in order.
    pub then: Vec<String>,
    /// The rule that spoke, in words.
    pub rule: String,
    /// Where that rule comes from.
    pub source: Source,
    /// What else has to do with it: thresholds and their formulas, caps.
    pub notes: Vec<String>,
    /// The mechanisms that are not taken, and why.
    pub not_taken: Vec<NotTaken>,
}

impl Explanation {
    /// Another way was chosen at run time: what is not taken is told anew.
    pub(crate) fn take_at_run_time(&mut self, taken: Taken) {
        let before = std::mem::replace(&mut self.taken, taken);
        if let Taken::By { mechanism, model } = &before {
            self.then.insert(0, format!("{mechanism}:{model}"));
        }
        let now = match &self.taken {
            Taken::By { mechanism, model } => Some((mechanism.clone(), format!("{mechanism}:{model}"))),
            _ => None,
        };
        if let Some((mechanism, way)) = &now {
            self.then.retain(|other| other != way);
            self.not_taken.retain(|other| other.mechanism != *mechanism);
        }
        if let Taken::By { mechanism, .. } = before
            && now.is_none_or(|(name, _)| name != mechanism)
        {
            let sentence = "by what messages took it is slower here".to_owned();
            self.not_taken.insert(0, NotTaken { mechanism, why: Why::Slower, sentence, errno: None });
        }
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eager => f.write_str("eager, in cells of the receiver's inbox"),
            Self::By { mechanism, model } => {
                let who = match model {
                    Model::Get => "the receiver reads the sender's memory",
                    Model::Put => "the sender writes the receiver's memory",
                    Model::Cooperative => "both take part",
                    Model::Stream => "both take part, the sender at once",
                    Model::Both => "both copy, the receiver from the front and the sender from the back",
                };
                write!(f, "{mechanism} ({model}: {who})")
            }
            Self::Within => f.write_str("one copy within the process"),
            Self::Unknown => f.write_str("not known before the two are connected"),
            Self::Nothing => f.write_str("nothing: no mechanism works with this peer"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} bytes, {}: {}", self.bytes, self.place, self.taken)?;
        writeln!(f, "  by    {}", self.rule)?;
        writeln!(f, "  from  {}", self.source)?;
        if !self.then.is_empty() {
            writeln!(f, "  then  {}", self.then.join(", "))?;
        }
        for note in &self.notes {
            writeln!(f, "  note  {note}")?;
        }
        let width = self.not_taken.iter().map(|other| other.mechanism.len()).max().unwrap_or_default();
        for other in &self.not_taken {
            write!(f, "  not   {:width$}  {}", other.mechanism, other.sentence)?;
            // Most sentences name it themselves.
            match other.errno.map(|errno| nix::errno::Errno::from_raw(errno).to_string()) {
                Some(errno) if !other.sentence.contains(&errno) => writeln!(f, " ({errno})")?,
                _ => writeln!(f)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "explanation_tests.rs"]
mod tests;
