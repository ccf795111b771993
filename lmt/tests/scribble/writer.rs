//! Writes random words into the shared memory of another process.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::common::Random;

const PAGE_BYTES: u64 = 4096;
/// What says that a page is there (proc_pid_pagemap(5)).
const PRESENT: u64 = 1 << 63;
/// Half of the words go here: a memory's first pages have most of its words that say
/// something; the others have bytes of messages.
const FIRST_PAGES: u64 = 32;

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Any word, or a small number. What was an address leads nowhere then.
    Wild,
    /// Also words that are one bit or a little off, and such that stand elsewhere: these get
    /// past more checks. Not where a mechanism goes by addresses that peers write: one that is
    /// a little off is memory of the process, which such a peer is trusted with.
    Near,
}

/// A mapping.
struct Mapping {
    start: u64,
    end: u64,
    inode: u64,
}

/// The writable shared mappings of lmt's memory of a process.
fn mappings(pid: &str) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mapping = |line: &str| {
        // 7f0-7f1 rw-s 00000000 00:01 1034 /memfd:lmt (deleted)
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let is_shared = words.next()? == "rw-s";
        let inode = words.nth(2)?.parse().ok()?;
        let is_ours = words.next()? == "/memfd:lmt";
        let number = |text| u64::from_str_radix(text, 16).ok();
        (is_shared && is_ours).then_some(Mapping { start: number(start)?, end: number(end)?, inode })
    };
    Ok(text.lines().filter_map(mapping).collect())
}

/// Which memories of lmt this process has mapped, by their inodes.
pub fn inodes_here() -> Vec<u64> {
    mappings("self").expect("procfs").into_iter().map(|mapping| mapping.inode).collect()
}

/// Writes to one process.
pub struct Writer {
    pid: i32,
    mem: File,
    pagemap: File,
    untouched: HashSet<u64>,
    /// The addresses of each memory's pages that are there.
    pages: Vec<Vec<u64>>,
}

impl Writer {
    /// For all memory but that with these inodes.
    pub fn open(pid: i32, untouched: Vec<u64>) -> io::Result<Self> {
        let mem = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        let pagemap = File::open(format!("/proc/{pid}/pagemap"))?;
        Ok(Self { pid, mem, pagemap, untouched: untouched.into_iter().collect(), pages: Vec::new() })
    }

    /// Looks for what is mapped now. Pages that are not there yet are left alone, or the
    /// kernel would make them all.
    pub fn find_pages(&mut self) -> io::Result<()> {
        self.pages.clear();
        for mapping in mappings(&self.pid.to_string())? {
            if self.untouched.contains(&mapping.inode) {
                continue;
            }
            let pages = (mapping.end - mapping.start) / PAGE_BYTES;
            let mut entries = vec![0; pages as usize * 8];
            self.pagemap.read_exact_at(&mut entries, mapping.start / PAGE_BYTES * 8)?;
            let is_there = |entry: &[u8; 8]| u64::from_ne_bytes(*entry) & PRESENT != 0;
            let addresses = entries.as_chunks().0.iter().zip(0..).filter(|(entry, _)| is_there(entry));
            let addresses: Vec<u64> = addresses.map(|(_, page)| mapping.start + page * PAGE_BYTES).collect();
            if !addresses.is_empty() {
                self.pages.push(addresses);
            }
        }
        if self.pages.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    /// Writes one word somewhere.
    pub fn write(&self, random: &mut Random, values: Values) -> io::Result<()> {
        let address = self.address(random);
        let value = match (random.below(8), values) {
            (0, _) => random.below(256),
            (1, _) => u64::MAX << random.below(64),
            (2 | 3, Values::Near) => self.read(address)? ^ 1 << random.below(64),
            (4, Values::Near) => self.read(address)?.wrapping_add(random.below(9)).wrapping_sub(4),
            (5, Values::Near) => self.read(self.address(random))?,
            _ => random.next(),
        };
        self.mem.write_all_at(&value.to_ne_bytes(), address)
    }

    fn address(&self, random: &mut Random) -> u64 {
        let pages = &self.pages[random.below(self.pages.len() as u64) as usize];
        let count = pages.len() as u64;
        let among = if random.below(2) == 0 { count.min(FIRST_PAGES) } else { count };
        pages[random.below(among) as usize] + random.below(PAGE_BYTES / 8) * 8
    }

    fn read(&self, address: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.mem.read_exact_at(&mut word, address)?;
        Ok(u64::from_ne_bytes(word))
    }
}
