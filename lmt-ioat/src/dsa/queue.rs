//! What takes descriptors: a device's work queue, or something that does as
//! one does.
#![allow(unsafe_code)] // Declares what callers of `submit` promise; does nothing.

use super::descriptor::Descriptor;

/// What a work queue takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the longest copy, at least 1.
    pub max_transfer_bytes: u32,
    /// Descriptors of the longest batch; below 2 it takes no batches.
    pub max_batch: u32,
    /// Descriptors (a batch is one) that may be in flight at once, at least 1; a dedicated queue
    /// loses what is beyond without a word.
    pub max_in_flight: u32,
    /// Whether it can wait for the kernel where it meets a page fault.
    pub can_block_on_fault: bool,
}

/// What became of a descriptor that was given to a work queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// It is in the queue.
    Accepted,
    /// The queue is full; it may be tried again.
    Full,
    /// The queue does not take it, and will not.
    Refused {
        /// Why, as an errno.
        errno: i32,
    },
}

/// What is known of submitted descriptors when a queue has been stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// None of them is worked on any more, whether it has a record or not.
    Drained,
    /// Those without a completion record may still be worked on, and their
    /// memory written, until the record is there.
    Unknown,
}

/// A work queue.
pub trait WorkQueue: Send + 'static {
    /// What it takes.
    fn limits(&self) -> Limits;

    /// Gives it a descriptor; never waits.
    ///
    /// # Safety
    /// The descriptor's flags ask for a completion record in memory that is
    /// valid and zero. That, what else its addresses name (a batch's list with
    /// all that its members name) is valid memory of this process, whose bytes
    /// nobody touches otherwise, until a completion record says that it has
    /// ended, or [`Self::stop`] has said [`Stopped::Drained`]. Neither another
    /// answer of it nor the queue's drop ends this.
    /// Where the queue does not accept it, nothing is touched.
    unsafe fn submit(&mut self, descriptor: &Descriptor) -> Submitted;

    /// Called now and then while something is in flight.
    fn turn(&mut self) {}

    /// Ends the queue: nothing is accepted any more. What becomes of what was
    /// submitted the answer says. A drop does the same, without an answer.
    fn stop(&mut self) -> Stopped;
}
