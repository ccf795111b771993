//! A benchmark as one rank sees it: mechanisms and bare methods take turns,
//! repetition by repetition, so that what slows the machine for a while slows
//! all of them alike.

use crate::error::BenchError;
use crate::job::{Event, Job, LIMITS, PathCount, Ratio, Row};
use crate::limits::{self, Method, Pair};
use crate::memory::{Held, Memory};
use crate::patterns::Pattern;
use crate::patterns::arena::Arena;
use crate::patterns::guarded::{Against, Guarded};
use crate::patterns::handling::{Handling, InUse, Unmodified, Verified};
use crate::patterns::link::{Link, LinkError, ReceivedBytes};
use crate::patterns::round::{Round, share, sum};
use crate::stats::{Spread, Summary, mb_per_s, median_ratio};
use crate::warm_up::{Next, WarmUp};

/// Bytes that a verifying pass sends at most, if one iteration allows it.
const VERIFIED_BYTES: u64 = 32 << 20;
/// Iterations of a verifying pass at most.
const VERIFIED_ITERATIONS: u64 = 200;

/// One that takes its turn.
pub(crate) enum Turn {
    /// The link with this index.
    Link(usize),
    /// A bare method.
    Bare(&'static Method),
}

/// What one of them achieved at one size.
struct Score {
    turn: Turn,
    iterations: u64,
    usec: Vec<f64>,
    verified_messages: u64,
    /// What has come in the repetitions, where both ends copied.
    received: Option<ReceivedBytes>,
    /// What the messages of the repetitions went by.
    paths: Vec<PathCount>,
}

impl Score {
    fn new(turn: Turn) -> Self {
        let (usec, paths) = (Vec::new(), Vec::new());
        Self { turn, iterations: 0, usec, verified_messages: 0, received: None, paths }
    }
}

/// The two buffers of this rank in one kind of memory, and how far rotation has come in them.
struct Buffers {
    memory: Memory,
    outgoing: Held,
    incoming: Held,
    outgoing_at: usize,
    incoming_at: usize,
}

/// One rank at work.
pub struct Runner<'a, L> {
    job: &'a Job,
    links: &'a mut [L],
    pair: Option<&'a mut Pair>,
    tell: &'a mut dyn FnMut(Event) -> Result<(), BenchError>,
    rank: u32,
    buffers: Vec<Buffers>,
    done: u64,
}

impl<'a, L: Link> Runner<'a, L> {
    /// Gets the buffers of `rank` ready, every page touched.
    ///
    /// `links` has one entry for each mechanism of the job; `pair` is there on
    /// ranks 0 and 1 if the job wants the machine's limits.
    pub fn new(
        job: &'a Job,
        rank: u32,
        links: &'a mut [L],
        pair: Option<&'a mut Pair>,
        tell: &'a mut dyn FnMut(Event) -> Result<(), BenchError>,
    ) -> Result<Self, BenchError> {
        let bytes = usize::try_from(job.buffer_bytes() / 2)
            .map_err(|_| BenchError::Failure("the buffers are larger than this machine's memory".into()))?;
        // No rank's messages say the same as another's.
        let seed = (2 * rank) as u8;
        let buffers = |memory: Memory| {
            let (outgoing, incoming) = (memory.mixed(bytes, seed)?, memory.mixed(bytes, seed + 1)?);
            Ok(Buffers { memory, outgoing, incoming, outgoing_at: 0, incoming_at: 0 })
        };
        let buffers: Result<_, BenchError> = job.kinds_of_memory().into_iter().map(buffers).collect();
        Ok(Self { job, links, pair, tell, rank, buffers: buffers?, done: 0 })
    }

