//! The seam between the benchmarks and what they measure.

use std::fmt::Display;

/// What a pattern needs of a group of ranks that exchange messages.
///
/// The patterns are compiled for each implementation, so that nothing stands
/// between the clock and the implementation's own calls.
pub trait Link {
    /// This process's number, from 0.
    fn rank(&self) -> u32;

    /// Processes in the group.
    fn ranks(&self) -> u32;

    /// Sends `data`; returns when it may be written again.
    ///
    /// # Errors
    /// What the implementation says.
    fn send(&mut self, to: u32, tag: u64, data: &[u8]) -> Result<(), LinkError>;

    /// Receives a message of exactly `data.len()` bytes.
    ///
    /// # Errors
    /// What the implementation says; a message of another length is one.
    fn receive(&mut self, from: u32, tag: u64, data: &mut [u8]) -> Result<(), LinkError>;

    /// Posts all receives, then all sends, and waits for all of them.
    /// Messages between the same two ranks with the same tag keep their order.
    ///
    /// # Errors
    /// What the implementation says.
    fn transfer(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), LinkError>;

    /// Waits until every rank has come here. The default gathers empty
    /// messages at rank 0 and answers them.
    ///
    /// # Errors
    /// What the implementation says.
    fn barrier(&mut self) -> Result<(), LinkError> {
        if self.rank() == 0 {
            for other in 1..self.ranks() {
                self.receive(other, BARRIER_TAG, &mut [])?;
            }
            for other in 1..self.ranks() {
                self.send(other, BARRIER_TAG, &[])?;
            }
            Ok(())
        } else {
            self.send(0, BARRIER_TAG, &[])?;
            self.receive(0, BARRIER_TAG, &mut [])
        }
    }
}

const BARRIER_TAG: u64 = 1 << 32;

/// A message to be sent.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// To which rank.
    pub to: u32,
    /// Under which tag.
    pub tag: u64,
    /// Its bytes.
    pub data: &'a [u8],
}

/// A message to be received.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// From which rank.
    pub from: u32,
    /// Under which tag.
    pub tag: u64,
    /// Where its bytes go.
    pub data: &'a mut [u8],
}

/// Why a message did not arrive: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LinkError(pub String);

impl LinkError {
    /// An error in the implementation's own words.
    pub fn new(error: impl Display) -> Self {
        Self(error.to_string())
    }
}
