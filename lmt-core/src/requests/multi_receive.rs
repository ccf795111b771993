//! A receive of many messages into one buffer, and the place that each gets.

use super::ids::{PeerId, RequestId};
use super::label::Space;
use crate::matching::PostedHandle;

/// What a receive of many waits with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MultiReceive {
    pub space: Space,
    /// Its place; none before it is posted.
    pub posted: Option<PostedHandle>,
    /// How much of the buffer messages have got.
    pub used_bytes: u64,
    /// It ends when less than this is left.
    pub least_bytes: u64,
}

/// A message has got its part of the buffer of a receive of many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The receive.
    pub receive: RequestId,
    /// The message's own request, which ends when the message is there.
    pub message: RequestId,
    /// Who sent it.
    pub peer: PeerId,
    /// Where in the buffer it begins, in bytes.
    pub offset_bytes: u64,
    /// Whether the receive takes no more. Its number means nothing any more then.
    pub is_last: bool,
}
