//! The figures that this library sets itself against MPIs: what is asked, what
//! was found, met or not.

use serde::Serialize;

use super::jobs::{MODES, Mode, Wanted};
use super::result::Row;
use super::show::Scene;
use crate::job::Job;
use crate::memory::Memory;
use crate::patterns::Pattern;
use crate::sizes::{human, parse_sizes};
use crate::stats::{Spread, geometric_mean};

const USUAL: Mode = MODES[0];
const TOUCHED: Mode = MODES[1];

/// What one figure says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Its number.
    pub number: u32,
    /// What is asked.
    pub asked: String,
    /// What was found.
    pub found: String,
    /// Whether that is met; absent where it could not be measured.
    pub met: Option<bool>,
}

/// What has to be measured for all of them.
pub fn wanted() -> Vec<Wanted> {
    let one = |pattern, mode, sizes: &str| Wanted {
        pattern,
        mode,
        buffers: Memory::Private,
        ranks: 2,
        // The lists are fixed and well formed; a test reads them all.
        sizes: Some(parse_sizes(sizes).unwrap_or_default()),
    };
    let shared = |wanted| Wanted { buffers: Memory::Shared, ..wanted };
    let mut all = vec![one(Pattern::Pingpong, USUAL, "8..16MiB")];
    all.extend(MODES[1..].iter().map(|&mode| one(Pattern::Pingpong, mode, LARGE)));
    all.push(shared(one(Pattern::Pingpong, USUAL, LARGE)));
    all.push(shared(one(Pattern::Pingpong, TOUCHED, SHARED)));
    all.push(one(Pattern::Bibw, USUAL, LARGE));
    all.push(Wanted { ranks: 4, ..one(Pattern::Alltoall, USUAL, "64KiB") });
    all
}

const LARGE: &str = "64KiB..16MiB";
const SHARED: &str = "64KiB..4MiB";

/// The verdicts.
pub fn judge(scenes: &[Scene]) -> Vec<Figure> {
    let mut figures = vec![short(scenes), middle(scenes)];
    figures.extend(MODES.iter().flat_map(|&mode| large(scenes, mode)));
    figures.extend([(USUAL, 2.5), (TOUCHED, 1.15)].map(|(mode, least)| shared(scenes, mode, least)));
    figures.extend([both_ways(scenes), shared_limit(scenes), all_to_all(scenes)]);
    figures
}

fn short(scenes: &[Scene]) -> Figure {
    let rows = rows(scenes, Pattern::Pingpong, USUAL, Memory::Private, (8, 8));
    let asked = "8 B one way: at most 0.7 of the best peer's time".to_owned();
    worst(1, asked, &rows, Row::over_peer, 0.7, "of the best peer's time")
}

fn middle(scenes: &[Scene]) -> Figure {
    let rows = rows(scenes, Pattern::Pingpong, USUAL, Memory::Private, (16, 32 << 10));
    let asked = "16 B to 32 KiB: no slower than the best peer at any size".to_owned();
    worst(2, asked, &rows, Row::over_peer, 1.0, "of the best peer's time")
}

/// Three figures of one mode.
fn large(scenes: &[Scene], mode: Mode) -> [Figure; 3] {
    let rows = rows(scenes, Pattern::Pingpong, mode, Memory::Private, (64 << 10, 16 << 20));
    let name = format!(
        "64 KiB to 16 MiB, {}, {}",
        if mode.touch { "touched" } else { "untouched" },
        if mode.off_cache { "off cache" } else { "on cache" }
    );
    let least = if mode.touch { 1.1 } else { 1.5 };
    let slower = format!("{name}: no slower than the best peer at any size");
    let near = format!("{name}: at least 90 % of the best bare method's speed at every size");
    let fast = format!("{name}: {least} times the best peer's speed in geometric mean");
    [
        worst(3, slower, &rows, Row::over_peer, 1.0, "of the best peer's time"),
        worst(3, near, &rows, Row::over_limit, 1.0 / 0.9, "of the bare method's time"),
        mean(3, fast, &rows, least),
    ]
}

fn shared(scenes: &[Scene], mode: Mode, least: f64) -> Figure {
    let rows = rows(scenes, Pattern::Pingpong, mode, Memory::Shared, (64 << 10, 4 << 20));
    let touch = if mode.touch { "touched" } else { "untouched" };
    let asked = format!(
        "shared buffers, 64 KiB to 4 MiB, {touch}: {least} times the best peer's speed in geometric mean"
    );
    mean(4, asked, &rows, least)
}

