//! Runs each check in a process of its own, and makes a line of what comes of
//! it.

use std::fmt;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::behaviours;
use crate::client::ENV_WAIT_MS;
use crate::suite;
use crate::verdict::{Stop, Verdict, fails, from_line, needed, to_line};

/// No check takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// The argument behind a check's name that has this program run just that
/// check; groups of processes give it to their ranks.
pub const EXACTLY: &str = "--exact";

/// How many checks there were, by what came of them.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub ok: u32,
    pub failed: u32,
    /// Those skipped, by reason, in the order in which the reasons came up.
    pub skipped: Vec<(String, u32)>,
}

impl Counts {
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Ok(_) => self.ok += 1,
            Err(Stop::Fails(_)) => self.failed += 1,
            Err(Stop::Skipped(why)) => match self.skipped.iter_mut().find(|(known, _)| known == why) {
                Some((_, count)) => *count += 1,
                None => self.skipped.push((why.clone(), 1)),
            },
        }
    }
}

/// One line, which names what was not tried: who reads no other must not take
/// that for what holds.
impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped: u32 = self.skipped.iter().map(|(_, count)| count).sum();
        write!(out, "{} ok, {} failed, {skipped} skipped", self.ok, self.failed)?;
        let mut before = ": ";
        for (why, count) in &self.skipped {
            write!(out, "{before}{count} as {why}")?;
            before = ", ";
        }
        Ok(())
    }
}

/// What the runner can run.
pub fn names(suite_too: bool) -> Vec<(&'static str, &'static str)> {
    let behaviours = behaviours::all().map(|check| (check.name, check.what));
    let cases = suite::CASES.iter().map(|(name, _)| (*name, "a case of lmt's conformance suite"));
    behaviours.chain(cases.filter(|_| suite_too)).collect()
}

/// In the process of one check: runs it, and says on standard output what came
/// of it. A case of the suite panics instead when it fails.
pub fn run_here(name: &str) {
    let verdict = match behaviours::all().find(|check| check.name == name) {
        Some(check) => (check.run)(),
        None => suite::run(name).unwrap_or_else(|| fails(format!("there is no check called {name}"))),
    };
    println!("{}", to_line(&verdict));
}

/// Runs a check in another process.
pub fn run(name: &str, wait_ms: u64) -> Verdict {
    let executable = needed("this program's own path", std::env::current_exe())?;
    let mut command = Command::new(executable);
    command.args([name, EXACTLY]).process_group(0).env(ENV_WAIT_MS, wait_ms.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if name.starts_with(suite::PREFIX) {
        // The device is there, so a mechanism that does not work is a failure.
        command.env(lmt_conformance::require::ENV_REQUIRE, "knem-ioctl");
    }
    let mut child = needed("a process for the check", command.spawn())?;
    let (said, wrote) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let ended = wait(&mut child);
    // What it has started ends with it.
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let status = match ended {
        Some(status) => status,
        None => {
            let _ = child.wait();
            return fails(format!("expected an end within {} s, found none", LIMIT.as_secs()));
        }
    };
    let (said, wrote) = (said.join().unwrap_or_default(), wrote.join().unwrap_or_default());
    match said.lines().rev().find_map(from_line) {
        Some(verdict) if status.success() => verdict,
        _ => {
            let how = match status.signal() {
                Some(signal) => format!("signal {signal}"),
                None => format!("exit code {}", status.code().unwrap_or(-1)),
            };
            fails(format!("expected an orderly end, found {how}: {}", shorten(&wrote)))
        }
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What came before an error is what there is.
            let _ = stream.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + LIMIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

/// What fits into a line: the first words of a panic, without backtraces.
fn shorten(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("note:"));
    let text = lines.collect::<Vec<_>>().join(" | ");
    match text.char_indices().nth(1500) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

/// Runs the checks of these names and prints a line for each.
pub fn run_all(names: &[(&'static str, &'static str)], wait_ms: u64) -> Counts {
    let mut counts = Counts::default();
    for (name, what) in names {
        let verdict = run(name, wait_ms);
        counts.add(&verdict);
        let line = to_line(&verdict);
        let (word, text) = line.split_once(' ').unwrap_or((&line, ""));
        let text = if text.is_empty() { String::new() } else { format!(": {text}") };
        println!("{word:4} {name:32} {what}{text}");
    }
    counts
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
