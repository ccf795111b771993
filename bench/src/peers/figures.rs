//! The figures that this library sets itself against MPIs: what is asked, what
//! was found, met or not. They are asked of messages in use, as applications have them;
//! what IMB and OSU measure, unmodified ones, is shown beside them.

use serde::Serialize;

use super::result::Row;
use super::show::Scene;
use super::wanted::{Mode, Wanted};
use crate::job::Job;
use crate::memory::Memory;
use crate::patterns::Pattern;
use crate::sizes::{human, parse_sizes};
use crate::stats::{Spread, geometric_mean};

const USUAL: Mode = Mode { in_use: true, off_cache: false };
const OFF_CACHE: Mode = Mode { in_use: true, off_cache: true };

/// What one figure says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Its number.
    pub number: u32,
    /// What is asked.
    pub asked: String,
    /// What was found.
    pub found: String,
    /// Whether that is met; absent where it could not be measured, or is not asked.
    pub met: Option<bool>,
    /// Whether it is only shown, and nothing is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shown_only: bool,
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
    let mut all = vec![one(Pattern::Pingpong, USUAL, ALL), one(Pattern::Pingpong, OFF_CACHE, LARGE)];
    all.push(shared(one(Pattern::Pingpong, USUAL, LARGE)));
    all.push(one(Pattern::Bibw, USUAL, LARGE));
    all.push(Wanted { ranks: 4, ..one(Pattern::Alltoall, USUAL, "64KiB") });
    all.extend(
        [(USUAL, ALL), (OFF_CACHE, LARGE)]
            .map(|(mode, sizes)| one(Pattern::Pingpong, unmodified(mode), sizes)),
    );
    all.push(shared(one(Pattern::Pingpong, unmodified(USUAL), SHARED)));
    all
}

/// The same with messages that are never modified.
const fn unmodified(mode: Mode) -> Mode {
    Mode { in_use: false, ..mode }
}

const ALL: &str = "8..16MiB";
const LARGE: &str = "64KiB..16MiB";
const SHARED: &str = "64KiB..4MiB";

/// The verdicts; `peers` are the names of all who were to be compared with.
pub fn judge(scenes: &[Scene], peers: &[String]) -> Vec<Figure> {
    let found = Found { scenes, peers };
    let mut figures = vec![found.short(), found.middle()];
    figures.extend([USUAL, OFF_CACHE].into_iter().flat_map(|mode| found.large(mode)));
    figures.extend([found.shared(), found.both_ways(), found.shared_limit(), found.all_to_all()]);
    figures.extend([USUAL, OFF_CACHE].map(|mode| found.shown(mode, Memory::Private, (64 << 10, 16 << 20))));
    figures.push(found.shown(USUAL, Memory::Shared, (64 << 10, 4 << 20)));
    figures
}

/// What is judged.
#[derive(Clone, Copy)]
struct Found<'a> {
    scenes: &'a [Scene],
    peers: &'a [String],
}

impl<'a> Found<'a> {
    fn short(self) -> Figure {
        let part = self.part(Pattern::Pingpong, USUAL, Memory::Private, (8, 8));
        let asked = "8 B one way: at most 0.7 of the best peer's time".to_owned();
        part.beside_peers(worst(1, asked, &part.rows, Row::over_peer, 0.7, "of the best peer's time"))
    }

    fn middle(self) -> Figure {
        let part = self.part(Pattern::Pingpong, USUAL, Memory::Private, (16, 32 << 10));
        let asked = "16 B to 32 KiB: no slower than the best peer at any size".to_owned();
        part.beside_peers(worst(2, asked, &part.rows, Row::over_peer, 1.0, "of the best peer's time"))
    }

    /// Three figures of one mode.
    fn large(self, mode: Mode) -> [Figure; 3] {
        let part = self.part(Pattern::Pingpong, mode, Memory::Private, (64 << 10, 16 << 20));
        let name = format!("64 KiB to 16 MiB, in use, {}", cache(mode));
        let least = 1.1;
        let slower = format!("{name}: no slower than the best peer at any size");
        let near = format!("{name}: at least 90 % of the best bare method's speed at every size");
        let fast = format!("{name}: {least} times the best peer's speed in geometric mean");
        [
            part.beside_peers(worst(3, slower, &part.rows, Row::over_peer, 1.0, "of the best peer's time")),
            part.of_sizes(worst(
                3,
                near,
                &part.rows,
                Row::over_limit,
                1.0 / 0.9,
                "of the bare method's time",
            )),
            part.beside_peers(mean(3, fast, &part.rows, least)),
        ]
    }

    fn shared(self) -> Figure {
        let part = self.part(Pattern::Pingpong, USUAL, Memory::Shared, (64 << 10, 4 << 20));
        let least = 1.15;
        let asked = format!(
            "shared buffers, 64 KiB to 4 MiB, in use: {least} times the best peer's speed in geometric mean"
        );
        part.beside_peers(mean(4, asked, &part.rows, least))
    }

