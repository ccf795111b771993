//! Shortest paths without other ranks, and what parallel ones are compared with.

use super::graph::{NO_PATH, rows};

/// Shortens the paths of a row by those over a vertex: `to_it` long to the vertex, and
/// `over` from there on.
pub fn shorten(row: &mut [u32], to_it: u32, over: &[u32]) {
    for (length, from_it) in row.iter_mut().zip(over) {
        // Both are at most half of what fits.
        *length = (*length).min(to_it + from_it);
    }
}

/// All shortest paths, row by row (Floyd, Warshall).
pub fn all_paths(vertices: u32) -> Vec<u32> {
    let width = vertices as usize;
    let mut lengths = rows(vertices, 0..vertices.into());
    for k in 0..width {
        let over = lengths[k * width..][..width].to_vec();
        for row in lengths.chunks_exact_mut(width) {
            shorten(row, row[k], &over);
        }
    }
    lengths
}

/// Of each row of a serial run.
pub fn digests(vertices: u32) -> Vec<u64> {
    all_paths(vertices).chunks_exact(vertices as usize).map(digest).collect()
}

/// What tells a row from others, with high probability (FNV-1a, over numbers).
pub fn digest(row: &[u32]) -> u64 {
    row.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &length| {
        (hash ^ u64::from(length)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The shortest paths from one vertex (Dijkstra: Numerische Mathematik 1, 1959, page
/// 269), whose edges are made as they are needed.
pub fn paths_from(vertices: u32, source: u32) -> Vec<u32> {
    let mut lengths = vec![NO_PATH; vertices as usize];
    let mut is_final = vec![false; vertices as usize];
    lengths[source as usize] = 0;
    loop {
        let open = (0..vertices as usize).filter(|&vertex| !is_final[vertex] && lengths[vertex] < NO_PATH);
        let Some(nearest) = open.min_by_key(|&vertex| lengths[vertex]) else { return lengths };
        is_final[nearest] = true;
        let to_it = lengths[nearest];
        shorten(&mut lengths, to_it, &rows(vertices, nearest as u64..nearest as u64 + 1));
    }
}

/// The first path of a row that is not the shortest, in a sentence.
pub fn fault_of(vertices: u32, source: u32, found: &[u32]) -> Option<String> {
    let shortest = paths_from(vertices, source);
    let at = found.iter().zip(&shortest).position(|(found, shortest)| found != shortest)?;
    Some(format!("the path from vertex {source} to {at} is {} long instead of {}", found[at], shortest[at]))
}

#[cfg(test)]
#[path = "serial_tests.rs"]
mod tests;
