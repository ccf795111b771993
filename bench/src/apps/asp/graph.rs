//! The graph: directed, with random edges of random lengths, the same for any number
//! of ranks.

use std::ops::Range;

use crate::apps::random::{MODULUS_LOG2, Randoms};

/// Between vertices that no path joins. Twice that is still a number.
pub const NO_PATH: u32 = u32::MAX / 2;
/// One in so many pairs of vertices has an edge.
const EDGE_EVERY: u64 = 8;
/// Edges are as long as that at most.
const LONGEST: u64 = 1000;

/// The edges from these vertices: a row for each, in which the length of the edge to
/// each vertex stands.
pub fn rows(vertices: u32, wanted: Range<u64>) -> Vec<u32> {
    let width = u64::from(vertices);
    let mut randoms = Randoms::behind(wanted.start * width);
    let pairs = wanted.flat_map(|from| (0..width).map(move |to| (from, to)));
    pairs
        .map(|(from, to)| {
            // The upper bits: the lower ones of such numbers have short periods.
            let number = (randoms.draw() * (EDGE_EVERY * LONGEST)) >> MODULUS_LOG2;
            match number {
                _ if from == to => 0,
                number if number < LONGEST => number as u32 + 1,
                _ => NO_PATH,
            }
        })
        .collect()
}
