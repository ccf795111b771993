//! What the driver's answers mean.

use std::path::Path;

use nix::errno::Errno;

use super::abi;
use crate::error::KnemError;

/// Why the device was not opened.
pub(super) fn of_open(path: &Path, errno: Errno) -> KnemError {
    let path = path.display();
    let sentence = match errno {
        Errno::ENOENT | Errno::ENOTDIR => {
            format!(
                "{path} is not there: the KNEM module is not loaded; an administrator loads it by modprobe knem"
            )
        }
        Errno::EACCES | Errno::EPERM => format!(
            "{path} may not be opened for reading and writing, as KNEM needs it ({errno}); an administrator gives \
             this user or a group of it both rights on it"
        ),
        Errno::EROFS => format!(
            "{path} cannot be opened for writing, which KNEM needs, as its file system is read-only; mount it writable"
        ),
        Errno::ENXIO | Errno::ENODEV => {
            format!(
                "{path} is there but no driver is behind it ({errno}); an administrator loads the KNEM module"
            )
        }
        Errno::EMFILE | Errno::ENFILE => format!(
            "no descriptor is left to open {path} ({errno}); raise the limit on open files or close some"
        ),
        _ => format!("{path} cannot be opened: {errno}; the driver's log (dmesg) may say more"),
    };
    KnemError::Unavailable { errno: Some(errno), sentence }
}

/// Why the driver's description of itself could not be had.
pub(super) fn of_info(path: &Path, errno: Errno) -> KnemError {
    let path = path.display();
    let sentence = match errno {
        Errno::EBADF => format!("{path} is open for reading only; KNEM needs it open for writing too"),
        _ => format!(
            "what is behind {path} does not answer as KNEM does ({errno}); it must be KNEM's driver, version 1.1.1"
        ),
    };
    KnemError::Unavailable { errno: Some(errno), sentence }
}

/// The driver's interface is not the one that is known here.
pub(super) fn wrong_abi(path: &Path, found: u32) -> KnemError {
    let sentence = format!(
        "the driver behind {} has version {found:#x} of KNEM's interface, and {:#x} is needed; load KNEM 1.1.1",
        path.display(),
        abi::ABI_VERSION
    );
    KnemError::Unavailable { errno: None, sentence }
}

/// Why a region was not created.
pub(super) fn of_create(errno: Errno) -> KnemError {
    match errno {
        Errno::EFAULT => KnemError::BadMemory("region"),
        Errno::EACCES => KnemError::ReadOnlyMemory,
        Errno::ENOMEM => system("creating a region", errno, "use fewer segments, or free memory"),
        _ => of_any("creating a region", errno),
    }
}

/// Why the thread for asynchronous copies was not bound.
pub(super) fn of_bind(errno: Errno) -> KnemError {
    match errno {
        Errno::EINVAL => system(
            "binding the offload thread",
            errno,
            "name at least one CPU that is online, and none that this machine cannot have",
        ),
        _ => of_any("binding the offload thread", errno),
    }
}

/// Why an asynchronous copy between regions that are there was not begun.
pub(super) fn of_background(errno: Errno) -> KnemError {
    let hint = "the driver takes no asynchronous copies from this opening; open the device anew, or leave the \
                asynchronous flags out";
    system("an asynchronous copy", errno, hint)
}

/// What an errno means whatever was asked for.
pub(super) fn of_any(call: &'static str, errno: Errno) -> KnemError {
    let hint = match errno {
        Errno::ENOSYS | Errno::ENOTTY => "the driver lacks the request; load KNEM 1.1.1",
        Errno::EBADF => "the device is open for reading only, or closed; open it for reading and writing",
        Errno::ENOMEM => "there is too little kernel memory; use fewer segments, or free memory",
        Errno::EBUSY => "there can be one status array for each opening of the device; open it anew",
        Errno::EINVAL => "the driver does not take these values",
        _ => "the driver's log (dmesg) may say more",
    };
    system(call, errno, hint)
}

fn system(call: &'static str, errno: Errno, hint: &'static str) -> KnemError {
    KnemError::System { call, errno, hint: hint.to_owned() }
}
