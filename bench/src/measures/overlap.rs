//! How much of a transfer hides behind a computation (after the overlap
//! benchmarks of open-mx-intranode-pdp2009, section IV, and knem-jpdc2013).

use std::time::{Duration, Instant};

use super::computation::{Computation, compute};
use super::side::{self, Peer, RECEIVE};
use super::{Case, Course, Measure, Sample, placement, usec};
use crate::error::BenchError;
use crate::patterns::link::Link;
use crate::stats::Summary;

/// The name of the figure that is the time of the message alone.
pub(super) const COMM: &str = "comm_usec";
/// Messages by which the computation is calibrated, after two that connect.
const CALIBRATING: usize = 7;
/// A message that takes so many times as long while the sender sleeps needs
/// the sender: it was woken when twice the time was over.
const NEEDS_THE_SENDER: f64 = 1.5;
/// How long a message alone is given, at least, before the sender is woken.
const MIN_PATIENCE: Duration = Duration::from_micros(50);
/// The part of a message's own time for which the sender sleeps on after the
/// computation, which takes about as long as the message.
const PATIENCE_PART: f64 = 0.25;
/// How long the messages of a repetition take together, about.
const TARGET_S: f64 = 0.004;
/// The most iterations of a repetition: each has pauses around it.
const MAX_ITERATIONS: f64 = 16.0;

/// The state between repetitions.
pub(super) struct Overlap {
    computation: Option<Computation>,
    /// What was found for each case of the size at hand.
    found: Vec<(Case, Calibration)>,
}

/// What the warm-up of a case has found.
#[derive(Clone, Copy, Debug)]
struct Calibration {
    /// What the other rank does during a message without a computation.
    peer: Peer,
    /// The seconds of the message alone.
    alone_s: f64,
    /// Rounds of the computation.
    rounds: u64,
}

impl Overlap {
    pub(super) fn new(rank: u32) -> Self {
        Self { computation: (rank == 0).then(Computation::calibrate), found: Vec::new() }
    }

    /// How many rounds take so long; 1 on the rank that does not compute.
    fn rounds(&self, seconds: f64) -> u64 {
        self.computation.map_or(1, |computation| computation.rounds(seconds))
    }

    /// Lets the next repetition compute for as long as the fastest message took
    /// in this: the others have waited for a core, which is no time to compute.
    fn adapt(&mut self, case: &Case, seconds: f64) {
        let rounds = self.rounds(seconds);
        if let Some((_, calibration)) = self.found.iter_mut().find(|(of, _)| of == case) {
            calibration.rounds = rounds;
        }
    }

    /// The computation's seconds; on the rank that does not compute, none.
    fn timed_computation(&self, rounds: u64) -> f64 {
        if self.computation.is_none() {
            return 0.0;
        }
        let start = Instant::now();
        compute(rounds);
        start.elapsed().as_secs_f64()
    }

    fn calibration(&self, case: &Case) -> Calibration {
        let found = self.found.iter().find(|(of, _)| of == case);
        found.map_or(Calibration { peer: Peer::Awake, alone_s: 0.0, rounds: 1 }, |(_, calibration)| {
            *calibration
        })
    }
}

/// What the other rank does during the computation: it sleeps until that is
/// over, and for a part of the message's own time more. Woken, it would spin on
/// a core that a thread of the mechanism may be copying on; who does need it
/// loses that part. A send cannot end before the receiver has taken notice of
/// it, so there the receiver waits in its receive.
fn peer(case: &Case, alone_s: f64) -> Peer {
    if case.name != RECEIVE {
        return Peer::Awake;
    }
    Peer::Asleep(Duration::from_secs_f64(PATIENCE_PART * alone_s).max(MIN_PATIENCE))
}

/// The seconds of a message alone.
fn alone<L: Link>(
    course: &mut Course<'_, L>,
    case: &Case,
    bytes: usize,
    peer: Peer,
) -> Result<f64, BenchError> {
    course.with_link(case, bytes, |link, data, doorbell| {
        side::message(link, case, data, doorbell, peer, &mut || Ok(()))
    })
}

