//! Opening a work queue of the hardware.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;

use lmt_core::mechanism::Unavailable;

use super::portal::{Instruction, Portal};
use super::queue::Limits;
use super::sysfs::{Description, Mode, Places};

/// A work queue of a device, open. Its drop closes it, see
/// [`super::queue::WorkQueue::stop`].
#[derive(Debug)]
pub struct DeviceQueue {
    pub(super) limits: Limits,
    pub(super) way: Way,
    name: String,
}

/// How descriptors get to the device.
#[derive(Debug)]
pub(super) enum Way {
    /// By an instruction on its mapped portal. The portal goes before the file.
    Mapped(Portal, #[allow(dead_code)] File),
    /// By write(2): where the driver does not let everybody map the portal
    /// (since Linux 6.9, for devices on which that is not safe).
    Written(File),
    /// Not any more.
    Stopped,
}

impl DeviceQueue {
    /// Opens the first work queue that lets itself be opened.
    ///
    /// # Errors
    /// [`Unavailable`] with a sentence on what was looked for and what helps.
    pub fn open() -> Result<Self, Unavailable> {
        Self::open_in(&Places::standard())
    }

    /// The same, with the folders given.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_in(places: &Places) -> Result<Self, Unavailable> {
        let queues = places.list()?;
        let mut errno = 0;
        let mut reasons = Vec::new();
        // Processes begin at different queues, so that not all take the first.
        let first = std::process::id() as usize % queues.len().max(1);
        for queue in queues.iter().cycle().skip(first).take(queues.len()) {
            match Self::open_one(places, queue) {
                Ok(open) => return Ok(open),
                Err(why) => {
                    errno = if errno == 0 { why.errno } else { errno };
                    reasons.push(format!("{}: {}", queue.name, why.sentence));
                }
            }
        }
        let sentence = format!("no DSA work queue can be used; {}", reasons.join("; "));
        Err(Unavailable { errno, sentence })
    }

    /// The queue's name, as `wq0.1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether descriptors go by write(2) and not through a mapped portal.
    pub const fn is_written(&self) -> bool {
        matches!(self.way, Way::Written(_))
    }

    fn open_one(places: &Places, queue: &Description) -> Result<Self, Unavailable> {
        if let Some(why) = queue.unusable() {
            return Err(Unavailable { errno: 0, sentence: why });
        }
        let path = places.device(&queue.name);
        // Non-blocking: a submission by write must not wait, whatever the driver.
        let options = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).clone();
        let device = options.open(&path).map_err(|error| {
            let help = match error.kind() {
                ErrorKind::PermissionDenied => "; give this user the right to read and write it",
                ErrorKind::ResourceBusy => "; it is dedicated and another process has it",
                _ => "",
            };
            let errno = error.raw_os_error().unwrap_or(0);
            Unavailable { errno, sentence: format!("{} cannot be opened: {error}{help}", path.display()) }
        })?;
        let limits = queue.limits();
        // Without the instruction the portal is of no use, but the kernel may
        // have other ways; it says so when the first descriptor is written.
        let portal =
            Instruction::of(queue.mode).and_then(|instruction| Portal::map(&device, instruction).ok());
        let (way, limits) = match portal {
            Some(portal) => (Way::Mapped(portal, device), limits),
            // The driver does not look into batches, so it refuses them here.
            None => (Way::Written(device), Limits { max_batch: 1, ..limits }),
        };
        Ok(Self { limits, way, name: queue.name.clone() })
    }
}

impl Description {
    fn limits(&self) -> Limits {
        Limits {
            max_transfer_bytes: u32::try_from(self.max_transfer_bytes).unwrap_or(u32::MAX).max(1),
            max_batch: self.max_batch,
            max_in_flight: match self.mode {
                Mode::Dedicated => self.size.max(1),
                Mode::Shared => u32::MAX,
            },
            can_block_on_fault: self.block_on_fault,
        }
    }
}

#[cfg(test)]
#[path = "device_test_support.rs"]
pub(super) mod test_support;

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
