//! The module's parameter `dmamin`, as a file that clients read and write.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::context::errno_of;

/// Where it is on a machine with the module.
pub const PATH: &str = "/sys/module/knem/parameters/dmamin";

/// What the module has where nobody has set it.
const DEFAULT_BYTES: u64 = 1024;

#[derive(Debug)]
pub struct Parameter {
    /// None where it cannot be read.
    file: Option<File>,
}

impl Parameter {
    pub fn new(bytes: Option<u32>) -> std::io::Result<Self> {
        let Some(bytes) = bytes else { return Ok(Self { file: None }) };
        let file = File::from(memfd_create("dmamin", MFdFlags::MFD_CLOEXEC)?);
        file.write_all_at(format!("{bytes}\n").as_bytes(), 0)?;
        Ok(Self { file: Some(file) })
    }

    /// A description of its own for a client that opens it with these flags.
    pub fn open(&self, flags: i32) -> Result<File, Errno> {
        let file = self.file.as_ref().ok_or(Errno::ENOENT)?;
        let mode = flags & libc::O_ACCMODE;
        let (read, write) = (mode != libc::O_WRONLY, mode != libc::O_RDONLY);
        let mut options = OpenOptions::new();
        options.read(read).write(write).truncate(write && flags & libc::O_TRUNC != 0);
        let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        options.open(path).map_err(|error| errno_of(&error))
    }

    /// What it is now; the default where it is no number.
    pub fn bytes(&self) -> u64 {
        let mut text = [0; 32];
        let length = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        text.trim().parse().unwrap_or(DEFAULT_BYTES)
    }
}
