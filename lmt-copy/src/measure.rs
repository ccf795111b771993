//! Finding out which routine is the fastest here.
//!
//! What is compared is measured in turns, and judged by the ratio to the C
//! library's time of the same turn: so what disturbs one disturbs the other. Each
//! copy is made once before it is timed, so that all begin with the same caches.

use std::time::{Duration, Instant};

use crate::copier::{Alignment, CLASSES, Copier, Distance, bounds};
use crate::routine::Routine;

mod arena;

use arena::Arena;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// How often the routines take turns at each length; [`measure`] has at most three at those of
    /// more than 1 MiB.
    pub turns: u32,
    /// How long one routine's turn takes at least.
    pub turn: Duration,
    /// The longest copy, in bytes; twice as much memory is used.
    pub most_bytes: usize,
}

impl Effort {
    /// All lengths: some seconds, for `lmt tune`.
    pub const FULL: Self = Self { turns: 9, turn: Duration::from_micros(20), most_bytes: 16 << 20 };
}

/// What was measured of one routine in one class.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// Which routine.
    pub routine: Routine,
    /// Who reads the target next.
    pub distance: Distance,
    /// How source and target stand to each other.
    pub alignment: Alignment,
    /// The lengths, in bytes: more than the first, up to the second.
    pub bytes: (usize, usize),
    /// Its time over the C library's, in geometric mean over what was tried.
    pub mean_ratio: f64,
    /// The same where it did worst.
    pub worst_ratio: f64,
}

/// A routine replaces the C library's where it takes at most so much of its time
/// in the mean, and nowhere more than [`WORST_RATIO`]: other places than those
/// tried differ by some percent. Where it is a multiple in the mean, it may be
/// as slow somewhere.
const MEAN_RATIO: f64 = 0.95;
const WORST_RATIO: f64 = 0.97;
const MULTIPLE_RATIO: f64 = 0.5;
/// Longer copies, in bytes, take so long that few of them say the same as many short ones.
const LONG_BYTES: usize = 1 << 20;
const LONG_TURNS: u32 = 3;
/// One call that takes so long is enough for a turn.
const LONG_CALL: Duration = Duration::from_micros(100);
/// From here on copies that nobody reads soon are measured, in bytes: shorter
/// ones leave most of a cache as it is.
const AWAY_FROM_BYTES: usize = 1 << 20;
/// Through so many places those go in turn, as far as there is memory.
const AWAY_ROTATION: usize = 4;

/// Where source and target begin within a page, for each alignment.
const fn offsets(alignment: Alignment) -> [(usize, usize); 3] {
    match alignment {
        // What malloc gives begins 16 bytes behind a multiple of a page.
        Alignment::Same => [(0, 0), (16, 16), (3, 67)],
        Alignment::Aliased => [(3, 5), (0, 16), (8, 48)],
        Alignment::Other => [(16, 0), (5, 3), (0, 100)],
    }
}

/// Measures this machine: all routines that it can run, and the table that
/// follows.
///
/// All of it is measured on this core. What another core reads next gets what was
/// found for this one: a target whose lines that core holds is not measured
/// (`docs/copy.md`).
pub fn measure(effort: Effort) -> (Copier, Vec<Measurement>) {
    let mut copier = Copier::default();
    let mut measurements = Vec::new();
    let mut arena = Arena::new(effort.most_bytes);
    for class in (0..CLASSES).filter(|class| bounds(*class).0 < effort.most_bytes) {
        for alignment in Alignment::ALL {
            let near = [Routine::Portable, Routine::RepMovsb, Routine::Avx2, Routine::Avx512];
            let found = of_class(&mut arena, effort, class, alignment, Distance::Near, &near);
            for distance in Distance::ALL {
                choose(&mut copier, class, distance, &found);
            }
            measurements.extend(found);
            if bounds(class).0 >= AWAY_FROM_BYTES {
                let away = [Routine::Avx2, Routine::Avx512, Routine::NonTemporal];
                let found = of_class(&mut arena, effort, class, alignment, Distance::Away, &away);
                copier.set(Distance::Away, alignment, class, Routine::Libc);
                choose(&mut copier, class, Distance::Away, &found);
                measurements.extend(found);
            }
        }
    }
    (copier, measurements)
}

