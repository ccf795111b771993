//! What ranks 0 and 1 tell each other beside the link that is measured: a
//! message through the link would be progress where there is to be none.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::patterns::link::LinkError;

/// The longest text, in bytes.
const LONGEST_BYTES: usize = 1 << 20;

/// One end of two pipes.
#[derive(Debug)]
pub struct Doorbell {
    incoming: File,
    outgoing: File,
    /// The other end's files, until the other rank has opened them.
    other: Option<[File; 2]>,
}

impl Doorbell {
    /// Rank 0's end.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (incoming, to_us) = io::pipe()?;
        let (from_us, outgoing) = io::pipe()?;
        let file = File::from;
        let [to_us, from_us] = [OwnedFd::from(to_us), OwnedFd::from(from_us)].map(file);
        Ok(Self {
            incoming: file(OwnedFd::from(incoming)),
            outgoing: file(OwnedFd::from(outgoing)),
            other: Some([from_us, to_us]),
        })
    }

    /// What rank 1 needs for [`Self::open`].
    pub fn card(&self) -> Option<[String; 2]> {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        self.other.as_ref().map(|[incoming, outgoing]| [path(incoming), path(outgoing)])
    }

    /// Rank 1's end.
    ///
    /// # Errors
    /// Rank 0 is gone, or the kernel lets nobody reach its descriptors.
    pub fn open([incoming, outgoing]: &[String; 2]) -> io::Result<Self> {
        let incoming = OpenOptions::new().read(true).open(incoming)?;
        let outgoing = OpenOptions::new().write(true).open(outgoing)?;
        Ok(Self { incoming, outgoing, other: None })
    }

    /// The other end, within this process.
    #[cfg(test)]
    pub fn take_other(&mut self) -> Option<Self> {
        let [incoming, outgoing] = self.other.take()?;
        Some(Self { incoming, outgoing, other: None })
    }

    /// Wakes the other rank, or lets it pass its next [`Self::wait`].
    ///
    /// # Errors
    /// The other rank has ended.
    pub fn ring(&mut self) -> Result<(), LinkError> {
        self.outgoing.write_all(&[1]).map_err(|_| ended())
    }

    /// Sleeps until the other rank has rung.
    ///
    /// # Errors
    /// The other rank has ended.
    pub fn wait(&mut self) -> Result<(), LinkError> {
        self.read(&mut [0])
    }

    /// Whether the other rank has rung or told something.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn has_rung(&self) -> Result<bool, LinkError> {
        let mut fds = [PollFd::new(self.incoming.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).map(|ready| ready > 0).map_err(LinkError::new)
    }

    /// Returns when the other rank has come here too.
    ///
    /// # Errors
    /// The other rank has ended.
    pub fn meet(&mut self) -> Result<(), LinkError> {
        self.ring()?;
        self.wait()
    }

    /// Tells the other rank bytes, which it has to [`Self::hear`].
    ///
    /// # Errors
    /// The other rank has ended, or there are too many bytes.
    pub fn tell(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LONGEST_BYTES);
        let length = length.ok_or_else(|| LinkError::new("the message to the other rank is too long"))?;
        let all = [&length.to_le_bytes(), bytes].concat();
        self.outgoing.write_all(&all).map_err(|_| ended())
    }

    /// What the other rank tells.
    ///
    /// # Errors
    /// The other rank has ended.
    pub fn hear(&mut self) -> Result<Vec<u8>, LinkError> {
        let mut length = [0; 4];
        self.read(&mut length)?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > LONGEST_BYTES {
            return Err(LinkError::new("the other rank sent something unexpected"));
        }
        let mut bytes = vec![0; length];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Tells the other rank a number if this is `rank` 0, and hears it otherwise.
    ///
    /// # Errors
    /// The other rank has ended.
    pub fn share(&mut self, rank: u32, number: u64) -> Result<u64, LinkError> {
        if rank == 0 {
            self.outgoing.write_all(&number.to_le_bytes()).map_err(|_| ended())?;
            return Ok(number);
        }
        let mut theirs = [0; 8];
        self.read(&mut theirs)?;
        Ok(u64::from_le_bytes(theirs))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<(), LinkError> {
        self.incoming.read_exact(into).map_err(|_| ended())?;
        // It has opened its ends; kept here, they would hide its death.
        self.other = None;
        Ok(())
    }
}

fn ended() -> LinkError {
    LinkError::new("the other rank has ended")
}
