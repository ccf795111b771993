//! How far a run has come, on a terminal; nothing in a pipe.

use std::cell::Cell;
use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error, or nothing.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Which stage of how many; each takes about as long.
    stage: Cell<(u64, u64)>,
}

impl Progress {
    /// A bar if standard error is a terminal.
    pub fn new() -> Self {
        // Drawn five times a second at most, so as not to disturb the cores
        // that are being measured.
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(5)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed} of about {duration}")
        {
            bar.set_style(style);
        }
        Self { bar, stage: Cell::new((0, 1)) }
    }

    /// From now on a part of what is done: number `stage` of `stages`, from 0.
    pub fn enter(&self, stage: u64, stages: u64) {
        self.stage.set((stage, stages));
    }

    /// Shows so many of so many.
    pub fn show(&self, done: u64, total: u64) {
        let (stage, stages) = self.stage.get();
        self.bar.set_length(total * stages);
        self.bar.set_position(total * stage + done);
    }

    /// How far it is shown to be: so many of so many.
    #[cfg(test)]
    fn shown(&self) -> (u64, Option<u64>) {
        (self.bar.position(), self.bar.length())
    }

    /// Takes the bar away while something is written.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
