//! Memory that is read again and again: where it stays in a cache that is
//! fast, and where something has displaced it, slower.

use std::hint::black_box;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// The least there is to read, in lines.
const MIN_LINES: usize = 64;

/// A working set and the order in which its lines are read.
#[derive(Debug)]
pub struct WorkingSet {
    memory: Vec<u8>,
    lines: usize,
    stride: usize,
}

impl WorkingSet {
    /// So many bytes, every page touched; `None` when there is no such memory.
    pub fn new(bytes: usize) -> Option<Self> {
        let lines = (bytes / LINE_BYTES).max(MIN_LINES);
        let mut memory = Vec::new();
        memory.try_reserve_exact(lines * LINE_BYTES).ok()?;
        memory.resize(lines * LINE_BYTES, 1);
        Some(Self { memory, lines, stride: stride(lines) })
    }

    /// Reads one byte of each line. From one line to the next it is far, beyond
    /// what a processor fetches ahead by itself: that would hide the misses
    /// that are to be measured. Returns the sum of what was read.
    pub fn read(&self) -> u64 {
        let (mut sum, mut line) = (0, 0);
        let memory = black_box(&self.memory);
        for _ in 0..self.lines {
            sum += u64::from(memory[line * LINE_BYTES]);
            line += self.stride;
            if line >= self.lines {
                line -= self.lines;
            }
        }
        black_box(sum)
    }
}

/// The golden section of so many lines, or the next number from there that has
/// no divisor in common with them, so that every line has its turn.
fn stride(lines: usize) -> usize {
    let golden = (lines as f64 * 0.618_034) as usize;
    (golden..lines).find(|&stride| greatest_divisor(stride, lines) == 1).unwrap_or(1)
}

fn greatest_divisor(one: usize, other: usize) -> usize {
    if other == 0 { one } else { greatest_divisor(other, one % other) }
}

#[cfg(test)]
#[path = "working_set_tests.rs"]
mod tests;
