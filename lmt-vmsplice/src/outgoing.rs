//! The sender's side of one peer: its pipe, and the messages that wait for it.

use std::collections::VecDeque;

use lmt_core::mechanism::Hello;
use nix::errno::Errno;
use zerocopy::IntoBytes;

use crate::pipe::Pipe;
use crate::spare;
use crate::wire::{Name, PipeDescriptor};

/// One pipe at a time, and whose turn it is.
///
/// A message stands in `queue` from when its receiver has started until it
/// ends; the first one owns the pipe. As both sides have begun by then, the one
/// that owns the pipe waits for nothing but its own bytes, and those behind it
/// for nothing but it. A message whose receive was not posted yet holds up
/// nobody.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pipe: Option<Pipe>,
    last_pipe: u64,
    last_message: u64,
    queue: VecDeque<u64>,
    /// The read end of a new pipe, on its way to the peer.
    note: Option<Hello>,
}

impl Outgoing {
    /// A name for a message, unlike all in flight.
    pub(crate) fn next_name(&mut self) -> Name {
        self.last_message += 1;
        Name::of(self.last_message, self.last_pipe)
    }

    /// Makes a pipe if there is none, and keeps its read end for the peer.
    pub(crate) fn ensure_pipe(&mut self, wanted_bytes: usize) -> Result<(), Errno> {
        if self.pipe.is_some() {
            return Ok(());
        }
        let pipe = Pipe::new(wanted_bytes)?;
        let outlet = pipe.outlet()?;
        if !spare::leaves_enough(&outlet) {
            return Err(Errno::EMFILE);
        }
        self.last_pipe += 1;
        let note = PipeDescriptor { pipe: self.last_pipe };
        self.note = Some(Hello { bytes: note.as_bytes().to_vec(), descriptors: vec![outlet] });
        self.pipe = Some(pipe);
        Ok(())
    }

    /// What the peer is to be given now.
    pub(crate) fn take_note(&mut self) -> Option<Hello> {
        self.note.take()
    }

    /// The message's receiver has started: it may have the pipe after those
    /// that are there.
    pub(crate) fn enqueue(&mut self, message: u64) {
        self.queue.push_back(message);
    }

    /// Whether it is this message's turn.
    pub(crate) fn is_turn_of(&self, message: u64) -> bool {
        self.queue.front() == Some(&message)
    }

    /// The pipe, if there is one.
    pub(crate) fn pipe(&self) -> Option<&Pipe> {
        self.pipe.as_ref()
    }

    /// The message ends, however: the next one's turn begins. Unless all was
    /// given (`given_whole`) and has been read, the pipe goes with it: what is
    /// left in it is taken back, and the next message gets a fresh one. So it
    /// does when nothing was given at all, for the receiver may have failed
    /// because the pipe never reached it.
    pub(crate) fn leave(&mut self, message: u64, given_whole: bool) {
        if self.is_turn_of(message) {
            self.queue.pop_front();
            let clean = given_whole && self.pipe.as_ref().is_none_or(Pipe::is_empty);
            if !clean {
                self.pipe = None;
                self.note = None;
            }
        } else if let Some(at) = self.queue.iter().position(|&waiting| waiting == message) {
            self.queue.remove(at);
        }
    }
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