    /// Measures every size; rank 0 tells the rows as they come.
    ///
    /// # Errors
    /// What a link or the kernel says, or the first byte that arrived wrong.
    pub fn run(mut self) -> Result<(), BenchError> {
        for &bytes in &self.job.sizes {
            let mut scores = self.turns(bytes);
            for score in &mut scores {
                score.iterations = self.choose_iterations(&score.turn, bytes)?;
            }
            let total = self.job.sizes.len() as u64 * u64::from(self.job.repetitions);
            let before: Vec<_> = self.links.iter().map(|link| (link.received(), link.ways())).collect();
            for _ in 0..self.job.repetitions {
                for score in &mut scores {
                    let seconds = self.repetition(&score.turn, bytes, score.iterations)?;
                    score.usec.push(self.usec(&score.turn, seconds, score.iterations, bytes));
                }
                self.done += 1;
                self.tell(Event::Progress { done: self.done, total })?;
            }
            for score in &mut scores {
                if let Turn::Link(index) = score.turn {
                    let (received, ways) = &before[index];
                    score.received = self.links[index].received().both_since(*received);
                    // The ranks also meet by messages without bytes.
                    let new = PathCount::since(ways, self.links[index].ways());
                    score.paths = new.filter(|way| way.bytes > 0).collect();
                }
            }
            if self.job.verify {
                self.verify(&mut scores, bytes)?;
            }
            self.tell(Event::Rows(self.rows(&scores, bytes)))?;
        }
        Ok(())
    }

    /// Everything that is measured, in the order of its turns.
    fn turns(&self, bytes: u64) -> Vec<Score> {
        let has_turn = |index: &usize| self.job.has_turn(&self.job.mechanisms[*index], bytes);
        let links = (0..self.links.len()).filter(has_turn).map(Turn::Link);
        let bare = limits::methods(self.job.pattern)
            .filter(|method| self.pair.as_ref().is_some_and(|pair| pair.refused(method).is_none()));
        links.chain(bare.map(Turn::Bare)).map(Score::new).collect()
    }

    /// One repetition for a command that decides on its own who is next; the
    /// iterations before it find caches that others have left cold.
    pub(crate) fn single(
        &mut self,
        turn: &Turn,
        bytes: u64,
        iterations: u64,
        warm_up: u64,
    ) -> Result<f64, BenchError> {
        if warm_up > 0 {
            self.repetition(turn, bytes, warm_up)?;
        }
        self.repetition(turn, bytes, iterations)
    }

    /// Messages that link `index` has moved each way so far.
    pub(crate) fn ways(&self, index: usize) -> Vec<PathCount> {
        self.links.get(index).map(Link::ways).unwrap_or_default()
    }

    /// Checks messages of link `index`; how many.
    pub(crate) fn verify_single(&mut self, index: usize, bytes: u64) -> Result<u64, BenchError> {
        let mut scores = [Score::new(Turn::Link(index))];
        self.verify(&mut scores, bytes)?;
        Ok(scores[0].verified_messages)
    }

    fn tell(&mut self, event: Event) -> Result<(), BenchError> {
        if self.rank == 0 { (self.tell)(event) } else { Ok(()) }
    }

    /// Warms up, and so finds how many iterations a repetition has.
    fn choose_iterations(&mut self, turn: &Turn, bytes: u64) -> Result<u64, BenchError> {
        if let Some(iterations) = self.job.iterations {
            self.repetition(turn, bytes, (iterations / 10).clamp(1, 1000))?;
            return Ok(iterations);
        }
        let mut warm_up = WarmUp::default();
        let mut iterations = 1;
        loop {
            let (again, number) = match warm_up.took(self.repetition(turn, bytes, iterations)?) {
                Next::Try(number) => (1, number),
                Next::Chosen(number) => (0, number),
            };
            // What rank 0 measured is what counts. Ranks without a part in a
            // bare method read 0 of either, and are done.
            let again = self.agree(turn, again)?;
            iterations = self.agree(turn, number)?;
            if again == 0 {
                return Ok(iterations);
            }
        }
    }

