//! Whether there is a device, a work queue on it, and the right to use it.

use lmt_core::diagnostic::{FileAccess, Finding, Host, State};

use super::sysfs::{Description, Mode, Places};

const DRIVER: &str = "on a CPU with a DSA: boot with intel_iommu=on,sm_on, then: sudo modprobe idxd";
const QUEUE: &str = "sudo accel-config config-wq --type=user --mode=shared DEVICE/QUEUE, then: sudo accel-config enable-wq DEVICE/QUEUE";

pub(super) fn diagnostics(host: &Host) -> Vec<Finding> {
    let places = Places::on(host);
    let devices = devices(&places);
    if devices.state == State::Missing {
        return vec![devices];
    }
    let mut found = vec![devices];
    match places.list() {
        Err(why) => {
            found.push(Finding::new("DSA work queues", State::Blocked, why.sentence).fixed_by(QUEUE));
        }
        Ok(queues) => found.extend(queues.iter().map(|queue| of_queue(host, queue))),
    }
    found
}

/// Names such as dsa0, among work queues, engines and groups.
fn devices(places: &Places) -> Finding {
    let name = "DSA devices";
    let entries = std::fs::read_dir(&places.attributes).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("dsa")).collect();
    names.sort();
    // Work queues without their device in sight are looked at all the same.
    if names.is_empty() && !places.devices.exists() {
        return Finding::new(
            name,
            State::Missing,
            "there is none, or no driver for it; nothing depends on it",
        )
        .fixed_by(DRIVER);
    }
    Finding::new(
        name,
        State::Good,
        format!(
            "the driver shows {}",
            if names.is_empty() { "work queues only".into() } else { names.join(", ") }
        ),
    )
}

fn of_queue(host: &Host, queue: &Description) -> Finding {
    let name = format!("DSA work queue {}", queue.name);
    let device = format!("dsa/{}", queue.name);
    if let Some(why) = queue.unusable() {
        return Finding::new(name, State::Limited, why).fixed_by(QUEUE);
    }
    let (mode, flag) = match queue.mode {
        Mode::Dedicated => ("dedicated: one process has it at a time", "movdir64b"),
        Mode::Shared => ("shared", "enqcmd"),
    };
    match host.device_access(&device) {
        FileAccess::Absent => {
            Finding::new(name, State::Blocked, format!("its device /dev/{device} is a link to nowhere"))
                .fixed_by("sudo udevadm trigger")
        }
        FileAccess::Refused => Finding::new(
            name,
            State::Blocked,
            format!("this user may not both read and write /dev/{device} ({mode})"),
        )
        .fixed_by(format!(
            "sudo chgrp GROUP /dev/{device} && sudo chmod g+rw /dev/{device}, with a group of this user"
        )),
        FileAccess::Granted if has_flag(host, flag) => Finding::new(
            name,
            State::Good,
            format!("{mode}; {} entries, copies of up to {} bytes", queue.size, queue.max_transfer_bytes),
        ),
        FileAccess::Granted => Finding::new(
            name,
            State::Limited,
            format!(
                "{mode}; the CPU has no {flag}, so each descriptor is a system call, where the driver takes it"
            ),
        ),
    }
}

/// Whether the CPU has an instruction (flags in /proc/cpuinfo).
fn has_flag(host: &Host, flag: &str) -> bool {
    let text = host.proc_text("cpuinfo").ok().flatten().unwrap_or_default();
    let mut flags = text.lines().filter(|line| line.starts_with("flags"));
    flags.next().is_some_and(|line| line.split_whitespace().any(|word| word == flag))
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
