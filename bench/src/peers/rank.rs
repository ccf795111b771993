//! One of our own ranks while peers are compared: it does the turns that the
//! command asks for, and sleeps in between.

use std::io::BufRead;

use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::group::{self, Joined};
use crate::job::Event;
use crate::limits::{METHODS, Pair};
use crate::patterns::link::Link;
use crate::rank_side::next_line;
use crate::runner::{Runner, Turn};

/// The hidden subcommand.
pub const RANK_COMMAND: &str = "peers-rank";

/// Who has a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The mechanism of the job with this index.
    Link(usize),
    /// The bare method of this name.
    Bare(String),
}

/// What all ranks do together next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// A turn.
    Turn {
        /// Whose.
        who: Who,
        /// The messages' length.
        bytes: u64,
        /// Iterations inside the time.
        iterations: u64,
        /// Iterations before it.
        warm_up: u64,
    },
    /// Messages of this length, of which every byte is checked.
    Verify {
        /// By which mechanism of the job.
        link: usize,
        /// Their length.
        bytes: u64,
    },
    /// Which way that mechanism's messages have taken so far.
    Ways(usize),
}

/// The whole life of the process behind the hidden subcommand.
///
/// # Errors
/// [`BenchError::RankFailed`], once the command knows why.
pub fn rank_main() -> Result<(), BenchError> {
    group::live(|input, tell| {
        let (assignment, Joined { mut links, mut pair, .. }) = group::join(input, tell)?;
        let is_first = assignment.rank == 0;
        let bare = bare(pair.as_ref());
        let mut silent = |_: Event| Ok(());
        let runner = Runner::new(&assignment.job, assignment.rank, &mut links, pair.as_mut(), &mut silent)?;
        // With its memory: who starts after us takes it from what is left.
        tell(Event::Ready { bare })?;
        serve(runner, is_first, input, tell)
    })
}

fn serve<L: Link>(
    mut runner: Runner<'_, L>,
    is_first: bool,
    input: &mut impl BufRead,
    tell: group::Tell<'_>,
) -> Result<(), BenchError> {
    while let Some(ask) = next_line(input)? {
        match ask {
            Ask::Turn { who, bytes, iterations, warm_up } => {
                let seconds = runner.single(&turn(who)?, bytes, iterations, warm_up)?;
                tell(Event::Timed { seconds })?;
            }
            Ask::Verify { link, bytes } => {
                let messages = runner.verify_single(link, bytes)?;
                if is_first {
                    tell(Event::Verified(messages))?;
                }
            }
            Ask::Ways(link) if is_first => tell(Event::Ways(runner.ways(link)))?,
            Ask::Ways(_) => {}
        }
    }
    Ok(())
}

fn turn(who: Who) -> Result<Turn, BenchError> {
    match who {
        Who::Link(index) => Ok(Turn::Link(index)),
        Who::Bare(name) => METHODS
            .iter()
            .find(|method| method.name == name)
            .map(Turn::Bare)
            .ok_or_else(|| BenchError::Failure(format!("there is no bare method {name}"))),
    }
}

/// The bare methods that are half round trips and work here.
fn bare(pair: Option<&Pair>) -> Vec<String> {
    let Some(pair) = pair else { return Vec::new() };
    let works = METHODS.iter().filter(|method| method.work.is_round_trip() && pair.refused(method).is_none());
    works.map(|method| method.name.to_owned()).collect()
}
