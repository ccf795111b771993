//! What a process's address space holds (proc_pid_maps(5)), to tell whether
//! segments could be pinned.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::abi::Segment;

pub const PAGE_BYTES: u64 = 4096;

/// One mapping.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub start: u64,
    pub end: u64,
    pub readable: bool,
    pub writable: bool,
    /// Its pages begin as the zero page.
    pub starts_as_zeros: bool,
}

/// The mappings of a process, in order. Empty when it has ended.
pub fn areas(process: i32) -> Vec<Area> {
    let text = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    text.lines().filter_map(area).collect()
}

/// `start-end rwxp offset device inode path`.
fn area(line: &str) -> Option<Area> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let access = fields.next()?.as_bytes();
    let inode = fields.nth(2)?;
    Some(Area {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        readable: access.first() == Some(&b'r'),
        writable: access.get(1) == Some(&b'w'),
        starts_as_zeros: access.get(3) == Some(&b'p') && inode == "0",
    })
}

/// Whether all of `segment` can be read, and written if `write` says so.
pub fn holds(areas: &[Area], segment: Segment, write: bool) -> bool {
    if segment.bytes == 0 {
        return true;
    }
    let Some(end) = segment.address.checked_add(segment.bytes) else {
        return false;
    };
    let mut at = segment.address;
    for area in &areas[areas.partition_point(|area| area.end <= at)..] {
        if area.start > at || !area.readable || (write && !area.writable) {
            return false;
        }
        if area.end >= end {
            return true;
        }
        at = area.end;
    }
    false
}

/// The pages of `segment` that nobody has touched yet and that begin as zeros:
/// pinned for reading, they are the zero page for good.
pub fn untouched_pages(process: i32, areas: &[Area], segment: Segment) -> Vec<u64> {
    let Ok(pagemap) = File::open(format!("/proc/{process}/pagemap")) else {
        return Vec::new();
    };
    let mut untouched = Vec::new();
    for page in pages(segment) {
        let area = areas.get(areas.partition_point(|area| area.end <= page));
        if !area.is_some_and(|area| area.start <= page && area.starts_as_zeros) {
            continue;
        }
        let mut entry = [0; 8];
        // Bit 63: in memory; bit 62: swapped out (proc_pid_pagemap(5)).
        if pagemap.read_exact_at(&mut entry, page / PAGE_BYTES * 8).is_ok()
            && u64::from_ne_bytes(entry) >> 62 == 0
        {
            untouched.push(page);
        }
    }
    untouched
}

/// The addresses of the pages that `segment` touches.
pub fn pages(segment: Segment) -> impl Iterator<Item = u64> {
    let first = segment.address / PAGE_BYTES;
    let end = if segment.bytes == 0 { first } else { (segment.address + segment.bytes - 1) / PAGE_BYTES + 1 };
    (first..end).map(|page| page * PAGE_BYTES)
}