    /// The speed with unmodified messages, of which nothing is asked.
    fn shown(self, mode: Mode, buffers: Memory, (least, most): (u64, u64)) -> Figure {
        let part = self.part(Pattern::Pingpong, unmodified(mode), buffers, (least, most));
        let shared = if buffers == Memory::Shared { "shared buffers, " } else { "" };
        let asked = format!(
            "{shared}{} to {}, unmodified (as IMB and OSU measure), {}: the speed by the best peer's",
            human(least),
            human(most),
            cache(mode)
        );
        Figure { met: None, is_shown_only: true, ..part.beside_peers(mean(8, asked, &part.rows, 0.0)) }
    }

    fn both_ways(self) -> Figure {
        let part = self.part(Pattern::Bibw, USUAL, Memory::Private, (64 << 10, 16 << 20));
        let asked =
            "bidirectional bandwidth, 64 KiB to 16 MiB: no slower than the best peer at any size".to_owned();
        part.beside_peers(worst(5, asked, &part.rows, Row::over_peer, 1.0, "of the best peer's time"))
    }

    fn shared_limit(self) -> Figure {
        let part = self.part(Pattern::Pingpong, USUAL, Memory::Shared, (256 << 10, 16 << 20));
        let asked = "shared buffers, from 256 KiB: at least 80 % of both cores' memcpy as a bare ping-pong"
            .to_owned();
        part.of_sizes(worst(6, asked, &part.rows, Row::over_limit, 1.0 / 0.8, "of the bare method's time"))
    }

    fn all_to_all(self) -> Figure {
        let part = self.part(Pattern::Alltoall, USUAL, Memory::Private, (64 << 10, 64 << 10));
        let asked =
            "4 ranks, all-to-all of 64 KiB by send and receive: at most the best peer's time".to_owned();
        part.beside_peers(worst(7, asked, &part.rows, Row::over_peer, 1.0, "of the best peer's time"))
    }

    /// What was measured of these sizes.
    fn part(self, pattern: Pattern, mode: Mode, buffers: Memory, (least, most): (u64, u64)) -> Part<'a> {
        let is_meant = |job: &Job| {
            let of_job = Mode { in_use: job.in_use, off_cache: job.rotation_bytes.is_some() };
            job.pattern == pattern && of_job == mode && job.buffers == buffers
        };
        let meant = self.scenes.iter().filter(|scene| is_meant(&scene.settings));
        let rows = meant.flat_map(|scene| &scene.rows);
        let rows: Vec<&Row> = rows.filter(|row| (least..=most).contains(&row.bytes)).collect();
        let is_wanted = |one: &Wanted| (one.pattern, one.mode, one.buffers) == (pattern, mode, buffers);
        let wanted = wanted().into_iter().filter(is_wanted).flat_map(|one| one.sizes.unwrap_or_default());
        let wanted_sizes = wanted.filter(|bytes| (least..=most).contains(bytes)).count();
        Part { rows, wanted_sizes, peers: self.peers }
    }
}

fn cache(mode: Mode) -> &'static str {
    if mode.off_cache { "off cache" } else { "on cache" }
}

/// The rows that a figure is about, and who and what ought to be in them.
struct Part<'a> {
    rows: Vec<&'a Row>,
    wanted_sizes: usize,
    peers: &'a [String],
}

impl Part<'_> {
    /// The figure, which says too at which sizes it was measured where some are missing.
    fn of_sizes(&self, mut figure: Figure) -> Figure {
        if figure.met.is_some() && self.rows.len() < self.wanted_sizes {
            let sizes = listed(self.rows.iter().map(|row| human(row.bytes)));
            let (there, wanted) = (self.rows.len(), self.wanted_sizes);
            figure.found.push_str(&format!("; measured at {there} of {wanted} sizes: {sizes}"));
        }
        figure
    }

    /// The same of one beside the peers, which says too which of them were left out.
    fn beside_peers(&self, figure: Figure) -> Figure {
        let mut figure = self.of_sizes(figure);
        if figure.met.is_none() {
            return figure;
        }
        for peer in self.peers {
            let without = self.rows.iter().filter(|row| row.contender(peer).is_none());
            let without: Vec<String> = without.map(|row| human(row.bytes)).collect();
            if without.len() == self.rows.len() {
                figure.found.push_str(&format!("; without {peer}, which was left out"));
            } else if !without.is_empty() {
                let sizes = listed(without.into_iter());
                figure.found.push_str(&format!("; without {peer} at {sizes}, where it was left out"));
            }
        }
        figure
    }
}

fn listed(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
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
    Figure { number, asked, found, met: Some(beyond.is_empty()), is_shown_only: false }
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
            Figure { number, asked, found, met: Some(1.0 / mean >= least), is_shown_only: false }
        }
        None => not_measured(number, asked),
    }
}

/// A figure for which something is missing.
pub fn not_measured(number: u32, asked: String) -> Figure {
    Figure { number, asked, found: "not measured".to_owned(), met: None, is_shown_only: false }
}

impl Figure {
    /// In one word.
    pub fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "not met",
            None if self.is_shown_only => "shown",
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
