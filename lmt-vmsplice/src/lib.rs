//! Messages through a pipe (nemesis-lmt, section 3): by vmsplice(2) the pipe
//! refers to the sender's pages and the receiver's readv(2) is the only copy;
//! by writev(2) the kernel copies into pages of the pipe first, which is there
//! to be compared with.
//!
//! One pipe for each pair of processes and direction, made when the first
//! message is sent, its read end passed to the receiver. A pipe is a FIFO: one
//! message owns it at a time, and a header in front of its bytes says which. So
//! nothing depends on the order in which messages are matched, and bytes of a
//! message that one side has given up are never taken for another's.
//!
//! The sender's memory must not change before the receiver has read it: the
//! receiver's DONE completes the send. When a message ends in any other way,
//! the sender takes what is left out of the pipe and closes it, and the next
//! message gets a fresh one.
#![deny(unsafe_code)]
#![cfg(not(loom))]

mod diagnostics;
mod faults;
mod incoming;
mod mechanism;
mod outgoing;
mod pipe;
mod spare;
mod sys;
mod trial;
mod wire;

pub use mechanism::{
    ByVmsplice, ByWritev, Config, KEYS, PipePeer, PipeTransfer, PipeWrite, Pipes, Vmsplice, Writev,
};
