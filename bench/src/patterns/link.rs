//! The seam between the benchmarks and what they measure.

use std::fmt::Display;

use crate::job::PathCount;

/// Bytes of messages that came in by mechanisms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceivedBytes {
    /// All of them.
    pub all: u64,
    /// Those that the sender copied in messages that both ends copied.
    pub by_sender: u64,
}

impl ReceivedBytes {
    /// What has come since `before`; `None` when both ends copied nothing together.
    pub fn both_since(self, before: Self) -> Option<Self> {
        let by_sender = self.by_sender.saturating_sub(before.by_sender);
        let all = self.all.saturating_sub(before.all);
        (by_sender > 0 && all > 0).then_some(Self { all, by_sender })
    }

    /// How much of it the senders copied, in percent.
    pub fn sender_percent(self) -> f64 {
        100.0 * self.by_sender as f64 / self.all as f64
    }

    /// The rest, in bytes.
    pub fn by_receiver(self) -> u64 {
        self.all.saturating_sub(self.by_sender)
    }
}

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

    /// What this rank has received so far by mechanisms, and how much of that
    /// its senders have copied where both ends did. Nothing by default.
    fn received(&self) -> ReceivedBytes {
        ReceivedBytes::default()
    }

    /// Posts all receives, then all sends, and waits for all of them.
    /// Messages between the same two ranks with the same tag keep their order.
    ///
    /// # Errors
    /// What the implementation says.
    fn transfer(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), LinkError>;

    /// Begins to receive a message, calls `during` once that has begun, and goes
    /// on with it: as long as it is not complete it asks `help`, until that
    /// has called for help. The default moves nothing in the background.
    ///
    /// # Errors
    /// What the implementation says, or one of the two.
    fn receive_during(
        &mut self,
        from: u32,
        tag: u64,
        data: &mut [u8],
        during: Step<'_>,
        help: Help<'_>,
    ) -> Result<(), LinkError> {
        during()?;
        while !help()? {}
        self.receive(from, tag, data)
    }

    /// As [`Self::receive_during`], for a message that is sent.
    ///
    /// # Errors
    /// As [`Self::receive_during`].
    fn send_during(
        &mut self,
        to: u32,
        tag: u64,
        data: &[u8],
        during: Step<'_>,
        help: Help<'_>,
    ) -> Result<(), LinkError> {
        during()?;
        while !help()? {}
        self.send(to, tag, data)
    }

    /// The kinds of declared memory that this link offers; none by default.
    fn region_kinds(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The provider of one of [`Self::region_kinds`].
    fn region_provider(&mut self, _kind: &str) -> Option<Box<dyn RegionProvider + '_>> {
        None
    }

    /// Messages that this rank has sent and received so far, by the way that
    /// they took; empty where that is not counted.
    fn ways(&self) -> Vec<PathCount> {
        Vec::new()
    }

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

/// Something that is done in the middle of an operation.
pub type Step<'a> = &'a mut dyn FnMut() -> Result<(), LinkError>;

/// Whether help has been called for, by this call or one before.
pub type Help<'a> = &'a mut dyn FnMut() -> Result<bool, LinkError>;

/// Seconds that an owner's calls on all of its regions took together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnerSeconds {
    /// For declaring them.
    pub declare: f64,
    /// For destroying them.
    pub destroy: f64,
}

/// What is done while regions are declared: with their names for the peer and
/// a call that serves the peer, if the owner has to.
pub type WhileRegistered<'a> = &'a mut dyn FnMut(&[Vec<u8>], Step<'_>) -> Result<(), LinkError>;

/// A way to declare memory that another process looks up by a name: one kind of
/// declared memory of one rank.
pub trait RegionProvider {
    /// How many regions of one byte one process can declare at once, `bound` at
    /// most: found by declaring them.
    fn most_regions(&mut self, bound: usize) -> usize;

    /// Bytes of a region's name.
    fn name_bytes(&self) -> usize;

    /// Bytes that `count` regions of `bytes` bytes take, beside `memory`.
    fn needed_bytes(&self, bytes: u64, count: u64) -> u64;

    /// Declares `count` regions of `memory.len()` bytes, each of which begins
    /// with the first byte of `memory`, calls `meanwhile`, and destroys them.
    ///
    /// # Errors
    /// What the implementation or `meanwhile` says.
    fn own(
        &mut self,
        memory: &[u8],
        count: usize,
        meanwhile: WhileRegistered<'_>,
    ) -> Result<OwnerSeconds, LinkError>;

    /// Gets the first byte of the region with that name, which another process
    /// has declared.
    ///
    /// # Errors
    /// What the implementation says.
    fn look_up(&mut self, name: &[u8]) -> Result<u8, LinkError>;
}

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
