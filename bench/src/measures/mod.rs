//! Benchmarks that measure more than the time of a message: what of it hides
//! behind a computation, what it does to the caches, what declared memory
//! costs. Each defines its cases and how one of them is measured once; here
//! the cases take turns, and become rows.

pub mod computation;
pub mod counters;
pub mod doorbell;
mod overlap;
mod placement;
mod pollution;
mod regions;
mod side;
pub mod working_set;

pub use doorbell::Doorbell;

use crate::error::BenchError;
use crate::job::{Details, Event, Figure, Job, Row};
use crate::memory::Pages;
use crate::patterns::Pattern;
use crate::patterns::link::{Link, LinkError};
use crate::runner::link_failed;
use crate::stats::{Summary, mb_per_s};
use overlap::Overlap;
use pollution::Pollution;
use regions::Regions;

/// What is measured of one mechanism at one size: they take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    /// Which link.
    link: usize,
    /// Which of the pattern's cases, as rows say it.
    name: &'static str,
    /// Regions declared at once, where there are any.
    regions: Option<usize>,
}

/// One value for each of the pattern's figures, in their order; absent where
/// it cannot be measured.
type Sample = Vec<Option<f64>>;

/// Two ranks that measure together: both do every step, and rank 0's sample
/// counts.
struct Course<'a, L> {
    job: &'a Job,
    rank: u32,
    links: &'a mut [L],
    doorbell: Doorbell,
    tell: &'a mut dyn FnMut(Event) -> Result<(), BenchError>,
    /// The messages' memory, of the largest size; every page touched.
    buffer: Pages,
}

