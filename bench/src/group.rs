//! The ranks of a benchmark: how the command drives them, and what each does.

use std::io::{self, BufRead, StdinLock};
use std::time::Duration;

use lmt::Endpoint;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::choice::path_of;
use crate::ending::end_with;
use crate::engine::{self, EndpointLink};
use crate::error::BenchError;
use crate::job::{Event, Job, RankCard};
use crate::limits::{self, Pair};
use crate::measures::{self, Doorbell};
use crate::processes::{Processes, Word, failure};
use crate::rank_side::{self, pin, read_line};
use crate::runner::Runner;

/// The hidden subcommand.
pub const RANK_COMMAND: &str = "bench-rank";

/// How long nothing may be heard from any rank before the run is given up.
const SILENCE: Duration = Duration::from_secs(300);

/// What a rank is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// Its number.
    pub rank: u32,
    parent: i32,
    /// What all of them do.
    pub job: Job,
}

/// The ranks, seen from the command.
pub(crate) type Group = Processes<Event>;

impl Word for Event {
    fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed(sentence) | Self::MechanismFailed { sentence, .. } => Some(sentence),
            _ => None,
        }
    }
}

/// Starts the ranks, lets them work, and hands on what they tell.
///
/// # Errors
/// A rank fails or ends, nothing is heard for five minutes, or `hear` fails;
/// all ranks have ended then.
pub fn run(job: &Job, hear: &mut dyn FnMut(Event) -> Result<(), BenchError>) -> Result<(), BenchError> {
    let mut group = start(RANK_COMMAND, job, hear)?;
    follow_ranks(&mut group, job.ranks, hear)
}

/// Hands on what the ranks tell, until all are done.
///
/// # Errors
/// As [`run`].
pub(crate) fn follow_ranks(
    group: &mut Group,
    ranks: u32,
    hear: &mut dyn FnMut(Event) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let mut working = ranks;
    while working > 0 {
        match next(group)? {
            (_, Event::Done) => working -= 1,
            (_, event) => hear(event)?,
        }
    }
    Ok(())
}

/// Starts the ranks and lets them know each other.
///
/// # Errors
/// As [`run`].
pub(crate) fn start(
    subcommand: &str,
    job: &Job,
    hear: &mut dyn FnMut(Event) -> Result<(), BenchError>,
) -> Result<Group, BenchError> {
    let parent = Pid::this().as_raw();
    let assignment = |rank| Assignment { rank, parent, job: job.clone() };
    let assignments: Vec<Assignment> = (0..job.ranks).map(assignment).collect();
    let mut group = Processes::start(subcommand, &assignments)?;
    let cards = cards(&mut group, job.ranks as usize, hear)?;
    group.tell(&cards).map_err(|error| failure("a rank cannot be told its peers", &error))?;
    Ok(group)
}

/// What a rank says next.
///
/// # Errors
/// As [`run`].
pub(crate) fn next(group: &mut Group) -> Result<(usize, Event), BenchError> {
    match group.next_within(SILENCE)? {
        Some((_, Event::Failed(sentence))) => Err(BenchError::Failure(sentence)),
        Some((_, Event::MechanismFailed { name, sentence })) => Err(BenchError::Mechanism { name, sentence }),
        Some(event) => Ok(event),
        None => Err(BenchError::Failure(format!(
            "no answer from the ranks for {} s; try fewer ranks or smaller sizes",
            SILENCE.as_secs()
        ))),
    }
}

/// What the others need to reach each rank.
///
/// # Errors
/// As [`run`].
pub(crate) fn cards(
    group: &mut Group,
    ranks: usize,
    hear: &mut dyn FnMut(Event) -> Result<(), BenchError>,
) -> Result<Vec<RankCard>, BenchError> {
    let mut cards = vec![None; ranks];
    while cards.iter().any(Option::is_none) {
        match next(group)? {
            (rank, Event::Card(card)) => cards[rank] = Some(card),
            (_, event) => hear(event)?,
        }
    }
    Ok(cards.into_iter().flatten().collect())
}

/// What a rank does: the whole life of the process behind the hidden
/// subcommand. Its failure travels as an event.
///
/// # Errors
/// [`BenchError::RankFailed`], once the command knows why.
pub fn rank_main() -> Result<(), BenchError> {
    live(|input, tell| {
        let (Assignment { rank, job, .. }, Joined { mut links, mut pair, doorbell }) = join(input, tell)?;
        match doorbell {
            Some(doorbell) => measures::run(&job, rank, &mut links, doorbell, tell),
            None => Runner::new(&job, rank, &mut links, pair.as_mut(), tell)?.run(),
        }
    })
}

