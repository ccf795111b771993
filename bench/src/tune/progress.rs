//! How far tuning has come: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lmt_selector::calibration::Load;

use super::summary::load_in_words;

/// All passes as they are shown.
#[derive(Debug)]
pub struct Course {
    bar: Option<ProgressBar>,
    begin: Instant,
    deadline: Instant,
    /// The pass, and when it began.
    pass: u32,
    passes: u32,
    pass_begin: Instant,
    done: u64,
    count: u64,
    /// What the first pass, and the last one, took.
    last_pass: Option<Duration>,
    load: Option<Load>,
}

impl Course {
    /// Nothing is done yet.
    pub fn new() -> Self {
        let now = Instant::now();
        let bar = stderr().is_terminal().then(|| {
            // Drawn twice a second at most, so as not to disturb what is measured.
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(2));
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            begin: now,
            deadline: now,
            pass: 0,
            passes: 1,
            pass_begin: now,
            done: 0,
            count: 0,
            last_pass: None,
            load: None,
        }
    }

    /// A pass over so many classes begins.
    pub fn pass(&mut self, pass: u32, passes: u32, count: u64, deadline: Instant) {
        let now = Instant::now();
        if pass > 0 {
            self.last_pass = Some(now - self.pass_begin);
        }
        (self.pass, self.passes, self.count, self.deadline) = (pass, passes, count, deadline);
        (self.pass_begin, self.done, self.load) = (now, 0, None);
    }

    /// One more class is measured.
    pub fn step(&mut self, load: Load) {
        self.done += 1;
        let left = self.left();
        let name = match self.pass < self.passes {
            true => format!("pass {} of {}", self.pass + 1, self.passes),
            false => "what is still open".to_owned(),
        };
        let text = format!("{name}: {}; about {} left", load_in_words(load), rough(left));
        let elapsed = self.begin.elapsed().as_secs_f64();
        let part = elapsed / (elapsed + left.as_secs_f64()).max(1e-9);
        match &self.bar {
            Some(bar) => {
                // At most 1000.
                bar.set_position((part * 1000.0) as u64);
                bar.set_message(text);
            }
            None if self.load != Some(load) => line(&text),
            None => {}
        }
        self.load = Some(load);
    }

    /// The rest of this pass, and the passes over all classes that follow, as
    /// long as the last one took: never beyond the deadline. How much of what is
    /// open is measured once more is not known before.
    fn left(&self) -> Duration {
        let in_pass = self.pass_begin.elapsed();
        let done = self.done.max(1) as f64;
        let this = in_pass.mul_f64(self.count as f64 / done);
        // The later passes measure more often than the first.
        let later = self.last_pass.unwrap_or(this).max(this);
        let rest = this.saturating_sub(in_pass);
        let following = later.saturating_mul(self.passes.saturating_sub(self.pass + 1));
        (rest + following).min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Takes the bar away.
    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Default for Course {
    fn default() -> Self {
        Self::new()
    }
}

/// A time left as people say it.
fn rough(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..90 => format!("{} s", seconds + 1),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

/// One line on standard error; if nobody reads it, nobody wants to know.
fn line(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
