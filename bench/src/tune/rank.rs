//! What one process does while a machine is tuned: it does the turns that the
//! command asks for, over one link for each way.

use std::io::{self, BufRead};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::ending::end_with;
use crate::engine;
use crate::error::BenchError;
use crate::memory::Pages;
use crate::patterns::arena::Arena;
use crate::patterns::link::{Link, LinkError};
use crate::patterns::round::share;
use crate::rank_side::{next_line, pin, read_line, tell};
use crate::warm_up::{Next, WarmUp};

/// The hidden subcommand.
pub const RANK_COMMAND: &str = "tune-rank";

const DATA_TAG: u64 = 1;
const SECONDS_TAG: u64 = 2;

/// What a rank is told first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Its number; ranks `2i` and `2i + 1` are a pair.
    pub rank: u32,
    /// The command's process.
    pub parent: i32,
    /// Where it runs.
    pub cpu: usize,
    /// The ways, in the order in which turns name them.
    pub ways: Vec<String>,
    /// The longest message.
    pub largest_bytes: u64,
    /// Bytes of each buffer through which messages rotate off cache.
    pub rotation_bytes: u64,
}

/// What all ranks do together next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The messages' length.
    pub bytes: u64,
    /// Whether they rotate through memory larger than the cache.
    pub off_cache: bool,
    /// The ways that take turns.
    pub ways: Vec<PathTurn>,
}

/// One way in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathTurn {
    /// Which of [`Assignment::ways`].
    pub way: usize,
    /// Iterations of a repetition; 0 when they are to be found.
    pub iterations: u64,
    /// How often it is measured.
    pub repetitions: u32,
}

/// What came of a way's turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Which way.
    pub way: usize,
    /// Iterations of a repetition.
    pub iterations: u64,
    /// The time of one transfer, in nanoseconds, for each repetition.
    pub times_ns: Vec<f64>,
}

/// What ranks say, one line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// An address for each way, for the others.
    Card(Vec<Vec<u8>>),
    /// A turn is over; from rank 0.
    Timed(Vec<Timed>),
    /// It cannot go on.
    Failed {
        /// The way that failed, if it was one.
        way: Option<usize>,
        /// Why, in a sentence.
        sentence: String,
    },
}

/// What went wrong, and with which way.
struct Failure {
    way: Option<usize>,
    error: BenchError,
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        Self { way: None, error }
    }
}

fn of_path(way: usize) -> impl FnOnce(LinkError) -> Failure {
    move |error| Failure { way: Some(way), error: BenchError::Failure(error.to_string()) }
}

/// The whole life of the process behind the hidden subcommand. Its failure
/// travels as an answer.
///
/// # Errors
/// [`BenchError::RankFailed`], once the command knows why.
pub fn rank_main() -> Result<(), BenchError> {
    let mut input = io::stdin().lock();
    work(&mut input).map_err(|Failure { way, error }| {
        // If the command is not there any more, nobody wants to know.
        let _ = tell(&Answer::Failed { way, sentence: error.to_string() });
        BenchError::RankFailed
    })
}

fn work(input: &mut impl BufRead) -> Result<(), Failure> {
    let assignment: Assignment = read_line(input)?;
    let Assignment { rank, parent, cpu, ways, .. } = &assignment;
    end_with(*parent)?;
    pin(*rank, *cpu)?;
    let mut opened = Vec::new();
    for (way, name) in ways.iter().enumerate() {
        let end = engine::open_path(name);
        opened.push(end.map_err(|error| Failure { way: Some(way), error })?);
    }
    tell(&Answer::Card(opened.iter().map(|opened| opened.address().to_bytes()).collect()))?;
    let cards: Vec<Vec<Vec<u8>>> = read_line(input)?;
    let mut links = Vec::new();
    for (way, opened) in opened.into_iter().enumerate() {
        let addresses: Vec<Vec<u8>> =
            cards.iter().map(|card| card.get(way).cloned().unwrap_or_default()).collect();
        let link = engine::join(opened, &addresses);
        links.push(link.map_err(|error| Failure { way: Some(way), error })?);
    }
    let mut rank = Rank::new(links, &assignment)?;
    while let Some(turn) = next_line(input)? {
        let timed = rank.turn(&turn)?;
        if assignment.rank == 0 {
            tell(&Answer::Timed(timed))?;
        }
    }
    Ok(())
}

/// Two buffers, and how far rotation has come in them.
struct Buffers {
    outgoing: Pages,
    incoming: Pages,
    at: [usize; 2],
}

impl Buffers {
    fn of(bytes: u64) -> Result<Self, BenchError> {
        let bytes = usize::try_from(bytes)
            .map_err(|_| BenchError::Failure("the buffers are larger than this machine's memory".into()))?;
        Ok(Self { outgoing: Pages::filled(bytes, 1)?, incoming: Pages::filled(bytes, 2)?, at: [0; 2] })
    }
}

