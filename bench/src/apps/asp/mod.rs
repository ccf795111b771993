//! All-pairs shortest paths (Floyd, Warshall: Communications of the ACM 5, 1962, page
//! 345), parallel by rows: in step k row k goes from the rank that has it to all, and
//! each shortens the paths of its rows by those over vertex k (knem-jpdc2013, 5.6).

pub mod graph;
mod serial;

use std::ops::Range;
use std::time::Instant;

use lmt_collectives::{Algorithm, GroupError, Operation};

use super::application::{AppError, Application, Finding, Round, Watch};
use super::comm::Comm;
use super::is::keys::part;
use super::words::{from_words, words, words_mut};
use crate::error::BenchError;
use crate::memory::{Held, Memory};

/// Up to so many vertices all paths are compared with a serial run if nothing else is
/// asked for.
pub const SERIAL_VERTICES: u32 = 2048;
/// Rows of each rank that are checked where there is no serial run.
const SAMPLED_ROWS: usize = 4;
/// Broadcasts before the time that counts.
const WARM_UP: u32 = 8;

/// One rank's rows and the memory that it works in.
pub struct Paths {
    vertices: u32,
    /// Which rows it has.
    own: Range<u64>,
    ranks: u32,
    /// Row by row: the length of the shortest path so far.
    lengths: Vec<u32>,
    /// The row of a step, as it is sent.
    row: Held,
    /// Whether all is compared with a serial run.
    serial: bool,
    /// Of the rows of the serial run, on rank 0, once there was one.
    known: Option<Vec<u64>>,
    /// Spoils a path before it is verified.
    fault: bool,
}

impl Paths {
    /// Makes a rank's part of the graph.
    ///
    /// # Errors
    /// There is no memory for a row.
    pub fn new(
        vertices: u32,
        rank: u32,
        ranks: u32,
        memory: Memory,
        serial: bool,
        fault: bool,
    ) -> Result<Self, BenchError> {
        let own = part(vertices.into(), rank, ranks);
        let row = memory.filled(vertices as usize * 4, 0)?;
        Ok(Self { vertices, own, ranks, lengths: Vec::new(), row, serial, known: None, fault })
    }

    /// Bytes that all ranks need together, about.
    pub fn bytes(vertices: u32, ranks: u32, serial: bool) -> u64 {
        let row = u64::from(vertices) * 4;
        let matrices = if serial { 2 } else { 1 };
        row.saturating_mul(u64::from(vertices)).saturating_mul(matrices) + 2 * row * u64::from(ranks)
    }

    /// Who has a row.
    fn owner(&self, row: u32) -> u32 {
        // The last rank whose part begins at or before it.
        let starts = 0..self.ranks;
        starts
            .rev()
            .find(|&rank| part(self.vertices.into(), rank, self.ranks).contains(&row.into()))
            .unwrap_or(0)
    }

    /// Sends or receives a row; it is in `self.row` then.
    fn share(&mut self, k: u32, comm: &Comm<'_>) -> Result<(), GroupError> {
        let root = self.owner(k);
        if root == comm.rank() {
            let width = self.vertices as usize;
            let start = (u64::from(k) - self.own.start) as usize * width;
            for (word, length) in words_mut(&mut self.row).iter_mut().zip(&self.lengths[start..][..width]) {
                *word = length.to_ne_bytes();
            }
        }
        comm.run(Operation::broadcast(root, &mut self.row[..]))
    }

    fn step(&mut self, k: u32, comm: &Comm<'_>) -> Result<(), GroupError> {
        self.share(k, comm)?;
        let over = from_words(words(&self.row));
        for row in self.lengths.chunks_exact_mut(self.vertices as usize) {
            serial::shorten(row, row[k as usize], &over);
        }
        Ok(())
    }

    /// Compares the rows with the serial run's on rank 0, or some of each rank's with
    /// paths that were found another way.
    fn verify(&mut self, comm: &Comm<'_>) -> Result<Finding, GroupError> {
        if self.fault
            && comm.rank() + 1 == comm.size()
            && let Some(length) = self.lengths.last_mut()
        {
            *length += 1;
        }
        let width = self.vertices as usize;
        if self.serial {
            return self.compare(comm);
        }
        let rows = self.lengths.len() / width;
        let sampled = rows.min(SAMPLED_ROWS);
        let mut fault = None;
        for sample in 1..=sampled {
            // The last row is among them.
            let at = rows * sample / sampled - 1;
            let source = self.own.start as u32 + at as u32;
            let found = &self.lengths[at * width..][..width];
            fault = fault.or_else(|| serial::fault_of(self.vertices, source, found));
        }
        Ok(Finding { checks: sampled as u64, fault })
    }

    fn compare(&mut self, comm: &Comm<'_>) -> Result<Finding, GroupError> {
        let width = self.vertices as usize;
        let digests: Vec<[u8; 8]> =
            self.lengths.chunks_exact(width).map(|row| serial::digest(row).to_ne_bytes()).collect();
        let rows = |rank| part(self.vertices.into(), rank, self.ranks);
        let blocks: Vec<_> = (0..self.ranks)
            .map(rows)
            .map(|rows| lmt_collectives::Block { offset: rows.start * 8, bytes: (rows.end - rows.start) * 8 })
            .collect();
        if comm.rank() != 0 {
            comm.collect(Operation::gatheredv(0, digests.as_flattened()))?;
            return Ok(Finding { checks: 0, fault: None });
        }
        let mut all = vec![[0; 8]; width];
        comm.collect(Operation::gatherv(0, digests.as_flattened(), all.as_flattened_mut(), &blocks))?;
        let known = self.known.get_or_insert_with(|| serial::digests(self.vertices));
        let wrong =
            all.iter().zip(known.iter()).position(|(found, known)| u64::from_ne_bytes(*found) != *known);
        let fault = wrong.map(|row| format!("the paths from vertex {row} are not those of the serial run"));
        Ok(Finding { checks: known.len() as u64, fault })
    }
}

impl Application for Paths {
    fn run(&mut self, comm: &Comm<'_>, watch: Watch<'_>) -> Result<Round, AppError> {
        self.lengths = graph::rows(self.vertices, self.own.clone());
        for k in 0..WARM_UP.min(self.vertices) {
            self.share(k, comm)?;
        }
        comm.barrier()?;
        comm.take_seconds();
        let start = Instant::now();
        for k in 0..self.vertices {
            self.step(k, comm)?;
            watch(k, self.vertices)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let communication_seconds = comm.take_seconds();
        let finding = self.verify(comm)?;
        Ok(Round { seconds, communication_seconds, finding })
    }

    fn checks(&self) -> Option<u64> {
        None
    }

    fn algorithm(&mut self, comm: &Comm<'_>) -> Result<Algorithm, GroupError> {
        comm.algorithm_of(&Operation::broadcast(0, &mut self.row[..]))
    }
}

#[cfg(test)]
#[path = "asp_tests.rs"]
mod tests;
