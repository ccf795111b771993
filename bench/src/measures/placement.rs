//! Who runs where.

use std::fs;

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// A thread that a mechanism has started in this process.
#[derive(Debug)]
struct Helper {
    id: Pid,
    name: String,
    cpu: String,
}

/// Every thread but the first one, which is the rank's own.
fn helpers() -> Vec<Helper> {
    let own = std::process::id();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ids = tasks.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| id != own).filter_map(helper).collect()
}

/// The thread with this id; `None` if it has ended.
fn helper(id: u32) -> Option<Helper> {
    let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).ok()?;
    // proc_pid_stat(5): the name in parentheses is the second field, the CPU it
    // ran on last the 39th.
    let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
    let cpu = fields.split_whitespace().nth(36)?.to_owned();
    let id = Pid::from_raw(i32::try_from(id).ok()?);
    Some(Helper { id, name: name.to_owned(), cpu })
}

/// Lets the mechanisms' threads of this process run on `cpu` only.
pub fn move_helpers(cpu: usize) {
    let mut set = CpuSet::new();
    if set.set(cpu).is_err() {
        return;
    }
    for helper in helpers() {
        // One that has ended needs no place; where it stays is shown anyway.
        let _ended = sched_setaffinity(helper.id, &set);
    }
}

/// Where this process's rank and its helpers are.
pub fn describe(rank: u32) -> String {
    let cpu = sched_getcpu().map_or_else(|_| "an unknown CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let helpers = helpers();
    let places = helpers.iter().map(|helper| format!("thread {} on CPU {}", helper.name, helper.cpu));
    let text: Vec<String> = std::iter::once(format!("rank {rank} on {cpu}")).chain(places).collect();
    text.join(", ")
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