/// One rank with its links.
pub struct Rank<L> {
    links: Vec<L>,
    on_cache: Buffers,
    off_cache: Buffers,
}

impl<L: Link> Rank<L> {
    /// Gets the buffers ready: every page touched.
    ///
    /// # Errors
    /// They are larger than memory.
    pub fn new(links: Vec<L>, assignment: &Assignment) -> Result<Self, BenchError> {
        let on_cache = Buffers::of(crate::job::stride_bytes(assignment.largest_bytes))?;
        let off_cache = Buffers::of(assignment.rotation_bytes)?;
        Ok(Self { links, on_cache, off_cache })
    }

    /// Measures each way of the turn; they take turns, and each time another
    /// one begins. On ranks other than 0 the times mean nothing.
    fn turn(&mut self, turn: &Turn) -> Result<Vec<Timed>, Failure> {
        let mut all = Vec::new();
        for PathTurn { way, iterations, .. } in turn.ways.iter().copied() {
            let iterations = match iterations {
                0 => self.find_iterations(way, turn)?,
                iterations => {
                    // The first messages after other ways find cold caches.
                    self.repetition(way, turn, (iterations / 4).max(1)).map_err(of_path(way))?;
                    iterations
                }
            };
            all.push(Timed { way, iterations, times_ns: Vec::new() });
        }
        let most = turn.ways.iter().map(|way| way.repetitions).max().unwrap_or(0);
        for repetition in 0..most {
            for step in 0..all.len() {
                let at = (step + repetition as usize) % all.len();
                if repetition >= turn.ways[at].repetitions {
                    continue;
                }
                let Timed { way, iterations, .. } = all[at];
                let seconds = self.repetition(way, turn, iterations).map_err(of_path(way))?;
                // Half a round trip.
                all[at].times_ns.push(seconds * 1e9 / (2.0 * iterations as f64));
            }
        }
        Ok(all)
    }

    /// What rank 0 finds holds for all.
    fn find_iterations(&mut self, way: usize, turn: &Turn) -> Result<u64, Failure> {
        let mut warm_up = WarmUp::default();
        let mut iterations = 1;
        loop {
            let seconds = self.repetition(way, turn, iterations).map_err(of_path(way))?;
            let (again, number) = match warm_up.took(seconds) {
                Next::Try(number) => (1, number),
                Next::Chosen(number) => (0, number),
            };
            let link = &mut self.links[way];
            let again = share(link, again).map_err(of_path(way))?;
            iterations = share(link, number).map_err(of_path(way))?;
            if again == 0 {
                return Ok(iterations);
            }
        }
    }

    /// All pairs at once; the seconds of the slowest pair, on rank 0.
    fn repetition(&mut self, way: usize, turn: &Turn, iterations: u64) -> Result<f64, LinkError> {
        let buffers = if turn.off_cache { &mut self.off_cache } else { &mut self.on_cache };
        let bytes = usize::try_from(turn.bytes).unwrap_or(usize::MAX);
        let short = || LinkError("the buffers are too short for this size".into());
        let Buffers { outgoing, incoming, at } = buffers;
        let mut outgoing = Arena::new(outgoing, bytes, 1, turn.off_cache).ok_or_else(short)?;
        let mut incoming = Arena::new(incoming, bytes, 1, turn.off_cache).ok_or_else(short)?;
        outgoing.start_at(at[0]);
        incoming.start_at(at[1]);
        let link = self.links.get_mut(way).ok_or_else(|| LinkError("there is no such path".into()))?;
        let (is_first, partner) = (link.rank() % 2 == 0, link.rank() ^ 1);
        link.barrier()?;
        let start = Instant::now();
        for _ in 0..iterations {
            if is_first {
                link.send(partner, DATA_TAG, outgoing.slot())?;
            }
            link.receive(partner, DATA_TAG, incoming.slot())?;
            if !is_first {
                link.send(partner, DATA_TAG, outgoing.slot())?;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        *at = [outgoing.position_bytes(), incoming.position_bytes()];
        slowest(link, seconds)
    }
}

/// The longest of the times of the even ranks, on rank 0.
fn slowest<L: Link>(link: &mut L, seconds: f64) -> Result<f64, LinkError> {
    let mut slowest = seconds;
    match link.rank() {
        0 => {
            for other in (2..link.ranks()).step_by(2) {
                let mut theirs = [0; 8];
                link.receive(other, SECONDS_TAG, &mut theirs)?;
                slowest = slowest.max(f64::from_le_bytes(theirs));
            }
        }
        rank if rank % 2 == 0 => link.send(0, SECONDS_TAG, &seconds.to_le_bytes())?,
        _ => {}
    }
    Ok(slowest)
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