/// The median of some messages alone.
fn typical<L: Link>(
    course: &mut Course<'_, L>,
    case: &Case,
    bytes: usize,
    peer: Peer,
) -> Result<f64, BenchError> {
    let mut seconds = Vec::new();
    for _ in 0..CALIBRATING {
        seconds.push(alone(course, case, bytes, peer)?);
    }
    Ok(median(&seconds))
}

fn median(seconds: &[f64]) -> f64 {
    Summary::of(seconds).map_or(0.0, |summary| summary.median)
}

impl<L: Link> Measure<L> for Overlap {
    fn cases(&mut self, course: &mut Course<'_, L>, _: usize) -> Result<Vec<Case>, BenchError> {
        self.found.clear();
        Ok(side::cases(course.links.len()))
    }

    fn warm_up(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
    ) -> Result<Option<u64>, BenchError> {
        for _ in 0..2 {
            alone(course, case, bytes, Peer::Awake)?;
        }
        // Threads that the mechanism has started by now leave this core to the
        // computation, where the other rank has one of its own.
        if let (0, [own, other, ..]) = (course.rank, &course.job.cpus[..])
            && own != other
        {
            placement::move_helpers(*other);
        }
        let mut best = (typical(course, case, bytes, Peer::Awake)?, Peer::Awake);
        if case.name == RECEIVE {
            // A sleeping sender does not take time from its core, which may be
            // half of this one, or the one on which a thread of the mechanism
            // copies; so it sleeps unless the message clearly needs it. Were
            // the slower way taken, what the other rank costs would be called
            // overlapped.
            let asleep = Peer::Asleep(Duration::from_secs_f64(2.0 * best.0).max(MIN_PATIENCE));
            let seconds = typical(course, case, bytes, asleep)?;
            if course.agree(u64::from(seconds < NEEDS_THE_SENDER * best.0))? == 1 {
                best = (seconds, asleep);
            }
        }
        let (seconds, peer) = best;
        self.found.push((case.clone(), Calibration { peer, alone_s: seconds, rounds: self.rounds(seconds) }));
        let fitting = (TARGET_S / seconds.max(1e-9)).clamp(1.0, MAX_ITERATIONS) as u64;
        let iterations = course.job.iterations.unwrap_or(fitting);
        course.agree(iterations).map(Some)
    }

    fn repetition(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
        iterations: u64,
    ) -> Result<Sample, BenchError> {
        let Calibration { peer: peer_alone, alone_s, rounds } = self.calibration(case);
        let (mut comm, mut comp, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..iterations {
            comm.push(alone(course, case, bytes, peer_alone)?);
            comp.push(self.timed_computation(rounds));
            let mut computing = || {
                self.timed_computation(rounds);
                Ok(())
            };
            both.push(course.with_link(case, bytes, |link, data, doorbell| {
                side::message(link, case, data, doorbell, peer(case, alone_s), &mut computing)
            })?);
        }
        // Medians here too: one interruption among the messages alone would
        // be called overlapped.
        self.adapt(case, comm.iter().copied().fold(f64::INFINITY, f64::min));
        let [comm, comp, both] = [comm, comp, both].map(|seconds| median(&seconds));
        Ok(vec![usec(both, 1), usec(comm, 1), usec(comp, 1), overlap(comm, comp, both)])
    }

    fn verify(&mut self, course: &mut Course<'_, L>, case: &Case, bytes: usize) -> Result<u64, BenchError> {
        side::verify(course, case, bytes, peer(case, self.calibration(case).alone_s))
    }
}

/// How much of the shorter one was hidden behind the other: 1 is all, 0 is
/// none, and below that they were in each other's way.
pub(super) fn overlap(comm: f64, comp: f64, both: f64) -> Option<f64> {
    let shorter = comm.min(comp);
    (shorter > 0.0).then(|| (comm + comp - both) / shorter)
}