/// Lets a rank work, and the command know how that ended.
///
/// # Errors
/// As [`rank_main`].
pub(crate) fn live(
    work: impl FnOnce(&mut StdinLock<'static>, Tell<'_>) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let mut input = io::stdin().lock();
    let mut tell = |event: Event| rank_side::tell(&event);
    let result = work(&mut input, &mut tell);
    let last = match &result {
        Ok(()) => Event::Done,
        Err(BenchError::Mechanism { name, sentence }) => {
            Event::MechanismFailed { name: name.clone(), sentence: sentence.clone() }
        }
        Err(error) => Event::Failed(error.to_string()),
    };
    tell(last)?;
    result.map_err(|_| BenchError::RankFailed)
}

/// How a rank tells the command something.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(Event) -> Result<(), BenchError>;

/// What a rank has of the others.
pub(crate) struct Joined {
    /// One for each mechanism of the job.
    pub links: Vec<EndpointLink>,
    /// For the bare methods, where this rank takes part in them.
    pub pair: Option<Pair>,
    doorbell: Option<Doorbell>,
}

/// Reads what this rank is to do, and gets it and the others to know each other.
///
/// # Errors
/// What is missing.
pub(crate) fn join(input: &mut impl BufRead, tell: Tell<'_>) -> Result<(Assignment, Joined), BenchError> {
    let assignment: Assignment = read_line(input)?;
    let Assignment { rank, parent, ref job } = assignment;
    end_with(parent)?;
    if let Some(&cpu) = job.cpus.get(rank as usize) {
        pin(rank, cpu)?;
    }
    let opened = open_all(&job.mechanisms)?;
    let memory = (job.limits && rank == 0).then(Pair::memory).transpose().map_err(limits_failed)?;
    let has_bell = !job.pattern.figures().is_empty();
    let doorbell =
        (has_bell && rank == 0).then(Doorbell::new).transpose().map_err(|error| doorbell_failed(&error))?;
    tell(Event::Card(RankCard {
        addresses: opened.iter().map(|opened| opened.address().to_bytes()).collect(),
        limits: memory.as_ref().map(|memory| memory.card()),
        doorbell: doorbell.as_ref().and_then(Doorbell::card),
    }))?;
    let cards: Vec<RankCard> = read_line(input)?;
    let doorbell = match (doorbell, cards.first().and_then(|card| card.doorbell.as_ref())) {
        (None, Some(card)) => Some(Doorbell::open(card).map_err(|error| doorbell_failed(&error))?),
        (doorbell, _) => doorbell,
    };
    let pair = match (memory, cards.first().and_then(|card| card.limits.as_ref())) {
        (Some(memory), _) => Some(Pair::first(memory).map_err(limits_failed)?),
        (None, Some(card)) if rank == 1 => Some(Pair::second(card).map_err(limits_failed)?),
        _ => None,
    };
    if let (0, Some(pair)) = (rank, &pair) {
        limits::methods(job.pattern)
            .filter_map(|method| pair.refused(method))
            .try_for_each(|note| tell(Event::Note(note)))?;
    }
    let mut links = Vec::new();
    for (index, opened) in opened.into_iter().enumerate() {
        let addresses: Vec<Vec<u8>> =
            cards.iter().map(|card| card.addresses.get(index).cloned().unwrap_or_default()).collect();
        links.push(engine::join(opened, &addresses)?);
    }
    Ok((assignment, Joined { links, pair, doorbell }))
}

/// Opens this rank's end for each of these mechanisms.
///
/// # Errors
/// What is missing.
pub(crate) fn open_all(mechanisms: &[String]) -> Result<Vec<Endpoint>, BenchError> {
    let open = |name: &String| match path_of(name) {
        Some(way) => engine::open_path(way),
        None => engine::open(name),
    };
    mechanisms.iter().map(open).collect()
}

fn doorbell_failed(error: &io::Error) -> BenchError {
    failure("the ranks cannot wake each other", error)
}

fn limits_failed(error: crate::limits::LimitError) -> BenchError {
    BenchError::Failure(error.to_string())
}
