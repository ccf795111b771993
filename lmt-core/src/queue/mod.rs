//! The inbox: one queue in shared memory for each receiver, with any number of
//! senders, that a sender killed between any two instructions cannot break.
//!
//! It is Nemesis's receive queue in what it gives (one queue to poll, whatever
//! the number of peers; cells named by number, never by address) and differs in
//! how: slots are claimed, not linked, so no sender's death leaves a gap that
//! blocks the rest (nemesis-lmt-icpp2009, section 2, has the linked list).
//!
//! - `words`: what the shared words encode.
//! - `ring` and `drain`: the algorithm, senders' and receiver's half. They
//!   know no memory but the words they are given, so that loom runs them.
//! - `layout`: where the words are in shared memory.
//! - `fast_box`: rings of their own for the first few senders, besides the queue.
//! - `header` and `payload`: the form of a cell, and the bytes that go into it.
//! - [`InboxSender`] and [`InboxReceiver`]: the two ends.
//!
//! What arrives through an [`InboxReceiver`] is checked as far as the inbox
//! itself goes (lengths, sender numbers); what a message means is for the
//! layer above to doubt, and must not be known here.

pub(crate) mod drain;
mod fast_box;
#[cfg(not(loom))]
mod header;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod payload;
#[cfg(not(loom))]
mod receiver;
pub(crate) mod ring;
#[cfg(not(loom))]
mod sender;
#[cfg(all(test, not(loom)))]
mod test_support;
pub(crate) mod words;

#[cfg(not(loom))]
pub use header::Envelope;
#[cfg(not(loom))]
pub(crate) use header::Header;
#[cfg(not(loom))]
pub use layout::{Credit, Geometry, GeometryError, INLINE_BYTES};
#[cfg(not(loom))]
pub use payload::{Payload, Piece};
#[cfg(not(loom))]
pub(crate) use receiver::Next;
#[cfg(not(loom))]
pub use receiver::{Delivery, InboxReceiver};
#[cfg(not(loom))]
pub use sender::{InboxSender, SendError, Sent};

#[cfg(all(test, loom))]
#[path = "loom_tests.rs"]
mod loom_tests;

#[cfg(all(test, not(loom)))]
#[path = "queue_tests.rs"]
mod tests;
