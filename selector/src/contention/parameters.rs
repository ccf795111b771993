//! A machine's figures.

use super::Gamma;

/// No figure of time is more, in its unit: with it every prediction is a number.
pub const MAX_TIME: f64 = 1e9;
/// No factor of gamma is more, and no coefficient of its curve.
pub const MAX_FACTOR: f64 = 1e6;

/// What a message through shared memory costs, which the paper's model leaves out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MessageCost {
    /// The shortest message, in microseconds.
    pub start_us: f64,
    /// Each byte of a long one, in nanoseconds.
    pub byte_ns: f64,
}

/// A machine's figures: table II of contention-aware-cma, and what it gives no
/// figures for.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameters {
    /// Alpha: the start of a copy, in microseconds.
    pub alpha_us: f64,
    /// Beta: each byte of a copy, in nanoseconds.
    pub byte_ns: f64,
    /// l: locking and pinning a page where nobody else does, in microseconds.
    pub lock_us: f64,
    /// s: bytes of a page.
    pub page_bytes: u64,
    /// How many times as long that takes with several at once.
    pub gamma: Gamma,
    /// How many processes run at a time; absent where there is a CPU for each.
    pub cpus: Option<u32>,
    /// A cache line from one core to another, in microseconds: a step of what the
    /// paper calls T^sm, the collective operations on next to no bytes.
    pub line_us: f64,
    /// Each byte of a copy within a process, in nanoseconds.
    pub copy_ns: f64,
    /// Each byte of an operand that is combined with another, in nanoseconds.
    pub combine_ns: f64,
    /// Messages, where they were measured.
    pub message: Option<MessageCost>,
}

/// Why figures cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(pub String);

impl Parameters {
    /// What a copy takes of which this many run at once on one process's memory,
    /// in microseconds.
    pub fn copy_us(&self, bytes: u64, readers: u32) -> f64 {
        let readers = self.cpus.map_or(readers, |cpus| readers.min(cpus));
        let pages = bytes.div_ceil(self.page_bytes.max(1)) as f64;
        self.alpha_us + self.bytes_us(bytes) + self.lock_us * self.gamma.of(readers) * pages
    }

    /// The part of a copy that grows with its bytes, in microseconds.
    pub fn bytes_us(&self, bytes: u64) -> f64 {
        bytes as f64 * self.byte_ns / 1e3
    }

    /// How many times as long everything takes if this many processes are at it.
    pub fn sharing(&self, processes: u32) -> f64 {
        self.cpus.map_or(1.0, |cpus| (f64::from(processes) / f64::from(cpus.max(1))).max(1.0))
    }

    /// Whether all figures mean something.
    ///
    /// # Errors
    /// The first that does not, by its key in a file.
    pub fn check(&self) -> Result<(), Wrong> {
        let message = self.message.unwrap_or(MessageCost { start_us: 0.0, byte_ns: 0.0 });
        let times = [
            ("alpha_us", self.alpha_us),
            ("byte_ns", self.byte_ns),
            ("lock_us", self.lock_us),
            ("line_us", self.line_us),
            ("copy_ns", self.copy_ns),
            ("combine_ns", self.combine_ns),
            ("message_us", message.start_us),
            ("message_byte_ns", message.byte_ns),
        ];
        let is_time = |time: &f64| (0.0..=MAX_TIME).contains(time);
        if let Some((key, time)) = times.into_iter().find(|(_, time)| !is_time(time)) {
            return Err(Wrong(format!(
                "`{key}` is {}; it must be a number from 0 to {MAX_TIME}",
                shown(time)
            )));
        }
        let is_factor = |factor: &&f64| (0.0..=MAX_FACTOR).contains(*factor);
        let fit = self.gamma.fit.map_or([1.0, 1.0], |fit| [fit.squared, fit.linear]);
        if let Some(factor) = self.gamma.measured.iter().chain(&fit).find(|factor| !is_factor(factor)) {
            return Err(Wrong(format!(
                "a factor of gamma is {}; it must be a number from 0 to {MAX_FACTOR}",
                shown(*factor)
            )));
        }
        if self.page_bytes == 0 {
            return Err(Wrong("`page_bytes` is 0; it must be at least 1".to_owned()));
        }
        if self.cpus == Some(0) {
            return Err(Wrong("`cpus` is 0; it must be at least 1".to_owned()));
        }
        Ok(())
    }
}

/// A number in few letters.
fn shown(number: f64) -> String {
    if number.abs() < 1e15 { number.to_string() } else { format!("{number:e}") }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
