//! Fast boxes: besides the inbox, a ring of its own for each of the first few
//! peers, with one writer and one reader.
//!
//! A sender with a fast box puts everything into it and nothing into the inbox, so
//! that its messages stay in order. What the fast box spares it is all that senders
//! of an inbox share: the claim by compare-and-swap, the tail hint, the cells
//! side by side. A short message is one cache line that goes over, header and
//! bytes together; nothing else that both processes touch is read or written
//! but in batches.
//!
//! The name is Nemesis's; a fast box there holds one message.
//!
//! Somewhat longer messages lie in the buffer of their line: a reader knows where that is
//! before it has read the line, so it can prefetch both at once.
//!
//! Where both of a pair have a fast box for the other, messages that are longer still
//! go through cells that change their owner with them ([`cell_ownership`]), as long
//! as the sender has one; else through the fast box's own ring of cells. So nothing has
//! to be given back: who only receives ends with all those cells, and the others
//! go through the ring.
//!
//! Each fast box is a memfd of its own, made for one peer and never given to
//! another: a sender that dies, or stops and goes on much later, writes where
//! nobody reads any more.
//!
//! - `ring`: the algorithm, over words that it is given, so that loom runs it.
//! - `cell_ownership`: who owns the handoff cells; for loom, too.
//! - `place`: how a line says where its message's bytes are.
//! - `memory`: where the words, line buffers and cells are.
//! - `pair`: one process's view of the handoff cells.
//! - [`FastBoxSender`], [`FastBoxes`]: the ends.

pub(crate) mod cell_ownership;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod pair;
#[cfg(not(loom))]
mod place;
#[cfg(not(loom))]
mod receiver;
pub(crate) mod ring;
#[cfg(not(loom))]
mod sender;

#[cfg(not(loom))]
pub(crate) use memory::PIECE_BYTES;
#[cfg(not(loom))]
pub(crate) use receiver::{Body, FastBoxes};
#[cfg(not(loom))]
pub(crate) use sender::{FastBoxError, FastBoxSender};

#[cfg(all(test, loom))]
#[path = "loom_tests.rs"]
mod loom_tests;

#[cfg(all(test, not(loom)))]
#[path = "fast_box_tests.rs"]
mod tests;
