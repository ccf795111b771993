//! The process that makes a call, as the supervisor sees it.

use std::fs::Metadata;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

use crate::sys::{self, Call};

/// The caller of one system call.
#[derive(Debug)]
pub struct Client<'a> {
    pub call: Call,
    pub listener: &'a OwnedFd,
}

/// Who a caller is.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub process: i32,
    pub uid: u32,
}

impl Client<'_> {
    /// Reads a struct, at which the caller points.
    pub fn read<const N: usize>(&self, address: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.fill(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads as much as there is room for.
    pub fn fill(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        let read = sys::read_memory(self.call.thread, address, into);
        // The thread may be another's by now: nothing that was read counts.
        if !sys::is_waiting(self.listener, self.call.id) {
            return Err(Errno::EINTR);
        }
        if read == into.len() { Ok(()) } else { Err(Errno::EFAULT) }
    }

    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        if !sys::is_waiting(self.listener, self.call.id) {
            return Err(Errno::EINTR);
        }
        let written = sys::write_memory(self.call.thread, address, bytes);
        if written == bytes.len() { Ok(()) } else { Err(Errno::EFAULT) }
    }

    /// Whether the string at `address` is `path`.
    pub fn names(&self, address: u64, path: &[u8]) -> bool {
        let mut found = [0; 64];
        let wanted = path.len() + 1;
        let read = sys::read_memory(self.call.thread, address, &mut found[..wanted]);
        read == wanted && found[..path.len()] == *path && found[path.len()] == 0
    }

    /// The file behind one of its descriptors.
    pub fn file(&self, descriptor: u64) -> Option<Metadata> {
        // The kernel takes descriptors as 32-bit numbers.
        let descriptor = descriptor as i32;
        std::fs::metadata(format!("/proc/{}/fd/{descriptor}", self.call.thread)).ok()
    }

    /// Whether anybody has moved the position of a descriptor's description, as
    /// read(2) does (proc_pid_fdinfo(5)).
    pub fn has_read(&self, descriptor: u64) -> bool {
        let path = format!("/proc/{}/fdinfo/{}", self.call.thread, descriptor as i32);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let position = text.lines().find_map(|line| line.strip_prefix("pos:"));
        position.is_some_and(|position| position.trim() != "0")
    }

    pub fn identity(&self) -> Result<Identity, Errno> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.call.thread));
        let status = status.map_err(|_| Errno::ESRCH)?;
        let field = |name: &str| -> Option<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let (process, uid) = (field("Tgid:").ok_or(Errno::ESRCH)?, field("Uid:").ok_or(Errno::ESRCH)?);
        Ok(Identity { process: process as i32, uid })
    }
}
