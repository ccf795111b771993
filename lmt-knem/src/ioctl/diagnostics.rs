//! Whether the driver is there, and whether this process may use it.

use lmt_core::diagnostic::{FileAccess, Finding, Host, State};

use super::driver::IoctlDriver;
use crate::error::KnemError;

const LOAD: &str = "build and load KNEM 1.1.1 as an administrator: sudo modprobe knem";
const ADMIT: &str = "sudo chgrp GROUP /dev/knem && sudo chmod g+rw /dev/knem, with a group of this user";

pub(crate) fn diagnostics(host: &Host) -> Vec<Finding> {
    let loaded = loaded(host);
    let device = match host.device_access("knem") {
        FileAccess::Absent if loaded.state == State::Good => Finding::new(
            "/dev/knem",
            State::Blocked,
            "the module is loaded, and its device is not there",
        )
        .fixed_by("make udev create the device, or: sudo mknod /dev/knem c 10 MINOR, as /proc/misc has its minor number"),
        FileAccess::Absent => Finding::new(
            "/dev/knem",
            State::Missing,
            "there is no KNEM device; nothing depends on it, the same copies are made without the module",
        ),
        FileAccess::Refused => Finding::new(
            "/dev/knem",
            State::Blocked,
            "the device is there, and this user may not both read and write it",
        )
        .fixed_by(ADMIT),
        FileAccess::Granted => open(host),
    };
    vec![loaded, device]
}

fn loaded(host: &Host) -> Finding {
    let name = "KNEM's module";
    let listed = host
        .proc_text("modules")
        .map(|text| text.unwrap_or_default().lines().any(|line| line.split(' ').next() == Some("knem")));
    match listed {
        _ if host.sys_dir.join("module/knem").exists() => Finding::new(name, State::Good, "it is loaded"),
        Ok(true) => Finding::new(name, State::Good, "it is loaded"),
        Ok(false) => {
            Finding::new(name, State::Missing, "it is not loaded; nothing depends on it").fixed_by(LOAD)
        }
        Err(why) => Finding::new(name, State::Unknown, why),
    }
}

fn open(host: &Host) -> Finding {
    let name = "/dev/knem";
    if !host.is_this_machine() {
        // A file among others' files is no device to be asked.
        return Finding::new(name, State::Good, "the device is there, and may be read and written");
    }
    match IoctlDriver::open_at(&host.dev_dir.join("knem")) {
        Ok(_driver) => Finding::new(name, State::Good, "the driver answers, in the version that is known"),
        Err(KnemError::Unavailable { sentence, .. }) => {
            Finding::new(name, State::Blocked, sentence).fixed_by(LOAD)
        }
        Err(error) => Finding::new(name, State::Blocked, error.to_string()),
    }
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