    /// What rank 0 says, on every rank that takes part.
    fn agree(&mut self, turn: &Turn, number: u64) -> Result<u64, BenchError> {
        match turn {
            Turn::Link(index) => {
                share(&mut self.links[*index], number).map_err(link_failed(self.job, *index))
            }
            Turn::Bare(_) => match &mut self.pair {
                Some(pair) => pair.share(number).map_err(|error| BenchError::Failure(error.to_string())),
                // Ranks beyond the pair have no part in a bare method.
                None => Ok(0),
            },
        }
    }

    fn repetition(&mut self, turn: &Turn, bytes: u64, iterations: u64) -> Result<f64, BenchError> {
        let window = self.job.pattern.window(bytes, self.job.ranks);
        let rotate = self.job.rotation_bytes.is_some();
        // The buffers were made for the largest size.
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let short = || BenchError::Failure("the buffers are too short for this size".into());
        let memory = match turn {
            Turn::Link(index) => self.job.buffers_of(&self.job.mechanisms[*index]),
            Turn::Bare(_) => self.job.buffers,
        };
        let buffers = self.buffers.iter_mut().find(|buffers| buffers.memory == memory).ok_or_else(short)?;
        let Buffers { outgoing, incoming, outgoing_at, incoming_at, .. } = buffers;
        let mut outgoing = Arena::new(outgoing, bytes, window, rotate).ok_or_else(short)?;
        let mut incoming = Arena::new(incoming, bytes, window, rotate).ok_or_else(short)?;
        outgoing.start_at(*outgoing_at);
        incoming.start_at(*incoming_at);
        let result = match turn {
            Turn::Link(index) => {
                let (link, pattern) = (&mut self.links[*index], self.job.pattern);
                let timed = if self.job.in_use {
                    round(link, &mut outgoing, &mut incoming, &mut InUse, pattern, iterations)
                } else {
                    round(link, &mut outgoing, &mut incoming, &mut Unmodified, pattern, iterations)
                };
                timed.map_err(link_failed(self.job, *index))
            }
            Turn::Bare(method) => match &mut self.pair {
                Some(pair) => pair
                    .repetition(method, &mut outgoing, &mut incoming, self.job.in_use, iterations)
                    .map_err(|error| BenchError::Failure(error.to_string())),
                None => Ok(0.0),
            },
        };
        (*outgoing_at, *incoming_at) = (outgoing.position_bytes(), incoming.position_bytes());
        result
    }

    fn usec(&self, turn: &Turn, seconds: f64, iterations: u64, bytes: u64) -> f64 {
        match turn {
            Turn::Link(_) => self.job.pattern.usec(seconds, iterations, bytes),
            Turn::Bare(method) => {
                let parts = if method.work.is_round_trip() { 2.0 } else { 1.0 };
                seconds * 1e6 / (iterations as f64 * parts)
            }
        }
    }

    /// Sends messages whose every byte is checked, between guard pages, once
    /// against either page; not timed. Memory that peers map has no such pages.
    fn verify(&mut self, scores: &mut [Score], bytes: u64) -> Result<(), BenchError> {
        let window = self.job.pattern.window(bytes, self.job.ranks);
        let iterations = (VERIFIED_BYTES / (bytes.max(1) * window as u64)).clamp(1, VERIFIED_ITERATIONS);
        for score in scores {
            let Turn::Link(index) = score.turn else { continue };
            for against in [Against::Front, Against::Back] {
                let checked = self.verified_pass(index, bytes, window, iterations, against)?;
                score.verified_messages += checked;
            }
        }
        Ok(())
    }

