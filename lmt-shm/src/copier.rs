//! Who copies between a message and the pool's buffers: the CPU, at once, or
//! something that works in the background.

use std::convert::Infallible;

use lmt_core::config_key::{Key, Value};
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::mechanism::{Fault, Needs, Unavailable};

pub use crate::piece::Piece;

/// How far a copy in the background is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Copied {
    /// It is in flight.
    No,
    /// Every byte is where it was to go, visible to the thread that is told so,
    /// and whoever copied is quiet about the memory.
    Yes,
    /// It cannot be done; whoever copied is quiet about the memory.
    Failed(Fault),
}

/// Something that copies between messages and the pool's buffers.
///
/// **What is lent.** The memory that pieces name stays as it is for the copier
/// until [`Self::poll`] has said something other than [`Copied::No`], or the
/// ticket has been dropped, or the copier itself has. A drop of either stops
/// the copy and waits until nothing touches that memory any more; a ticket that
/// outlives its copier fails. So whoever writes a copier keeps its drops honest,
/// and the pipeline never forgets a ticket, and holds the pool mapped, and the
/// message's [`lmt_core::buffer::Buffer`] is lent, for as long as there is one.
///
/// In a forked child nothing is waited for: what was in flight is the parent's.
pub trait Copier: Send + 'static {
    /// A copy in flight.
    type Ticket: Send + std::fmt::Debug + 'static;

    /// The name of the pipeline that copies so, as users know the mechanism.
    fn name(&self) -> &'static str;

    /// What it needs of the machine; by default what every kernel has.
    fn needs(&self) -> Needs {
        Needs::Kernel
    }

    /// What there is to look at when it does not work: nothing by default.
    fn diagnostics(&self, _host: &Host) -> Vec<Finding> {
        Vec::new()
    }

    /// What can be set of a mechanism that copies so: the pipeline's keys and
    /// perhaps the copier's own.
    fn keys(&self) -> &'static [Key] {
        crate::geometry::KEYS
    }

    /// The value of one of the copier's own keys; `None` when it has no such
    /// key.
    fn get(&self, _key: &str) -> Option<Value> {
        None
    }

    /// Sets one of the copier's own keys, before anything is copied.
    ///
    /// # Errors
    /// One sentence that says why it cannot be.
    fn set(&mut self, key: &str, _value: Value) -> Result<(), String> {
        Err(format!("{} has no key `{key}`", self.name()))
    }

    /// Whether it works on this machine.
    ///
    /// # Errors
    /// [`Unavailable`] with a sentence on what is missing.
    fn available(&mut self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Begins to copy all pieces, and takes all of them from the iterator;
    /// `None` if they have been copied already. Never waits for a device.
    ///
    /// # Errors
    /// [`Fault`] when it cannot be begun; it is quiet about the memory then.
    fn start<'a>(&mut self, pieces: impl Iterator<Item = Piece<'a>>) -> Result<Option<Self::Ticket>, Fault>;

    /// How far a copy is; never waits. It is not asked again after an end.
    fn poll(&mut self, ticket: &mut Self::Ticket) -> Copied;
}

/// The CPU, which copies at once: `shm`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Copier for Cpu {
    type Ticket = Infallible;

    fn name(&self) -> &'static str {
        "shm"
    }

    #[inline]
    fn start<'a>(&mut self, pieces: impl Iterator<Item = Piece<'a>>) -> Result<Option<Infallible>, Fault> {
        for piece in pieces {
            piece.copy_now();
        }
        Ok(None)
    }

    fn poll(&mut self, ticket: &mut Infallible) -> Copied {
        match *ticket {}
    }
}
