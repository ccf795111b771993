//! How a work queue of the hardware takes descriptors: through its portal, or by write(2).
#![allow(unsafe_code)] // Implements an unsafe method.

use std::fs::File;
use std::io::{ErrorKind, Write};

use zerocopy::IntoBytes;

use super::descriptor::Descriptor;
use super::device::{DeviceQueue, Way};
use super::queue::{Limits, Stopped, Submitted, WorkQueue};

impl WorkQueue for DeviceQueue {
    fn limits(&self) -> Limits {
        self.limits
    }

    unsafe fn submit(&mut self, descriptor: &Descriptor) -> Submitted {
        // What the caller promises is the device's to use: the memory that the
        // descriptor names stays until it answers (`stop` never says more).
        match &mut self.way {
            Way::Mapped(portal, _device) => portal.submit(descriptor),
            Way::Written(device) => write_to(device, descriptor),
            Way::Stopped => Submitted::Refused { errno: libc::EBADF },
        }
    }

    /// Unmaps the portal and closes the device. In the last close the driver
    /// has the device end all that came through it (`idxd`'s release drains
    /// the address space's descriptors of a shared queue, all of a dedicated
    /// one), and their records appear. Whether this was the last close cannot
    /// be known: a forked child that has not called exec holds the device open
    /// too. Nor does a device that stands still have to obey. So the records
    /// alone tell.
    fn stop(&mut self) -> Stopped {
        self.way = Way::Stopped;
        Stopped::Unknown
    }
}

/// Gives a descriptor to the driver, which gives it to the device.
fn write_to(mut device: &File, descriptor: &Descriptor) -> Submitted {
    match device.write(descriptor.as_bytes()) {
        Ok(bytes) if bytes == descriptor.as_bytes().len() => Submitted::Accepted,
        // The driver takes whole descriptors or none.
        Ok(_) => Submitted::Full,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Submitted::Full
        }
        Err(error) => Submitted::Refused { errno: error.raw_os_error().unwrap_or(libc::EIO) },
    }
}

#[cfg(test)]
#[path = "submission_tests.rs"]
mod tests;
