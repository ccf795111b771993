//! The groups of all MPIs that are compared with.

use super::group::{MpiGroup, Setup, Turn};
use super::peer::Peer;
use crate::error::BenchError;
use crate::interrupt::Interrupt;

/// Fewest passes over all sizes among which the rounds are shared out: the machine's
/// speed changes within seconds, and a size is to meet more than one of them.
const MIN_PASSES: usize = 3;

/// The groups; one that has failed is gone for good.
pub(crate) struct Contenders<'a> {
    /// How many take turns: ours may be among them.
    number: usize,
    setup: Setup<'a>,
    interrupt: &'a Interrupt,
    entries: Vec<Entry>,
}

struct Entry {
    peer: Peer,
    state: State,
}

enum State {
    /// Before its first start, and between two passes.
    Ended,
    There(Box<MpiGroup>),
    LeftOut,
}

impl<'a> Contenders<'a> {
    /// All of them, none started yet; whether ranks of our own take part.
    pub fn new(peers: &[Peer], has_ours: bool, setup: Setup<'a>, interrupt: &'a Interrupt) -> Self {
        let entry = |peer: &Peer| Entry { peer: peer.clone(), state: State::Ended };
        let number = peers.len() + usize::from(has_ours);
        Self { number, setup, interrupt, entries: peers.iter().map(entry).collect() }
    }

    /// Passes for so many rounds: in each, all are started anew, and each is to be
    /// the first as often as the others, where there are as many rounds.
    pub fn passes(&self, rounds: u32) -> u32 {
        let passes = MIN_PASSES.next_multiple_of(self.number.max(1));
        u32::try_from(passes).unwrap_or(u32::MAX).min(rounds)
    }

    /// Ends the groups, and starts them and us one after the other. How fast memory is
    /// depends on who took it first, so each pass begins with another. `note` hears who
    /// is left out.
    ///
    /// # Errors
    /// A signal has come, `start_ours` fails, or none of the peers can be started at all.
    pub fn restart<T>(
        &mut self,
        pass: u32,
        note: &mut dyn FnMut(&str),
        start_ours: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.entries.iter_mut().for_each(Entry::end);
        let first = first_before_ours(self.entries.len(), self.number, pass);
        let (behind, ahead) = self.entries.split_at_mut(first);
        ahead.iter_mut().for_each(|entry| entry.start(&self.setup, note));
        let ours = start_ours(note);
        // Ctrl-C reaches ranks that are being started, and they end.
        self.interrupt.check()?;
        let ours = ours?;
        behind.iter_mut().for_each(|entry| entry.start(&self.setup, note));
        self.interrupt.check()?;
        if pass == 0 && !self.entries.is_empty() && self.names().is_empty() {
            return Err(BenchError::Failure("none of the MPIs could be started".into()));
        }
        Ok(ours)
    }

    /// Whether this peer is still there.
    pub fn is_there(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(Entry::is_there)
    }

    /// The places and names of those that are there.
    pub fn names(&self) -> Vec<(usize, String)> {
        let there = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_there());
        there.map(|(index, entry)| (index, entry.peer.name.clone())).collect()
    }

    /// Does a turn; each rank's seconds, none of a peer that is not there.
    ///
    /// # Errors
    /// It fails in it, and is gone then: a sentence.
    pub fn turn(&mut self, index: usize, turn: &Turn<'_>) -> Result<Vec<f64>, String> {
        match self.entries.get_mut(index) {
            Some(entry) => entry.turn(turn),
            None => Ok(Vec::new()),
        }
    }
}

/// The first of the peers that is started before ours, as all that follow it are; the
/// others are started behind ours. Of `number` passes, each of `number` contenders
/// begins one.
const fn first_before_ours(peers: usize, number: usize, pass: u32) -> usize {
    if number == 0 { 0 } else { peers - pass as usize % number }
}

impl Entry {
    const fn is_there(&self) -> bool {
        matches!(self.state, State::There(_))
    }

    fn end(&mut self) {
        if self.is_there() {
            self.state = State::Ended;
        }
    }

    fn start(&mut self, setup: &Setup<'_>, note: &mut dyn FnMut(&str)) {
        if matches!(self.state, State::LeftOut) {
            return;
        }
        let Peer { name, mpi, program, variables, .. } = &self.peer;
        self.state = match MpiGroup::start(mpi, program, variables, setup) {
            Ok(group) => State::There(Box::new(group)),
            Err(sentence) => {
                note(&format!("{name} is left out: {sentence}"));
                State::LeftOut
            }
        };
    }

    fn turn(&mut self, turn: &Turn<'_>) -> Result<Vec<f64>, String> {
        let State::There(group) = &mut self.state else { return Ok(Vec::new()) };
        group.turn(turn).map_err(|sentence| {
            self.state = State::LeftOut;
            format!("{} is left out from now on: {sentence}", self.peer.name)
        })
    }
}

#[cfg(test)]
#[path = "contenders_tests.rs"]
mod tests;
