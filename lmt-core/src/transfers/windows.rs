//! What is under way to one peer, and which ways one of many messages takes.
#![forbid(unsafe_code)]

use crate::rendezvous::Candidates;

/// While so many messages to a peer are under way, its process has work enough: it copies
/// further ones alone.
const MANY: u32 = 4;

/// What is under way to one peer.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Messages, announced and not done.
    pub in_flight: u32,
}

impl Window {
    /// The ways to try for the next message in place of these. Behind many others its receiver
    /// copies alone, and so it does where processes outnumber CPUs (`crowded`): nobody is free to
    /// help, nor, behind many, is a core for both ends of a stream.
    pub fn ways(&self, ways: &Candidates, crowded: bool) -> Option<Candidates> {
        match (self.in_flight >= MANY, crowded) {
            (false, false) => None,
            (true, true) => Some(ways.with_one_end_first().with_streams_last()),
            _ => Some(ways.with_one_end_first()),
        }
    }
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