/// One benchmark.
trait Measure<L: Link> {
    /// The cases that there are at one size; the same on both ranks.
    fn cases(&mut self, course: &mut Course<'_, L>, bytes: usize) -> Result<Vec<Case>, BenchError>;

    /// Gets ready for a case, and says how many iterations a repetition has;
    /// none when the case is impossible, which rank 0 has noted then.
    fn warm_up(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
    ) -> Result<Option<u64>, BenchError>;

    /// Measures a case once.
    fn repetition(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
        iterations: u64,
    ) -> Result<Sample, BenchError>;

    /// Messages of a case whose every byte was checked.
    fn verify(&mut self, course: &mut Course<'_, L>, case: &Case, bytes: usize) -> Result<u64, BenchError>;
}

/// What a case achieved at one size.
struct Score {
    case: Case,
    iterations: u64,
    samples: Vec<Sample>,
    verified: u64,
}

/// Measures every size; rank 0 tells the rows as they come.
///
/// # Errors
/// What a link or the kernel says, or the first byte that arrived wrong.
pub fn run<L: Link>(
    job: &Job,
    rank: u32,
    links: &mut [L],
    doorbell: Doorbell,
    tell: &mut dyn FnMut(Event) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let bytes = usize::try_from(job.buffer_bytes() / 2)
        .map_err(|_| BenchError::Failure("the buffers are larger than this machine's memory".into()))?;
    let mut course = Course { job, rank, links, doorbell, tell, buffer: Pages::filled(bytes, 1)? };
    match job.pattern {
        Pattern::Overlap => course.run(&mut Overlap::new(rank)),
        Pattern::Pollution => {
            let mut pollution = Pollution::new(&mut course)?;
            course.run(&mut pollution)
        }
        Pattern::Regions => course.run(&mut Regions::default()),
        _ => Err(BenchError::Failure("this pattern has no figures of its own".into())),
    }
}

impl<L: Link> Course<'_, L> {
    fn run(&mut self, measure: &mut impl Measure<L>) -> Result<(), BenchError> {
        let total = self.job.sizes.len() as u64 * u64::from(self.job.repetitions);
        let mut done = 0;
        for &size in &self.job.sizes {
            // Every size fits the buffer, whose length was converted.
            let bytes = usize::try_from(size).unwrap_or(usize::MAX);
            let mut scores = Vec::new();
            for case in measure.cases(self, bytes)? {
                if let Some(iterations) = measure.warm_up(self, &case, bytes)? {
                    scores.push(Score { case, iterations, samples: Vec::new(), verified: 0 });
                }
            }
            for _ in 0..self.job.repetitions {
                for score in &mut scores {
                    let sample = measure.repetition(self, &score.case, bytes, score.iterations)?;
                    score.samples.push(sample);
                }
                done += 1;
                self.tell(Event::Progress { done, total })?;
            }
            for score in scores.iter_mut().filter(|_| self.job.verify) {
                score.verified = measure.verify(self, &score.case, bytes)?;
            }
            let placement = self.placement()?;
            let rows = scores.iter().filter_map(|score| self.row(score, size, &placement)).collect();
            self.tell(Event::Rows(rows))?;
        }
        Ok(())
    }

    fn tell(&mut self, event: Event) -> Result<(), BenchError> {
        if self.rank == 0 { (self.tell)(event) } else { Ok(()) }
    }

    /// One line on standard error, from rank 0.
    fn note(&mut self, note: String) -> Result<(), BenchError> {
        self.tell(Event::Note(note))
    }

    /// What rank 0 says, on both ranks.
    fn agree(&mut self, number: u64) -> Result<u64, BenchError> {
        self.doorbell.share(self.rank, number).map_err(between_ranks)
    }

    /// Where both ranks are; on rank 0.
    fn placement(&mut self) -> Result<String, BenchError> {
        let own = placement::describe(self.rank);
        if self.rank != 0 {
            self.doorbell.tell(own.as_bytes()).map_err(between_ranks)?;
            return Ok(own);
        }
        let theirs = self.doorbell.hear().map_err(between_ranks)?;
        Ok(format!("{own}; {}", String::from_utf8_lossy(&theirs)))
    }

    /// Runs `body` with the link of a case, the messages' memory and the bell.
    fn with_link<T>(
        &mut self,
        case: &Case,
        bytes: usize,
        body: impl FnOnce(&mut L, &mut [u8], &mut Doorbell) -> Result<T, LinkError>,
    ) -> Result<T, BenchError> {
        let result = body(&mut self.links[case.link], &mut self.buffer[..bytes], &mut self.doorbell);
        result.map_err(link_failed(self.job, case.link))
    }

    fn row(&self, score: &Score, bytes: u64, placement: &str) -> Option<Row> {
        let definitions = self.job.pattern.figures();
        let column = |at: usize| -> Option<Summary> {
            let values: Vec<f64> = score.samples.iter().filter_map(|sample| *sample.get(at)?).collect();
            Summary::of(&values)
        };
        let figures = definitions.iter().enumerate().map(|(at, definition)| {
            let summary = column(at);
            Figure {
                name: definition.name.to_owned(),
                median: summary.map(|summary| summary.median),
                min: summary.map(|summary| summary.min),
                max: summary.map(|summary| summary.max),
            }
        });
        let figures: Vec<Figure> = figures.collect();
        let time = column(0)?;
        let message = figures.iter().find(|figure| figure.name == overlap::COMM).and_then(|comm| comm.median);
        Some(Row {
            pattern: self.job.pattern.name().to_owned(),
            mechanism: self.job.mechanisms[score.case.link].clone(),
            ranks: self.job.ranks,
            bytes,
            iterations: score.iterations,
            usec_median: time.median,
            usec_min: time.min,
            usec_max: time.max,
            mb_per_s: message.map(|usec| mb_per_s(bytes as f64, usec)),
            repetitions: self.job.repetitions,
            verified_messages: score.verified,
            sender_percent: None,
            sender_bytes: None,
            receiver_bytes: None,
            usec_quartiles: None,
            paths: Vec::new(),
            ratios: Vec::new(),
            details: Some(Details {
                case: score.case.name.to_owned(),
                regions: score.case.regions.map(|regions| regions as u64),
                placement: placement.to_owned(),
                figures,
            }),
        })
    }
}

fn between_ranks(error: LinkError) -> BenchError {
    BenchError::Failure(error.to_string())
}

/// Microseconds of one of so many.
fn usec(seconds: f64, number: u64) -> Option<f64> {
    Some(seconds * 1e6 / number.max(1) as f64)
}

#[cfg(test)]
#[path = "measures_tests.rs"]
mod tests;
