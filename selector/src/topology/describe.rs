//! A machine in sentences, for `lmt doctor` and `lmt explain`.

use std::fmt;

use super::{Cache, Machine};
use crate::size::written;

/// "1 core", "4 cores".
pub(crate) fn count_of(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// "4 MiB of L2".
impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            0 => write!(f, "L{} of unknown size", self.level),
            bytes => write!(f, "{} of L{}", written(bytes), self.level),
        }
    }
}

impl Machine {
    /// The caches in words, alike ones together: "4 x 4 MiB of L2, each shared
    /// by 2 cores"; empty where hwloc knows none.
    pub fn cache_sentences(&self) -> Vec<String> {
        let mut kinds: Vec<(&Cache, u32)> = Vec::new();
        for cache in &self.caches {
            let alike = |(kind, _): &&mut (&Cache, u32)| {
                (kind.level, kind.bytes, kind.cores) == (cache.level, cache.bytes, cache.cores)
            };
            match kinds.iter_mut().find(alike) {
                Some((_, count)) => *count += 1,
                None => kinds.push((cache, 1)),
            }
        }
        let sentence = |(cache, count): (&Cache, u32)| match (count, cache.cores) {
            (1, 1) => format!("{cache} of one core"),
            (1, cores) => format!("{cache} shared by {cores} cores"),
            (_, 1) => format!("{count} x {cache}, each of one core"),
            (_, cores) => format!("{count} x {cache}, each shared by {cores} cores"),
        };
        kinds.into_iter().map(sentence).collect()
    }
}

/// In a sentence: "1 package, 1 NUMA node, 2 cores, 2 CPUs online (0-1); 2 x 2
/// MiB of L2, each of one core".
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packages = match self.packages.len() {
            0 => "no package known".to_owned(),
            packages => count_of(packages, "package", "packages"),
        };
        let cores = match self.cores.len() {
            0 => "no core known".to_owned(),
            cores => count_of(cores, "core", "cores"),
        };
        let nodes = count_of(self.numa_nodes.len(), "NUMA node", "NUMA nodes");
        let cpus = count_of(self.online.count(), "CPU", "CPUs");
        write!(f, "{packages}, {nodes}, {cores}, {cpus} online ({})", self.online)?;
        if self.allowed != self.online {
            write!(f, ", of which this process may use {}", self.allowed.count())?;
            if !self.allowed.is_empty() {
                write!(f, " ({})", self.allowed)?;
            }
        }
        if !self.offline.is_empty() {
            write!(f, ", {} offline ({})", self.offline.count(), self.offline)?;
        }
        if self.left_out > 0 {
            write!(f, ", {} more left out for their numbers", self.left_out)?;
        }
        match self.cache_sentences() {
            none if none.is_empty() => f.write_str("; no cache known"),
            sentences => sentences.iter().try_for_each(|sentence| write!(f, "; {sentence}")),
        }
    }
}
