//! Ours and the peers in turns: round by round each has one short turn, so that what
//! the machine does meanwhile meets all of them. Between passes all are started anew, in
//! another order.
#![forbid(unsafe_code)]

use super::plan::Plan;
use super::ranks::{Ranks, Turned};
use super::result::{Row, Times};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::peers::{Contenders, MpiTurn, Peer, Shown, warm_up};
use crate::warm_up::{Next, WarmUp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Ours(usize),
    Peer(usize),
}

/// One size, over all passes.
struct Course {
    iterations: u64,
    contenders: Vec<(Whose, Times)>,
    rounds: u32,
}

/// All of it.
pub(super) struct Measuring<'a> {
    plan: &'a Plan,
    ranks: Ranks,
    peers: Contenders<'a>,
    shown: &'a Shown<'a, Row>,
    interrupt: &'a Interrupt,
    done: u64,
    /// Where each contender of ours is unsuitable: its name and why.
    unsuitable: Vec<(String, u64, String)>,
}

impl<'a> Measuring<'a> {
    /// Starts everybody.
    ///
    /// # Errors
    /// Our own ranks fail, or all peers do. One peer that does is left out.
    pub fn start(
        plan: &'a Plan,
        peers: &[Peer],
        cores: usize,
        interrupt: &'a Interrupt,
        shown: &'a Shown<'a, Row>,
    ) -> Result<Self, BenchError> {
        let setup = crate::peers::Setup {
            ranks: plan.ranks,
            cpus: &plan.cpus,
            cores,
            buffer_bytes: plan.buffer_bytes(),
        };
        let mut peers = Contenders::new(peers, true, setup, interrupt);
        let ranks = peers.restart(0, &mut |sentence| shown.note(sentence), |_| Ranks::start(plan))?;
        Ok(Self { plan, ranks, peers, shown, interrupt, done: 0, unsuitable: Vec::new() })
    }

    /// Measures every size.
    ///
    /// # Errors
    /// One of our ranks fails, no algorithm suits, or a signal came.
    pub fn run(mut self) -> Result<Vec<Row>, BenchError> {
        self.shown.begin()?;
        let (mut courses, mut rows) = (Vec::new(), Vec::new());
        let passes = self.peers.passes(self.plan.repetitions);
        for pass in 0..passes {
            if pass > 0 {
                self.restart(pass)?;
            }
            for (index, &bytes) in self.plan.sizes.iter().enumerate() {
                if pass == 0 {
                    courses.push(self.course(bytes)?);
                }
                self.rounds(&mut courses[index], bytes, self.plan.repetitions * (pass + 1) / passes)?;
                if pass + 1 == passes {
                    rows.extend(self.over(&courses[index], bytes)?);
                }
            }
        }
        Ok(rows)
    }

    /// Ends everybody, and starts them in the order of this pass.
    fn restart(&mut self, pass: u32) -> Result<(), BenchError> {
        self.ranks.end();
        let (plan, shown) = (self.plan, self.shown);
        self.ranks =
            self.peers.restart(pass, &mut |sentence| shown.note(sentence), |_| Ranks::start(plan))?;
        Ok(())
    }

    fn course(&mut self, bytes: u64) -> Result<Course, BenchError> {
        let mut contenders = Vec::new();
        for (index, turns) in self.plan.contenders.iter().enumerate() {
            // Whether it suits is found out by a call.
            match self.ranks.turn(index, bytes, 1, 0)? {
                Turned::Slowest(_) => {
                    let times = Times { name: turns.name(), is_peer: false, usec: Vec::new() };
                    contenders.push((Whose::Ours(index), times));
                }
                Turned::Unsuitable(reason) => self.unsuitable.push((turns.name(), bytes, reason)),
            }
        }
        if contenders.is_empty() {
            let all =
                self.unsuitable.iter().map(|(name, _, reason)| format!("{name} cannot do this: {reason}"));
            let sentences: Vec<String> = all.collect();
            return Err(BenchError::Failure(sentences.join("; ")));
        }
        for (index, name) in self.peers.names() {
            contenders.push((Whose::Peer(index), Times { name, is_peer: true, usec: Vec::new() }));
        }
        let iterations = match self.plan.iterations {
            Some(iterations) => iterations,
            None => self.find_iterations(contenders[0].0, bytes)?,
        };
        Ok(Course { iterations, contenders, rounds: 0 })
    }

