//! The stacks of a program's processes, before they are ended because they hang.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::interrupt::Interrupt;
use crate::peers::command::{Finished, on_path, run_within};

/// How long a debugger may take for a process, in seconds.
const DEBUGGER_LIMIT_S: u64 = 20;
/// What the kernel tells of a process: where it sleeps, in which system call.
const KERNEL_FILES: [&str; 5] = ["wchan", "syscall", "stack", "status", "maps"];
/// What launchers say to each rank of its number.
const RANK_VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK="];

/// Writes into `folder` a file for each rank below this process, and for whatever else
/// it has started. What cannot be found out is left out.
pub fn keep(pid: i32, folder: &Path, interrupt: &Interrupt) {
    if fs::create_dir_all(folder).is_err() {
        return;
    }
    for pid in below(supervisor(pid).unwrap_or(pid), &parents()) {
        let name = rank(pid).map_or_else(|| format!("process-{pid}"), |rank| format!("rank-{rank}-{pid}"));
        let text = format!("{}\n{}\n{}", command(pid), stacks(pid, interrupt), kernel(pid));
        // The program is to be ended whether this is written or not.
        let _ = fs::write(folder.join(name), text);
    }
}

/// Who sees to it that all ends: processes that outlive their own parents are its.
fn supervisor(pid: i32) -> Option<i32> {
    parents().get(&pid).copied().filter(|&parent| parent > 1)
}

/// Each process's parent.
fn parents() -> BTreeMap<i32, i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| Some((pid, parent(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?)))
        .collect()
}

/// The parent in a line of /proc/PID/stat, whose second field may have any letters.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// All processes below this one.
fn below(root: i32, parents: &BTreeMap<i32, i32>) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(
            parents
                .iter()
                .filter(|(child, parent)| **parent == pid && **child != pid)
                .map(|(child, _)| *child),
        );
        next += 1;
    }
    found.remove(0);
    found
}

/// The rank that a process is, if its launcher has told it.
fn rank(pid: i32) -> Option<u32> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entries: Vec<&str> =
        environment.split(|&byte| byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok()).collect();
    let value = |name: &&str| entries.iter().find_map(|entry| entry.strip_prefix(*name));
    RANK_VARIABLES.iter().find_map(value)?.parse().ok()
}

fn command(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// What the first debugger that is there says.
fn stacks(pid: i32, interrupt: &Interrupt) -> String {
    let pid = pid.to_string();
    let debuggers: [(&str, &[&str]); 2] =
        [("gdb", &["-batch", "-nx", "-ex", "thread apply all backtrace", "-p"]), ("eu-stack", &["-p"])];
    let path = std::env::var_os("PATH").unwrap_or_default();
    for (name, arguments) in debuggers {
        let Some(program) = on_path(name, &path) else { continue };
        let none: [(&str, &str); 0] = [];
        let all = arguments.iter().copied().chain([pid.as_str()]);
        return match run_within(&program, all, &none, DEBUGGER_LIMIT_S, interrupt) {
            Ok(finished) => Finished::output(&finished),
            Err(sentence) => sentence,
        };
    }
    "neither gdb nor eu-stack is there, which would show the stacks; install gdb".to_owned()
}

fn kernel(pid: i32) -> String {
    let read = |name: &&str| {
        let text = fs::read_to_string(format!("/proc/{pid}/{name}")).ok()?;
        Some(format!("/proc/{pid}/{name}:\n{}\n", text.trim_end()))
    };
    KERNEL_FILES.iter().filter_map(read).collect()
}

#[cfg(test)]
#[path = "stacks_tests.rs"]
mod tests;
