//! Other programs, run with a time limit. What they start goes with them: the
//! launcher's supervisor ends it all.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lmt::launch::{Launcher, Outcome, Output, Running};

use crate::interrupt::Interrupt;

/// How often it is looked whether somebody wants it to end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The most letters of a program's words in a sentence of ours.
const SHOWN_LETTERS: usize = 300;

/// The first program of this name in these folders (a value of `PATH`).
pub fn on_path(name: impl AsRef<Path>, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(&name)).find(|program| program.is_file())
}

/// What came of a program.
#[derive(Debug)]
pub struct Finished {
    program: String,
    outcome: Outcome,
}

impl Finished {
    /// What it wrote, to either stream.
    pub fn output(&self) -> String {
        text_of(&self.outcome)
    }

    /// Itself if it ended well.
    ///
    /// # Errors
    /// How it ended and its own reason, in a sentence.
    pub fn successful(self) -> Result<Self, String> {
        if self.outcome.success() {
            return Ok(self);
        }
        let how = lmt::launch::describe_exit(self.outcome.exits.first().copied().flatten());
        Err(format!("{} {how}{}", self.program, reason(&text_of(&self.outcome))))
    }
}

/// What a program wrote, to either stream.
pub fn text_of(outcome: &Outcome) -> String {
    let streams = outcome.output.iter().flat_map(|output| [&output.stdout, &output.stderr]);
    streams.map(|stream| String::from_utf8_lossy(stream)).collect()
}

/// A program's own words on why it failed, as the end of a sentence: its first
/// line that speaks of an error, or its last.
pub fn reason(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| line.to_ascii_lowercase().contains("error");
    let Some(line) = lines.clone().find(is_error).or_else(|| lines.next_back()) else { return String::new() };
    let shown: String = line.chars().take(SHOWN_LETTERS).collect();
    format!(": {shown}")
}

/// Starts a program under a supervisor; it and all that it starts end when what
/// is returned is dropped.
///
/// # Errors
/// It cannot be started: a sentence.
pub fn start<I>(
    program: &Path,
    arguments: I,
    variables: &[(&str, impl AsRef<OsStr>)],
) -> Result<Running, String>
where
    I: IntoIterator,
    I::Item: AsRef<OsStr>,
{
    let mut launcher = Launcher::new(1)
        .command(program, arguments)
        .output(Output::Capture)
        .grace(Duration::from_millis(500))
        .no_stdin();
    for (name, value) in variables {
        launcher = launcher.env(name, value);
    }
    launcher.spawn().map_err(|error| error.to_string())
}

/// Runs a program until it ends, for `limit_s` seconds at most.
///
/// # Errors
/// It cannot be started, takes longer, or a signal came: a sentence.
pub fn run_within<I>(
    program: &Path,
    arguments: I,
    variables: &[(&str, impl AsRef<OsStr>)],
    limit_s: u64,
    interrupt: &Interrupt,
) -> Result<Finished, String>
where
    I: IntoIterator,
    I::Item: AsRef<OsStr>,
{
    let running = start(program, arguments, variables)?;
    let deadline = Instant::now() + Duration::from_secs(limit_s);
    let mut is_over = false;
    while !is_over && Instant::now() < deadline && interrupt.signal().is_none() {
        is_over = running.wait_for(POLL_INTERVAL);
    }
    if !is_over {
        running.end_now();
    }
    let (program, outcome) = (program.display().to_string(), running.wait());
    if is_over {
        Ok(Finished { program, outcome })
    } else if interrupt.signal().is_some() {
        Err(format!("{program} was interrupted"))
    } else {
        Err(format!("{program} did not end within {limit_s} s and was ended{}", reason(&text_of(&outcome))))
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