    fn find_iterations(&mut self, first: Whose, bytes: u64) -> Result<u64, BenchError> {
        let (mut warm_up, mut iterations) = (WarmUp::default(), 1);
        loop {
            let Some(seconds) = self.turn(first, bytes, iterations, 0)? else { return Ok(iterations) };
            match warm_up.took(seconds) {
                Next::Try(number) => iterations = number,
                Next::Chosen(number) => return Ok(number),
            }
        }
    }

    /// Rounds up to number `until`: each round, everybody has one turn.
    fn rounds(&mut self, course: &mut Course, bytes: u64, until: u32) -> Result<(), BenchError> {
        let iterations = course.iterations;
        while course.rounds < until {
            let number = course.contenders.len();
            for at in order(number, course.rounds as usize) {
                self.interrupt.check()?;
                let (whose, times) = &mut course.contenders[at];
                if let Some(seconds) = self.turn(*whose, bytes, iterations, warm_up(iterations))? {
                    times.usec.push(seconds * 1e6 / iterations as f64);
                }
            }
            let peers = &self.peers;
            course.contenders.retain(|(whose, _)| match whose {
                Whose::Peer(index) => peers.is_there(*index),
                Whose::Ours(_) => true,
            });
            course.rounds += 1;
            self.done += 1;
            let total = u64::from(self.plan.repetitions) * self.plan.sizes.len() as u64;
            self.shown.progress(self.done, total);
        }
        Ok(())
    }

    /// The seconds of the slowest rank; none of a peer that fails, which is gone then.
    fn turn(
        &mut self,
        whose: Whose,
        bytes: u64,
        iterations: u64,
        warm_up: u64,
    ) -> Result<Option<f64>, BenchError> {
        let index = match whose {
            Whose::Peer(index) => index,
            Whose::Ours(index) => {
                return match self.ranks.turn(index, bytes, iterations, warm_up)? {
                    Turned::Slowest(seconds) => Ok(Some(seconds)),
                    Turned::Unsuitable(reason) => Err(BenchError::Failure(reason)),
                };
            }
        };
        let turn = MpiTurn {
            pattern: &format!("collective:{}", self.plan.work),
            bytes,
            window: 1,
            iterations,
            warm_up,
            in_use: self.plan.in_use,
            rotate: self.plan.rotation_bytes.is_some(),
        };
        match self.peers.turn(index, &turn) {
            Ok(seconds) => Ok(seconds.into_iter().reduce(f64::max)),
            Err(sentence) => {
                self.shown.note(&sentence);
                Ok(None)
            }
        }
    }

    fn over(&mut self, course: &Course, bytes: u64) -> Result<Option<Row>, BenchError> {
        let is_chosen = course.contenders.iter().any(|(_, times)| times.name == super::args::AUTO);
        let auto = match is_chosen {
            true => self.ranks.explain(bytes)?,
            false => None,
        };
        let mut verified_calls = 0;
        if self.plan.verify {
            for (whose, _) in &course.contenders {
                if let Whose::Ours(index) = whose {
                    self.ranks.verify(*index, bytes)?;
                    verified_calls += 1;
                }
            }
        }
        let times: Vec<&Times> = course.contenders.iter().map(|(_, times)| times).collect();
        let row = Row::of(bytes, course.iterations, &times, auto, verified_calls);
        if let Some(row) = &row {
            self.shown.size(row)?;
        }
        Ok(row)
    }
}

/// The order of a round: another one begins each time, and after another one each
/// time, since caches are left in the state that suits the next one more or less.
fn order(number: usize, round: usize) -> impl Iterator<Item = usize> {
    let strides: Vec<usize> = (1..=number).filter(|&stride| gcd(number, stride) == 1).collect();
    // One has no common divisor with any number.
    let stride = strides.get(round % strides.len().max(1)).copied().unwrap_or(1);
    (0..number).map(move |step| (round + step * stride) % number)
}

const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
