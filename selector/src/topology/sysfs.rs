//! The machine by the kernel's files below /sys/devices/system, where there is
//! no hwloc. It knows no other machine than the running one, corrects no
//! error of firmware, and leaves cgroups to the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::objects::{Object, Objects, Type};

/// Where the kernel describes the machine.
const ROOT: &str = "/sys/devices/system";
/// More CPUs than the kernel can be built for: a longer range is a slip.
const MOST_CPUS: u32 = 1 << 16;

/// The kernel's files, or files like them.
pub(super) struct Files(PathBuf);

impl Files {
    pub(super) fn of_this_machine() -> Self {
        Self(PathBuf::from(ROOT))
    }

    /// Those below another folder.
    #[cfg(test)]
    pub(super) fn below(root: &Path) -> Self {
        Self(root.to_owned())
    }

    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = fs::read_to_string(self.0.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    fn number(&self, path: impl AsRef<Path>) -> Option<u32> {
        self.read(path)?.parse().ok()
    }

    /// The CPUs of a list of the kernel's.
    fn cpus(&self, path: impl AsRef<Path>) -> Option<Vec<u32>> {
        cpus_of_list(&self.read(path)?)
    }

    /// The CPUs that are online; those of which there are folders where that is not told.
    fn online(&self) -> Vec<u32> {
        self.cpus("cpu/online").unwrap_or_else(|| self.numbered("cpu", "cpu"))
    }

    /// The numbers behind a name in a folder, ascending.
    fn numbered(&self, folder: &str, name: &str) -> Vec<u32> {
        let entries = fs::read_dir(self.0.join(folder)).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix(name)?.parse().ok();
        let mut numbers: Vec<u32> = entries.filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Each set of CPUs that one of these files names, once, with the number in another file.
    fn sets(&self, lists: [&str; 2], number: &str) -> Vec<Object> {
        let mut sets = BTreeMap::new();
        for cpu in self.online() {
            let topology = PathBuf::from(format!("cpu/cpu{cpu}/topology"));
            let named = lists.iter().find_map(|list| self.cpus(topology.join(list)));
            if let Some(cpus) = named.filter(|cpus| cpus.contains(&cpu)) {
                sets.entry(cpus).or_insert_with(|| self.number(topology.join(number)));
            }
        }
        sets.into_iter().map(|(cpus, os_index)| object(os_index, cpus, 0)).collect()
    }

    /// The data and unified caches of a level.
    fn caches(&self, level: u8) -> Vec<Object> {
        let mut caches = BTreeMap::new();
        for cpu in self.online() {
            for index in self.numbered(&format!("cpu/cpu{cpu}/cache"), "index") {
                let cache = PathBuf::from(format!("cpu/cpu{cpu}/cache/index{index}"));
                let is_of_data =
                    self.read(cache.join("type")).is_some_and(|kind| kind == "Data" || kind == "Unified");
                if !is_of_data || self.number(cache.join("level")) != Some(level.into()) {
                    continue;
                }
                let cpus = self.cpus(cache.join("shared_cpu_list")).unwrap_or_else(|| vec![cpu]);
                let bytes = self.read(cache.join("size")).and_then(|size| bytes_of(&size)).unwrap_or(0);
                caches.insert(cpus, bytes);
            }
        }
        caches.into_iter().map(|(cpus, bytes)| object(None, cpus, bytes)).collect()
    }

    /// The NUMA nodes; one that spans the machine where the kernel knows none.
    fn nodes(&self) -> Vec<Object> {
        let online = self.online();
        let node = |number| {
            let mut cpus = self.cpus(format!("node/node{number}/cpulist")).unwrap_or_default();
            cpus.retain(|cpu| online.contains(cpu));
            object(Some(number), cpus, 0)
        };
        match self.numbered("node", "node") {
            none if none.is_empty() => vec![object(Some(0), online, 0)],
            nodes => nodes.into_iter().map(node).collect(),
        }
    }

    fn machine(&self) -> Object {
        let known = self.cpus("cpu/present").unwrap_or_else(|| self.online());
        Object { complete_cpus: known, ..object(None, self.online(), 0) }
    }
}

impl Objects for Files {
    fn is_this_system(&self) -> bool {
        self.0 == Path::new(ROOT)
    }

    fn allowed(&self) -> Option<Vec<u32>> {
        None
    }

    fn objects(&self, object_type: Type) -> Vec<Object> {
        match object_type {
            Type::MACHINE => vec![self.machine()],
            Type::PACKAGE => self.sets(["package_cpus_list", "core_siblings_list"], "physical_package_id"),
            Type::CORE => self.sets(["core_cpus_list", "thread_siblings_list"], "core_id"),
            Type::PU => self.online().into_iter().map(|cpu| object(Some(cpu), vec![cpu], 0)).collect(),
            Type::NUMA_NODE => self.nodes(),
            cache => Type::CACHES
                .iter()
                .find(|(_, of_level)| *of_level == cache)
                .map_or_else(Vec::new, |(level, _)| self.caches(*level)),
        }
    }
}

fn object(os_index: Option<u32>, cpus: Vec<u32>, cache_bytes: u64) -> Object {
    Object { os_index, complete_cpus: cpus.clone(), cpus, cache_bytes }
}

/// The CPUs of a list as the kernel writes it, `0-3,8`; none of an empty one,
/// `None` when it is no list.
fn cpus_of_list(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// A size as the kernel writes it, `32K`.
fn bytes_of(size: &str) -> Option<u64> {
    let (number, unit) =
        size.split_at(size.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(size.len()));
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
#[path = "sysfs_tests.rs"]
mod tests;
