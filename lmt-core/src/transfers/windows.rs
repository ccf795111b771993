//! What is under way between this process and one peer, and which ways one of many messages
//! takes.
#![forbid(unsafe_code)]

use crate::rendezvous::Candidates;

/// While so many messages to a peer are under way, its process has work enough: it copies
/// further ones alone.
const MANY: u32 = 4;

/// Counts of one peer's messages.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Messages to it, announced and not done.
    pub in_flight: u32,
    /// Bytes of announced messages that have come from it so far.
    pub received_bytes: u64,
}

impl Window {
    /// The ways to try for the next message in place of these. Where processes outnumber CPUs
    /// (`crowded`) nobody is free to help, nor is a core for both ends of a stream.
    pub fn ways(&self, ways: &Candidates, crowded: bool) -> Option<Candidates> {
        match crowded {
            true => Some(ways.with_one_end_first().with_streams_last()),
            false => (self.in_flight >= MANY).then(|| ways.with_one_end_first()),
        }
    }
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
