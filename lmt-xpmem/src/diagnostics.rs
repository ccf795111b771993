//! Whether the module's device is there, and whether this process may use it.

use lmt_core::diagnostic::{FileAccess, Finding, Host, State};

use crate::device::Device;
use crate::driver::Driver;
use crate::refusal::sentence;

const NAME: &str = "/dev/xpmem";
const LOAD: &str = "build and load XPMEM 2.6 or 2.7 as an administrator: sudo modprobe xpmem";
const ADMIT: &str = "sudo chgrp GROUP /dev/xpmem && sudo chmod g+rw /dev/xpmem, with a group of this user";

pub(crate) fn diagnostics(host: &Host) -> Vec<Finding> {
    let device = match host.device_access("xpmem") {
        FileAccess::Absent => {
            let meaning = "there is no XPMEM device; nothing depends on it, messages go by other mechanisms";
            Finding::new(NAME, State::Missing, meaning).fixed_by(LOAD)
        }
        FileAccess::Refused => {
            let meaning = "the device is there, and this user may not both read and write it";
            Finding::new(NAME, State::Blocked, meaning).fixed_by(ADMIT)
        }
        // A file among others' files is no device to be asked.
        FileAccess::Granted if !host.is_this_machine() => {
            Finding::new(NAME, State::Good, "the device is there, and may be read and written")
        }
        FileAccess::Granted => match Device.segment() {
            Ok(_) => Finding::new(NAME, State::Good, "the module answers, in a version that is known"),
            Err(errno) => Finding::new(NAME, State::Blocked, sentence(errno)).fixed_by(LOAD),
        },
    };
    vec![device]
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
