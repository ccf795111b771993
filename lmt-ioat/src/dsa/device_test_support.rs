//! Folders that look like those of a machine with a DSA.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode as Permissions;

use super::super::sysfs::Places;
use super::*;

/// Removed when dropped.
pub struct FakeTree {
    root: PathBuf,
}

impl FakeTree {
    pub fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("lmt-dsa-{}-{test}", std::process::id()));
        let tree = Self { root };
        for folder in [tree.places().devices, tree.places().attributes] {
            fs::create_dir_all(folder).unwrap();
        }
        tree
    }

    pub fn places(&self) -> Places {
        Places { devices: self.root.join("dev"), attributes: self.root.join("sys") }
    }

    /// An enabled user work queue, whose device is still to be made.
    pub fn queue(&self, name: &str, mode: &str) -> FakeQueue {
        let attributes = self.places().attributes.join(name);
        fs::create_dir_all(&attributes).unwrap();
        let queue = FakeQueue { device: self.places().device(name), attributes };
        let values = [
            ("state", "enabled"),
            ("type", "user"),
            ("mode", mode),
            ("size", "16"),
            ("max_transfer_size", "2147483648"),
            ("max_batch_size", "32"),
            ("block_on_fault", "1"),
        ];
        values.into_iter().fold(queue, |queue, (name, value)| queue.with(name, value))
    }
}

impl Drop for FakeTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

pub struct FakeQueue {
    device: PathBuf,
    attributes: PathBuf,
}

impl FakeQueue {
    pub fn with(self, name: &str, value: &str) -> Self {
        fs::write(self.attributes.join(name), format!("{value}\n")).unwrap();
        self
    }

    pub fn without(self, name: &str) -> Self {
        fs::remove_file(self.attributes.join(name)).unwrap();
        self
    }

    /// A device that can be mapped: a file.
    pub fn file(&self, bytes: u64) -> File {
        let file = File::options().read(true).write(true).create_new(true).open(&self.device).unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    /// A device that cannot: a pipe, of which this is the end to read from.
    pub fn pipe(&self) -> File {
        nix::unistd::mkfifo(&self.device, Permissions::S_IRWXU).unwrap();
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&self.device).unwrap()
    }

    pub fn device(&self) -> &Path {
        &self.device
    }
}

pub fn open(tree: &FakeTree) -> Result<DeviceQueue, Unavailable> {
    DeviceQueue::open_in(&tree.places())
}
