//! Choosing among the ways at run time, by what messages cost this application.
//!
//! A policy's decisions are a first choice: they cannot know whether buffers are
//! touched or not, hot or cold, and whether the peer is busy. So the sender
//! times what it does, for each *stream* of messages (one peer, one class of
//! sizes, one kind of message), tries another way now and then, and changes when
//! that is better (knem-jpdc, section 5.4: thresholds "should rather be decided
//! dynamically").
//!
//! What is timed is not the transfer, for what a way costs may be paid outside
//! of it: who reads a buffer after a copy by the other core waits for its lines.
//! It is the period from one send of the stream to the next ([`meter`]). All of
//! this is a state machine without a clock: times come with the sends.

mod arms;
mod budget;
mod heard;
mod lead;
mod level;
mod meter;
mod report;
mod stream;
mod streams;
mod ways;

pub(crate) use meter::Send;
pub use report::{StreamReport, WayReport};
pub(crate) use streams::{Adaptive, Question};
pub(crate) use ways::{Way, Ways};

#[cfg(test)]
mod simulation;
