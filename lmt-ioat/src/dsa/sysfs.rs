//! Which work queues there are, and how they are configured (the kernel's
//! Documentation/ABI/stable/sysfs-driver-dma-idxd).

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lmt_core::diagnostic::Host;
use lmt_core::mechanism::Unavailable;

const HELP: &str = "a CPU with a DSA needs the module idxd, an IOMMU in scalable mode \
    (intel_iommu=on,sm_on) and a user work queue: accel-config config-wq --type=user, then enable-wq";

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of the character devices: /dev/dsa.
    pub devices: PathBuf,
    /// The folder with a folder of attributes for each work queue:
    /// /sys/bus/dsa/devices.
    pub attributes: PathBuf,
}

/// How a work queue takes descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// From one process, by MOVDIR64B, which does not tell that it is full.
    Dedicated,
    /// From many, by ENQCMD.
    Shared,
}

/// A work queue, as its attributes describe it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// As `wq0.1`: device 0, queue 1.
    pub name: String,
    /// How it takes descriptors.
    pub mode: Mode,
    /// Entries.
    pub size: u32,
    /// Bytes of the longest copy.
    pub max_transfer_bytes: u64,
    /// Descriptors of the longest batch.
    pub max_batch: u32,
    /// Whether descriptors may ask the device to wait at page faults.
    pub block_on_fault: bool,
    /// Why it cannot be used, if so.
    unusable: Option<String>,
}

impl Description {
    /// Why it cannot be used, if so.
    pub fn unusable(&self) -> Option<String> {
        self.unusable.clone()
    }
}

impl Places {
    /// Where Linux has them.
    pub fn standard() -> Self {
        Self { devices: "/dev/dsa".into(), attributes: "/sys/bus/dsa/devices".into() }
    }

    /// Where a machine whose files are elsewhere has them.
    pub fn on(host: &Host) -> Self {
        Self { devices: host.dev_dir.join("dsa"), attributes: host.sys_dir.join("bus/dsa/devices") }
    }

    /// The device of a work queue.
    pub fn device(&self, name: &str) -> PathBuf {
        self.devices.join(name)
    }

    /// All work queues that have a device, in order of their names.
    ///
    /// # Errors
    /// [`Unavailable`] when there is none at all.
    pub fn list(&self) -> Result<Vec<Description>, Unavailable> {
        let folder = self.devices.display();
        let entries = fs::read_dir(&self.devices).map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(0);
            let sentence = match error.kind() {
                ErrorKind::NotFound => format!("there is no {folder}; {HELP}"),
                _ => format!("{folder} cannot be read: {error}"),
            };
            Unavailable { errno, sentence }
        })?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("wq")).collect();
        names.sort();
        if names.is_empty() {
            let sentence = format!("there is no work queue in {folder}; {HELP}");
            return Err(Unavailable { errno: libc::ENOENT, sentence });
        }
        Ok(names.into_iter().map(|name| describe(&self.attributes.join(&name), name)).collect())
    }
}

/// Reads a queue's attributes; the first that stands in the way is told.
fn describe(folder: &Path, name: String) -> Description {
    let mut description = Description {
        name,
        mode: Mode::Shared,
        size: 0,
        max_transfer_bytes: 0,
        max_batch: 0,
        block_on_fault: false,
        unusable: None,
    };
    description.unusable = fill(folder, &mut description).err();
    description
}

fn fill(folder: &Path, description: &mut Description) -> Result<(), String> {
    let state = text(folder, "state")?;
    if state != "enabled" {
        return Err(format!("it is {state}; enable it: accel-config enable-wq"));
    }
    let kind = text(folder, "type")?;
    if kind != "user" {
        return Err(format!("it is of type {kind}; a process can use those of type user"));
    }
    description.mode = match text(folder, "mode")?.as_str() {
        "dedicated" => Mode::Dedicated,
        "shared" => Mode::Shared,
        other => return Err(format!("its mode is {other}; it must be dedicated or shared")),
    };
    description.size = number(folder, "size")?.try_into().unwrap_or(u32::MAX);
    description.max_transfer_bytes = number(folder, "max_transfer_size")?;
    // Devices without batches, and kernels without the attribute, have none.
    description.max_batch = number(folder, "max_batch_size").unwrap_or(1).try_into().unwrap_or(u32::MAX);
    description.block_on_fault = number(folder, "block_on_fault").is_ok_and(|value| value != 0);
    Ok(())
}

fn text(folder: &Path, attribute: &str) -> Result<String, String> {
    let read = fs::read_to_string(folder.join(attribute));
    let value = read.map_err(|error| format!("its attribute {attribute} cannot be read: {error}"))?;
    Ok(value.trim().to_owned())
}

fn number(folder: &Path, attribute: &str) -> Result<u64, String> {
    let value = text(folder, attribute)?;
    value.parse().map_err(|_| format!("its attribute {attribute} is {value}; it must be a number"))
}
