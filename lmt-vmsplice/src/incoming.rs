//! The receiver's side of one peer: the pipe that the peer gives into, and
//! whose bytes are in it. All that comes out of it is untrusted.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lmt_core::mechanism::Hello;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat};
use zerocopy::{FromBytes, IntoBytes};

use crate::spare;
use crate::sys;
use crate::wire::{HEADER_BYTES, Header, Name, PipeDescriptor};

/// A pipe as this side has it.
#[derive(Debug, Default)]
enum Outlet {
    /// None yet, or the peer is to make another: it sends the descriptor then.
    #[default]
    Awaited,
    /// The peer has made one, and its descriptor did not arrive.
    Missing,
    /// What came is no pipe, or what came out of it no message.
    Garbage,
    /// To be read from.
    Open(OwnedFd),
}

/// Why nothing can be read for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PipeError {
    /// The pipe's descriptor did not arrive, this many times in a row.
    Missing { times: u32 },
    /// The peer sent what cannot be.
    Garbage,
    /// The sender closed the pipe, or replaced it, in the middle.
    CutShort,
    /// The system call failed.
    System(Errno),
}

/// The peer's pipe; there is never more than one, as the sender makes another
/// only when nobody is to read from the one before any more.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    outlet: Outlet,
    last_pipe: u64,
    missing_in_a_row: u32,
    /// The message whose bytes come next.
    current: Option<Header>,
    /// Messages that have started and not ended.
    started: BTreeSet<u64>,
    /// The message that found the pipe empty. It alone looks again, so that
    /// many that wait do not each ask the kernel; what it finds serves all.
    polling_message: Option<u64>,
    /// How often others did not look since.
    passed: usize,
    #[cfg(test)]
    looks: u32,
}

impl Incoming {
    /// Takes the descriptor of a new pipe.
    pub(crate) fn take_note(&mut self, oob_message: Hello) {
        let pipe = PipeDescriptor::read_from_bytes(&oob_message.bytes).map_or(0, |note| note.pipe);
        if pipe <= self.last_pipe {
            // An old one or no number: no pipe that a message would come by.
            return;
        }
        self.last_pipe = pipe;
        self.current = None;
        self.polling_message = None;
        self.outlet = match oob_message.descriptors.into_iter().next() {
            Some(fd) if !spare::leaves_enough(&fd) => Outlet::Missing,
            None => Outlet::Missing,
            Some(fd) => usable(fd).map_or(Outlet::Garbage, Outlet::Open),
        };
        self.missing_in_a_row =
            if matches!(self.outlet, Outlet::Missing) { self.missing_in_a_row.saturating_add(1) } else { 0 };
    }

    /// A message starts. `false` when one of that number has already.
    pub(crate) fn begin(&mut self, message: u64) -> bool {
        self.started.insert(message)
    }

    /// Whether the message's bytes come next.
    pub(crate) fn is_current(&self, message: u64) -> bool {
        self.current.is_some_and(|header| header.message == message)
    }

    /// The pipe, if it is the turn of this message of `bytes` bytes; `None` when
    /// it is to wait.
    pub(crate) fn outlet_for(&mut self, name: Name, bytes: u64) -> Result<Option<BorrowedFd<'_>>, PipeError> {
        if self.current.is_none() {
            match self.look(name.message) {
                // That was an earlier pipe; its own is on its way.
                Err(_) if name.awaits_later_than(self.last_pipe) => return Ok(None),
                looked => looked?,
            }
        }
        let message = name.message;
        match self.current {
            Some(header) if header.message == message && header.bytes != bytes => {
                self.spoil(Outlet::Garbage);
                Err(PipeError::Garbage)
            }
            Some(header) if header.message == message => match &self.outlet {
                Outlet::Open(fd) => Ok(Some(fd.as_fd())),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Whether it is for another message to look into the pipe. If that one
    /// does not come although all others have, the next one takes its place.
    fn leaves_polling_to_another(&mut self, message: u64) -> bool {
        let to_another = self.polling_message.is_some_and(|polling_message| polling_message != message);
        let passes = to_another && self.passed < self.started.len();
        self.passed = if passes { self.passed + 1 } else { 0 };
        passes
    }

    /// Looks, for a message that waits, whether the next one has begun.
    fn look(&mut self, message: u64) -> Result<(), PipeError> {
        if matches!(self.outlet, Outlet::Open(_)) && self.leaves_polling_to_another(message) {
            return Ok(());
        }
        self.polling_message = None;
        let fd = match &self.outlet {
            Outlet::Awaited => return Ok(()),
            Outlet::Missing => return Err(PipeError::Missing { times: self.missing_in_a_row }),
            Outlet::Garbage => return Err(PipeError::Garbage),
            Outlet::Open(fd) => fd,
        };
        #[cfg(test)]
        (self.looks += 1);
        let mut header = Header { message: 0, bytes: 0 };
        match sys::read(fd.as_fd(), header.as_mut_bytes()) {
            Err(Errno::EAGAIN) => {
                self.polling_message = Some(message);
                Ok(())
            }
            Err(errno) => Err(PipeError::System(errno)),
            // The sender has closed it: there will be another.
            Ok(0) => {
                self.spoil(Outlet::Awaited);
                Ok(())
            }
            Ok(read) if read == HEADER_BYTES as u64 => {
                if self.started.contains(&header.message) {
                    self.current = Some(header);
                } else {
                    // It has ended here before it was whole. The sender finds
                    // its pages in the pipe when it hears of that, and makes
                    // another pipe.
                    self.spoil(Outlet::Awaited);
                }
                Ok(())
            }
            Ok(_) => {
                self.spoil(Outlet::Garbage);
                Err(PipeError::Garbage)
            }
        }
    }

    /// All bytes of the present message have been read.
    pub(crate) fn complete(&mut self) {
        self.current = None;
    }

    /// No more comes out of this pipe.
    pub(crate) fn at_end(&mut self) {
        self.spoil(Outlet::Awaited);
    }

    /// The message ends, however. If its bytes are in the pipe, the pipe is of
    /// no more use.
    pub(crate) fn leave(&mut self, message: u64) {
        self.started.remove(&message);
        self.polling_message = self.polling_message.filter(|polling_message| *polling_message != message);
        if self.is_current(message) {
            self.spoil(Outlet::Awaited);
        }
    }

    fn spoil(&mut self, outlet: Outlet) {
        self.outlet = outlet;
        self.current = None;
    }
}

/// The descriptor, if it is the read end of a pipe. Reads of it do not wait.
fn usable(fd: OwnedFd) -> Option<OwnedFd> {
    let status = fstat(&fd).ok()?;
    if SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT != SFlag::S_IFIFO {
        return None;
    }
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL).ok()?);
    if flags & OFlag::O_ACCMODE != OFlag::O_RDONLY {
        return None;
    }
    if !flags.contains(OFlag::O_NONBLOCK) {
        fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).ok()?;
    }
    Some(fd)
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