/// Sets the best of what is better than the C library's, if there is one.
fn choose(copier: &mut Copier, class: usize, distance: Distance, found: &[Measurement]) {
    let most = |m: &Measurement| if m.mean_ratio <= MULTIPLE_RATIO { 1.0 } else { WORST_RATIO };
    let better = found.iter().filter(|m| m.mean_ratio <= MEAN_RATIO && m.worst_ratio <= most(m));
    if let Some(best) = better.min_by(|one, other| one.mean_ratio.total_cmp(&other.mean_ratio)) {
        copier.set(distance, best.alignment, class, best.routine);
    }
}

/// The ratios of these routines in one class.
fn of_class(
    arena: &mut Arena,
    effort: Effort,
    class: usize,
    alignment: Alignment,
    distance: Distance,
    routines: &[Routine],
) -> Vec<Measurement> {
    let routines: Vec<Routine> = routines.iter().copied().filter(|routine| routine.is_available()).collect();
    let (above, up_to) = bounds(class);
    // What a longer class has beside is as what it begins with.
    let up_to_measured = up_to.min(2 * above).min(effort.most_bytes);
    let lengths = [above + above / 16, up_to_measured];
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); routines.len()];
    for bytes in lengths.into_iter().filter(|bytes| *bytes <= effort.most_bytes) {
        let turns = if bytes > LONG_BYTES { effort.turns.min(LONG_TURNS) } else { effort.turns };
        let effort = Effort { turns, ..effort };
        for (from_at, to_at) in offsets(alignment) {
            let found = arena.ratios(effort, &routines, bytes, (from_at, to_at), distance);
            ratios.iter_mut().zip(found).for_each(|(all, ratio)| all.push(ratio));
        }
    }
    let of = |(routine, ratios): (Routine, Vec<f64>)| Measurement {
        routine,
        distance,
        alignment,
        bytes: (above, up_to),
        mean_ratio: (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp(),
        worst_ratio: ratios.iter().copied().fold(0.0, f64::max),
    };
    routines.into_iter().zip(ratios).map(of).collect()
}

/// The time of `ours` over that of `theirs`: the median over turns in which they
/// were timed one right after the other, ours twice between theirs.
///
/// ```
/// use lmt_copy::{Effort, paired_ratio};
/// let effort = Effort { turns: 3, ..Effort::FULL };
/// let ratio = paired_ratio(effort, || (), || std::thread::sleep(effort.turn));
/// assert!(ratio < 1.0);
/// ```
pub fn paired_ratio(effort: Effort, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> f64 {
    let mut turn = |_| {
        let begin_ns = time_ns(effort.turn, &mut theirs);
        let ours_ns = time_ns(effort.turn, &mut ours) + time_ns(effort.turn, &mut ours);
        ours_ns / (begin_ns + time_ns(effort.turn, &mut theirs))
    };
    median((0..effort.turns).map(&mut turn).collect())
}

/// The time of one call, as the mean of calls for at least so long, and of two
/// calls at least, unless one takes long.
///
/// Not inlined: so what is compared stands in loops of one shape.
#[inline(never)]
fn time_ns(least: Duration, call: &mut impl FnMut()) -> f64 {
    let (mut begin, mut calls) = (None, 0u32);
    // So many at once that reading the clock does not count.
    let mut batch = 1;
    loop {
        // The one place that it is called from: so it is inlined, however long.
        for _ in 0..batch {
            call();
        }
        let Some(begin) = begin else {
            begin = Some(Instant::now());
            continue;
        };
        calls += batch;
        let elapsed = Instant::elapsed(&begin);
        if elapsed >= least && (calls > 1 || elapsed >= LONG_CALL) {
            return elapsed.as_nanos() as f64 / f64::from(calls);
        }
        batch = calls.min(1024);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
