//! Fast boxes: beside the inbox, a ring of its own for each of the first few
//! peers, with one writer and one reader.
//!
//! A sender with a box puts everything into it and nothing into the inbox, so
//! that its messages stay in order. What the box spares it is all that senders
//! of an inbox share: the claim by compare-and-swap, the tail hint, the cells
//! side by side. A short message is one cache line that goes over, header and
//! bytes together; nothing else that both processes touch is read or written
//! but in batches.
//!
//! The name is Nemesis's; a fast box there holds one message.
//!
//! Each box is a memfd of its own, made for one peer and never given to
//! another: a sender that dies, or stops and goes on much later, writes where
//! nobody reads any more.
//!
//! - `ring`: the algorithm, over words that it is given, so that loom runs it.
//! - `memory`: where the words and cells are.
//! - [`BoxSender`], [`Boxes`]: the ends.

pub(crate) mod ring;

#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod receiver;
#[cfg(not(loom))]
mod sender;

#[cfg(not(loom))]
pub(crate) use {memory::PIECE_BYTES, receiver::Boxes, sender::BoxSender};

#[cfg(all(test, loom))]
#[path = "loom_tests.rs"]
mod loom_tests;
#[cfg(all(test, not(loom)))]
#[path = "fast_box_tests.rs"]
mod tests;
