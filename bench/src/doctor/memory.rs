//! How much memory there is, and in which pages.

use std::path::PathBuf;

use lmt::diagnostic::{Finding, Host, State};
use nix::sys::statvfs::statvfs;

use super::limits::{Limit, Version, cgroups, limit, number};
use crate::sizes::human;

/// What a rank takes, roughly: its inbox, the buffers that stay in memory, and
/// the tables; the messages' own memory comes on top.
const RANK_BYTES: u64 = 4 << 20;
/// Address space that a rank maps of each peer, and of its own: mostly a pool of rings.
const PEER_ADDRESS_BYTES: u64 = 200 << 20;
/// Address space that any program takes.
const PROGRAM_ADDRESS_BYTES: u64 = 256 << 20;
/// What is locked at most: the descriptors of a copy engine's device.
const LOCKED_BYTES: u64 = 64 << 10;

pub(super) fn findings(host: &Host, ranks: u32) -> Vec<Finding> {
    vec![
        cgroup(host, ranks),
        address_space(limit(host, "Max address space"), ranks),
        locked(limit(host, "Max locked memory")),
        shm_folder(host),
        file_policy(host),
        reserved_pages(host),
        large_pages(host),
        large_shared_pages(host),
    ]
}

/// A size that was measured: never more digits than it is worth.
fn rounded(bytes: u64) -> String {
    human(if bytes >= 1 << 20 { bytes >> 20 << 20 } else { bytes })
}

/// One cgroup's numbers.
struct Group {
    folder: PathBuf,
    most_bytes: Option<u64>,
    throttled_above_bytes: Option<u64>,
    used_bytes: u64,
}

impl Group {
    fn read(host: &Host, version: Version, folder: PathBuf) -> Self {
        let read = |file| number(host, &folder, file);
        let (most, high, used) = match version {
            Version::Two => (read("memory.max"), read("memory.high"), read("memory.current")),
            Version::One => (read("memory.limit_in_bytes"), None, read("memory.usage_in_bytes")),
        };
        // The first generation writes "no limit" as a huge number.
        let real = |bytes: &u64| *bytes < 1 << 60;
        Self {
            most_bytes: most.filter(real),
            throttled_above_bytes: high.filter(real),
            used_bytes: used.unwrap_or(0),
            folder,
        }
    }

    fn left_bytes(&self) -> Option<u64> {
        let least = self.most_bytes.into_iter().chain(self.throttled_above_bytes).min()?;
        Some(least.saturating_sub(self.used_bytes))
    }
}

fn cgroup(host: &Host, ranks: u32) -> Finding {
    let name = "memory limit of the cgroup";
    let groups =
        cgroups(host, "memory").into_iter().map(|(version, folder)| Group::read(host, version, folder));
    let tightest =
        groups.filter_map(|group| Some((group.left_bytes()?, group))).min_by_key(|(left, _)| *left);
    let Some((left, group)) = tightest else {
        return Finding::new(name, State::Good, "none");
    };
    let shown = |bytes: Option<u64>| bytes.map_or_else(|| "none".to_owned(), rounded);
    let meaning = format!(
        "{}: limit {}, throttled above {}, used {}, so {} are left (cached files among what is used can go)",
        group.folder.display(),
        shown(group.most_bytes),
        shown(group.throttled_above_bytes),
        rounded(group.used_bytes),
        rounded(left)
    );
    let needed = u64::from(ranks) * RANK_BYTES;
    if left >= needed {
        return Finding::new(name, State::Good, meaning);
    }
    let meaning = format!("{meaning}; {ranks} ranks may take {} beside their messages", human(needed));
    Finding::new(name, State::Limited, meaning).fixed_by(format!(
        "raise memory.max (and memory.high) of the cgroup by {} (with Docker: --memory)",
        human(needed)
    ))
}

fn address_space(limit: Result<Limit, String>, ranks: u32) -> Finding {
    let name = "address space (ulimit -v)";
    let needed = PROGRAM_ADDRESS_BYTES + u64::from(ranks) * PEER_ADDRESS_BYTES;
    match limit {
        Ok(Limit { soft: None, .. }) => Finding::new(name, State::Good, "unlimited"),
        Ok(Limit { soft: Some(bytes), .. }) if bytes >= needed => Finding::new(
            name,
            State::Good,
            format!("{}, of which {ranks} ranks may map {} each", rounded(bytes), human(needed)),
        ),
        Ok(Limit { soft: Some(bytes), .. }) => Finding::new(
            name,
            State::Limited,
            format!(
                "{}, and each of {ranks} ranks may map {} (most of it is never touched)",
                rounded(bytes),
                human(needed)
            ),
        )
        .fixed_by("ulimit -v unlimited"),
        Err(why) => Finding::new(name, State::Unknown, why),
    }
}