fn both_ways(scenes: &[Scene]) -> Figure {
    let rows = rows(scenes, Pattern::Bibw, USUAL, Memory::Private, (64 << 10, 16 << 20));
    let asked =
        "bidirectional bandwidth, 64 KiB to 16 MiB: no slower than the best peer at any size".to_owned();
    worst(5, asked, &rows, Row::over_peer, 1.0, "of the best peer's time")
}

fn shared_limit(scenes: &[Scene]) -> Figure {
    let rows = rows(scenes, Pattern::Pingpong, USUAL, Memory::Shared, (256 << 10, 16 << 20));
    let asked =
        "shared buffers, from 256 KiB: at least 80 % of both cores' memcpy as a bare ping-pong".to_owned();
    worst(6, asked, &rows, Row::over_limit, 1.0 / 0.8, "of the bare method's time")
}

fn all_to_all(scenes: &[Scene]) -> Figure {
    let rows = rows(scenes, Pattern::Alltoall, USUAL, Memory::Private, (64 << 10, 64 << 10));
    let asked = "4 ranks, all-to-all of 64 KiB by send and receive: at most the best peer's time".to_owned();
    worst(7, asked, &rows, Row::over_peer, 1.0, "of the best peer's time")
}

fn rows(
    scenes: &[Scene],
    pattern: Pattern,
    mode: Mode,
    buffers: Memory,
    (least, most): (u64, u64),
) -> Vec<&Row> {
    let is_meant = |job: &Job| {
        let of_job = Mode { touch: job.touch, off_cache: job.rotation_bytes.is_some() };
        job.pattern == pattern && of_job == mode && job.buffers == buffers
    };
    let meant = scenes.iter().filter(|scene| is_meant(&scene.settings));
    meant.flat_map(|scene| &scene.rows).filter(|row| (least..=most).contains(&row.bytes)).collect()
}

/// A figure that every size has to meet: our time by another's, at most so much.
pub fn worst(
    number: u32,
    asked: String,
    rows: &[&Row],
    ratio: impl Fn(&Row) -> Option<Spread>,
    most: f64,
    of: &str,
) -> Figure {
    let measured: Option<Vec<(u64, Spread)>> =
        rows.iter().map(|row| ratio(row).map(|ratio| (row.bytes, ratio))).collect();
    let Some(measured) = measured.filter(|measured| !measured.is_empty()) else {
        return not_measured(number, asked);
    };
    let beyond: Vec<String> = measured
        .iter()
        .filter(|(_, ratio)| ratio.median > most)
        .map(|(bytes, ratio)| {
            // Where the quartiles lie on both sides, another run may say otherwise.
            let near = if ratio.lower <= most { " (within its spread)" } else { "" };
            format!("{} {:.3}{near}", human(*bytes), ratio.median)
        })
        .collect();
    let found =
        match (&beyond[..], measured.iter().max_by(|one, other| one.1.median.total_cmp(&other.1.median))) {
            ([], Some((bytes, worst))) => {
                format!(
                    "at most {:.3} {of} ({}, quartiles {:.3}..{:.3})",
                    worst.median,
                    human(*bytes),
                    worst.lower,
                    worst.upper
                )
            }
            _ => {
                format!("{} of {} sizes are beyond: {} {of}", beyond.len(), measured.len(), beyond.join(", "))
            }
        };
    Figure { number, asked, found, met: Some(beyond.is_empty()) }
}

/// A figure on the geometric mean of the speed against the best peer's.
fn mean(number: u32, asked: String, rows: &[&Row], least: f64) -> Figure {
    let ratios: Option<Vec<f64>> = rows.iter().map(|row| row.over_peer().map(|over| over.median)).collect();
    match ratios.and_then(|ratios| geometric_mean(&ratios)) {
        Some(mean) => {
            let limits: Option<Vec<f64>> =
                rows.iter().map(|row| row.limit_over_peer.map(|over| over.median)).collect();
            let limit = limits.and_then(|limits| geometric_mean(&limits));
            let limit = limit.map_or_else(String::new, |limit| {
                format!("; the bare methods reach {:.2} times", 1.0 / limit)
            });
            let found = format!("{:.2} times over {} sizes{limit}", 1.0 / mean, rows.len());
            Figure { number, asked, found, met: Some(1.0 / mean >= least) }
        }
        None => not_measured(number, asked),
    }
}

/// A figure for which something is missing.
pub fn not_measured(number: u32, asked: String) -> Figure {
    Figure { number, asked, found: "not measured".to_owned(), met: None }
}

impl Figure {
    /// In one word.
    pub fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "not met",
            None => "unknown",
        }
    }
}

/// The figures as lines.
pub fn text(figures: &[Figure]) -> String {
    let line = |figure: &Figure| {
        format!("{}. {:<8} {}\n            {}\n", figure.number, figure.verdict(), figure.asked, figure.found)
    };
    figures.iter().map(line).collect()
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
