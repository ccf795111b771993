//! Our own ranks, seen from the command.

use std::time::Duration;

use super::rank::{Ask, RANK_COMMAND, Who};
use crate::error::BenchError;
use crate::group::{self, Group};
use crate::job::{Event, Job, PathCount};
use crate::processes::failure;

/// How long they may take to end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The ranks; they end with it.
pub struct Ours {
    group: Option<Group>,
    ranks: u32,
    /// The bare methods that work here.
    pub bare: Vec<String>,
}

impl Ours {
    /// Starts them; `note` hears what is worth a line.
    ///
    /// # Errors
    /// One fails or ends.
    pub fn start(job: &Job, note: &mut dyn FnMut(&str)) -> Result<Self, BenchError> {
        let mut hear = |event: Event| {
            if let Event::Note(sentence) = event {
                note(&sentence);
            }
            Ok(())
        };
        let mut group = group::start(RANK_COMMAND, job, &mut hear)?;
        let (mut bare, mut ready) = (Vec::new(), 0);
        while ready < job.ranks {
            match group::next(&mut group)? {
                (rank, Event::Ready { bare: methods }) => {
                    ready += 1;
                    // The first is in all pairs.
                    bare = if rank == 0 { methods } else { bare };
                }
                (_, event) => hear(event)?,
            }
        }
        Ok(Self { group: Some(group), ranks: job.ranks, bare })
    }

    /// Does a turn; the seconds that count.
    ///
    /// # Errors
    /// A rank fails or ends.
    pub fn turn(&mut self, who: &Who, bytes: u64, iterations: u64, warm_up: u64) -> Result<f64, BenchError> {
        self.ask(&Ask::Turn { who: who.clone(), bytes, iterations, warm_up })?;
        let (mut seconds, mut over) = (0.0, 0);
        while over < self.ranks {
            if let (rank, Event::Timed { seconds: its }) = self.next()? {
                over += 1;
                // The ranks have compared their clocks where more than one counts.
                seconds = if rank == 0 { its } else { seconds };
            }
        }
        Ok(seconds)
    }

    /// Checks messages; how many.
    ///
    /// # Errors
    /// A byte arrived wrong, or a rank fails or ends.
    pub fn verify(&mut self, link: usize, bytes: u64) -> Result<u64, BenchError> {
        self.ask(&Ask::Verify { link, bytes })?;
        loop {
            if let (_, Event::Verified(messages)) = self.next()? {
                return Ok(messages);
            }
        }
    }

    /// Which way messages have taken so far.
    ///
    /// # Errors
    /// A rank fails or ends.
    pub fn ways(&mut self, link: usize) -> Result<Vec<PathCount>, BenchError> {
        self.ask(&Ask::Ways(link))?;
        loop {
            if let (_, Event::Ways(ways)) = self.next()? {
                return Ok(ways);
            }
        }
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), BenchError> {
        match &mut self.group {
            Some(group) => group.tell(ask).map_err(|error| failure("a rank cannot be told its turn", &error)),
            None => Ok(()),
        }
    }

    fn next(&mut self) -> Result<(usize, Event), BenchError> {
        match &mut self.group {
            Some(group) => group::next(group),
            None => Err(BenchError::Failure("the ranks have ended".into())),
        }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            group.end(END_LIMIT);
        }
    }
}