    fn verified_pass(
        &mut self,
        index: usize,
        bytes: u64,
        window: usize,
        iterations: u64,
        against: Against,
    ) -> Result<u64, BenchError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let short = || BenchError::Failure("the buffers of checked messages are too short".into());
        let all = bytes.saturating_mul(window);
        let memory = self.job.buffers_of(&self.job.mechanisms[index]);
        let (mut outgoing, mut incoming) =
            (Checked::new(memory, all, against)?, Checked::new(memory, all, against)?);
        let mut outgoing = Arena::packed(outgoing.bytes(), bytes, window).ok_or_else(short)?;
        let mut incoming = Arena::packed(incoming.bytes(), bytes, window).ok_or_else(short)?;
        let mut verified = Verified::default();
        let link = &mut self.links[index];
        round(link, &mut outgoing, &mut incoming, &mut verified, self.job.pattern, iterations)
            .map_err(link_failed(self.job, index))?;
        if let Some(fault) = verified.fault {
            return Err(BenchError::Failure(format!("{}: {fault}", self.job.mechanisms[index])));
        }
        sum(link, verified.messages).map_err(link_failed(self.job, index))
    }

    fn rows(&self, scores: &[Score], bytes: u64) -> Vec<Row> {
        scores.iter().filter_map(|score| self.row(score, scores, bytes)).collect()
    }

    fn row(&self, score: &Score, scores: &[Score], bytes: u64) -> Option<Row> {
        let summary = Summary::of(&score.usec)?;
        let (pattern, mechanism, counted) = match score.turn {
            Turn::Link(index) => {
                let pattern = self.job.pattern;
                (
                    pattern.name(),
                    self.job.mechanisms[index].as_str(),
                    Some(pattern.counted_bytes(bytes, self.job.ranks)),
                )
            }
            Turn::Bare(method) => (LIMITS, method.name, method.work.moves_bytes().then_some(bytes as f64)),
        };
        let comparable = matches!(score.turn, Turn::Link(_))
            && matches!(self.job.pattern, Pattern::Latency | Pattern::Pingpong);
        let bare = scores.iter().filter(|_| comparable).filter_map(|other| match other.turn {
            Turn::Bare(method) => Some((method, other)),
            Turn::Link(_) => None,
        });
        let ratios = bare.filter_map(|(method, other)| {
            let percent = 100.0 * median_ratio(&other.usec, &score.usec)?;
            Some(Ratio { method: method.name.to_owned(), percent })
        });
        Some(Row {
            pattern: pattern.to_owned(),
            mechanism: mechanism.to_owned(),
            ranks: self.job.ranks,
            bytes,
            iterations: score.iterations,
            usec_median: summary.median,
            usec_min: summary.min,
            usec_max: summary.max,
            usec_quartiles: Spread::quartiles(&score.usec),
            mb_per_s: counted.map(|bytes| mb_per_s(bytes, summary.median)),
            repetitions: self.job.repetitions,
            verified_messages: score.verified_messages,
            sender_percent: score.received.map(ReceivedBytes::sender_percent),
            sender_bytes: score.received.map(|received| received.by_sender),
            receiver_bytes: score.received.map(ReceivedBytes::by_receiver),
            paths: score.paths.clone(),
            ratios: ratios.collect(),
            details: None,
        })
    }
}

/// A buffer of messages that are checked.
enum Checked {
    Guarded(Guarded),
    Shared(Held),
}

impl Checked {
    fn new(memory: Memory, bytes: usize, against: Against) -> Result<Self, BenchError> {
        match memory {
            Memory::Private => Guarded::new(bytes, against).map(Self::Guarded).map_err(|error| {
                BenchError::Failure(format!("there is no memory for buffers between guard pages: {error}"))
            }),
            Memory::Shared => Memory::Shared.filled(bytes, 0).map(Self::Shared),
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Guarded(guarded) => guarded.as_mut_slice(),
            Self::Shared(held) => held,
        }
    }
}

fn round<L: Link, H: Handling>(
    link: &mut L,
    outgoing: &mut Arena<'_>,
    incoming: &mut Arena<'_>,
    handling: &mut H,
    pattern: Pattern,
    iterations: u64,
) -> Result<f64, LinkError> {
    Round { link, outgoing, incoming, handling }.run(pattern, iterations)
}

pub(crate) fn link_failed(job: &Job, index: usize) -> impl FnOnce(LinkError) -> BenchError + use<> {
    let name = job.mechanisms[index].clone();
    move |error| BenchError::Mechanism { name, sentence: error.to_string() }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