fn locked(limit: Result<Limit, String>) -> Finding {
    let name = "locked memory (ulimit -l)";
    match limit {
        Ok(Limit { soft: None, .. }) => Finding::new(name, State::Good, "unlimited; lmt needs next to none"),
        Ok(Limit { soft: Some(bytes), .. }) if bytes >= LOCKED_BYTES => Finding::new(
            name,
            State::Good,
            format!("{}; lmt locks no messages, and at most {} for a copy engine's device", rounded(bytes), human(LOCKED_BYTES)),
        ),
        Ok(Limit { soft: Some(bytes), .. }) => Finding::new(
            name,
            State::Limited,
            format!(
                "{}; a copy engine's device would have {} locked, and goes without; nothing else is concerned",
                rounded(bytes),
                human(LOCKED_BYTES)
            ),
        )
        .fixed_by("ulimit -l 64"),
        Err(why) => Finding::new(name, State::Unknown, why),
    }
}

/// Named because users look there first.
fn shm_folder(host: &Host) -> Finding {
    let name = "/dev/shm";
    let unneeded = "lmt does not use it: its shared memory has no file there";
    let folder = host.dev_dir.join("shm");
    if !folder.is_dir() {
        return Finding::new(name, State::Good, format!("not there; {unneeded}"));
    }
    if !host.is_this_machine() {
        return Finding::new(name, State::Good, format!("its size is not told by files; {unneeded}"));
    }
    match statvfs(&folder) {
        Ok(found) => {
            let bytes = |blocks: u64| rounded(blocks.saturating_mul(found.fragment_size()));
            let (size, free) = (bytes(found.blocks()), bytes(found.blocks_available()));
            Finding::new(name, State::Good, format!("{size}, {free} free; {unneeded}"))
        }
        Err(errno) => Finding::new(name, State::Good, format!("not to be looked at ({errno}); {unneeded}")),
    }
}

fn file_policy(host: &Host) -> Finding {
    let name = "vm.memfd_noexec";
    match host.proc_number("sys/vm/memfd_noexec") {
        Ok(None) => Finding::new(name, State::Good, "this kernel has no such policy on memory files"),
        Ok(Some(2)) => Finding::new(
            name,
            State::Limited,
            "2: Linux 6.3 to 6.5 refuse memory files to programs that do not ask for the policy; newer kernels apply it to them",
        )
        .fixed_by("sudo sysctl vm.memfd_noexec=1, if memory files are refused (see the mechanisms)"),
        Ok(Some(value)) => Finding::new(name, State::Good, format!("{value}: memory files are allowed")),
        Err(why) => Finding::new(name, State::Unknown, why),
    }
}

fn reserved_pages(host: &Host) -> Finding {
    let name = "reserved huge pages";
    match host.proc_number("sys/vm/nr_hugepages") {
        Ok(Some(0)) | Ok(None) => {
            Finding::new(name, State::Missing, "none; lmt takes none by itself, an application's buffers may")
                .fixed_by("sudo sysctl vm.nr_hugepages=COUNT")
        }
        Ok(Some(pages)) => Finding::new(
            name,
            State::Good,
            format!("{pages}; messages from and into them are moved like any other"),
        ),
        Err(why) => Finding::new(name, State::Unknown, why),
    }
}

/// What stands in brackets is in force: `always [madvise] never`.
fn in_force(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

fn large_pages(host: &Host) -> Finding {
    let name = "transparent huge pages";
    let switch = "kernel/mm/transparent_hugepage/enabled";
    match host.sys_text(switch) {
        Ok(Some(text)) => match in_force(&text) {
            Some("never") => Finding::new(
                name,
                State::Limited,
                "never: large buffers stand on small pages, each of which the kernel looks up when it copies from or into another process",
            )
            .fixed_by(format!("echo madvise | sudo tee /sys/{switch}")),
            Some("madvise") => Finding::new(
                name,
                State::Good,
                "madvise: applications that ask (MADV_HUGEPAGE) get large pages for their buffers",
            ),
            Some(mode) => Finding::new(name, State::Good, format!("{mode}: large buffers get large pages")),
            None => Finding::new(name, State::Unknown, format!("/sys/{switch} says '{text}'")),
        },
        Ok(None) => Finding::new(name, State::Missing, "this kernel has none"),
        Err(why) => Finding::new(name, State::Unknown, why),
    }
}

fn large_shared_pages(host: &Host) -> Finding {
    let name = "shared huge pages";
    let switch = "kernel/mm/transparent_hugepage/shmem_enabled";
    match host.sys_text(switch) {
        Ok(Some(text)) => match in_force(&text) {
            Some(mode @ ("never" | "deny")) => Finding::new(
                name,
                State::Missing,
                format!(
                    "{mode}: shared memory stands on small pages; its buffers are small, nothing depends on it"
                ),
            ),
            Some(mode) => {
                Finding::new(name, State::Good, format!("{mode}: shared memory may get large pages"))
            }
            None => Finding::new(name, State::Unknown, format!("/sys/{switch} says '{text}'")),
        },
        Ok(None) => Finding::new(name, State::Missing, "this kernel has none"),
        Err(why) => Finding::new(name, State::Unknown, why),
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
