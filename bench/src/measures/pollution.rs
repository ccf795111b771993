//! What a transfer does to the caches: how much longer it takes to read a
//! working set again after one. knem-jpdc2013 counts cache misses with the
//! processor's counters; the time says the same where there are none.

use std::time::{Duration, Instant};

use super::counters::MissCounter;
use super::side::{self, Peer};
use super::working_set::WorkingSet;
use super::{Case, Course, Measure, Sample, usec};
use crate::error::BenchError;
use crate::patterns::link::Link;
use crate::stats::Summary;

/// Messages that show how long the control has to let pass.
const TRIALS: usize = 5;
/// How long the readings of a repetition take together, about.
const TARGET_S: f64 = 0.01;
/// The most iterations of a repetition.
const MAX_ITERATIONS: f64 = 64.0;

/// The state between repetitions.
pub(super) struct Pollution {
    /// What rank 0 reads again.
    set: Option<WorkingSet>,
    counter: Option<MissCounter>,
    /// How long a message of each case of the size at hand takes.
    times: Vec<(Case, Duration)>,
    /// Which of the two is measured first, in turns.
    control_first: bool,
}

/// One reading of the working set.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    seconds: f64,
    misses: Option<u64>,
}

impl Pollution {
    pub(super) fn new<L: Link>(course: &mut Course<'_, L>) -> Result<Self, BenchError> {
        let bytes = usize::try_from(course.job.working_set_bytes.unwrap_or(0)).unwrap_or(0);
        let short = || {
            BenchError::Failure(format!(
                "there is no memory for a working set of {bytes} bytes; choose a smaller one by --working-set"
            ))
        };
        let set = if course.rank == 0 { Some(WorkingSet::new(bytes).ok_or_else(short)?) } else { None };
        let mut counter = None;
        if course.rank == 0 {
            match MissCounter::start() {
                Ok(started) => counter = Some(started),
                Err(reason) => course.note(reason)?,
            }
        }
        Ok(Self { set, counter, times: Vec::new(), control_first: false })
    }

    fn time(&self, case: &Case) -> Duration {
        self.times.iter().find(|(of, _)| of == case).map_or(Duration::ZERO, |(_, time)| *time)
    }

    /// Reads the working set; on rank 1 nothing.
    fn read(&mut self) -> Reading {
        let Some(set) = &self.set else { return Reading::default() };
        // Only the difference of two counts that were read is a count.
        let before = self.counter.as_mut().and_then(|counter| counter.misses().ok());
        let start = Instant::now();
        set.read();
        let seconds = start.elapsed().as_secs_f64();
        let after = self.counter.as_mut().and_then(|counter| counter.misses().ok());
        let misses = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        Reading { seconds, misses }
    }

    /// Reads the working set, lets the message or as much time pass, and reads
    /// it again; the second reading.
    fn shared_state<L: Link>(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
        with_message: bool,
    ) -> Result<Reading, BenchError> {
        self.read();
        if with_message {
            transfer(course, case, bytes)?;
        } else {
            let time = self.time(case);
            course.with_link(case, 0, |_, _, doorbell| doorbell.meet())?;
            if course.rank == 0 {
                // What the message waits for before it begins passes here too.
                side::pause(side::FALLING_ASLEEP + time);
            }
        }
        Ok(self.read())
    }
}

/// A message between two ranks that wait for it; its seconds.
fn transfer<L: Link>(course: &mut Course<'_, L>, case: &Case, bytes: usize) -> Result<f64, BenchError> {
    course.with_link(case, bytes, |link, data, doorbell| {
        side::message(link, case, data, doorbell, Peer::Awake, &mut || Ok(()))
    })
}

impl<L: Link> Measure<L> for Pollution {
    fn cases(&mut self, course: &mut Course<'_, L>, _: usize) -> Result<Vec<Case>, BenchError> {
        self.times.clear();
        Ok(side::cases(course.links.len()))
    }

    fn warm_up(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
    ) -> Result<Option<u64>, BenchError> {
        let mut seconds = Vec::new();
        for _ in 0..TRIALS {
            seconds.push(transfer(course, case, bytes)?);
        }
        let median = Summary::of(&seconds).map_or(0.0, |summary| summary.median);
        self.times.push((case.clone(), Duration::from_secs_f64(median)));
        let reading = self.read().seconds.min(self.read().seconds);
        let fitting = (TARGET_S / (4.0 * reading).max(1e-9)).clamp(1.0, MAX_ITERATIONS) as u64;
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
        let (mut after, mut control) = (Vec::new(), Vec::new());
        for _ in 0..iterations {
            // Whatever the first of two leaves behind must not always meet the
            // same one.
            self.control_first = !self.control_first;
            for with_message in [!self.control_first, self.control_first] {
                let reading = self.shared_state(course, case, bytes, with_message)?;
                if with_message { after.push(reading) } else { control.push(reading) }
            }
        }
        let seconds = |readings: &[Reading]| readings.iter().map(|reading| reading.seconds).sum::<f64>();
        let misses = |readings: &[Reading]| {
            let counts: Option<Vec<u64>> = readings.iter().map(|reading| reading.misses).collect();
            counts.map(|counts| counts.iter().sum::<u64>() as f64 / iterations.max(1) as f64)
        };
        let (message_s, control_s) = (seconds(&after), seconds(&control));
        Ok(vec![
            usec(message_s, iterations),
            usec(control_s, iterations),
            (control_s > 0.0).then(|| message_s / control_s),
            misses(&after),
            misses(&control),
        ])
    }

    fn verify(&mut self, course: &mut Course<'_, L>, case: &Case, bytes: usize) -> Result<u64, BenchError> {
        side::verify(course, case, bytes, Peer::Awake)
    }
}
