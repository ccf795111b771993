//! Ours, the peers and the bare methods in turns: round by round each of them has
//! one short turn, so that what the machine does meanwhile meets all of them. Between
//! passes over all sizes all are started anew, in another order.

use super::contenders::Contenders;
use super::group::{Setup, Turn};
use super::ours::Ours;
use super::peer::Peer;
use super::rank::Who;
use super::result::{Role, SizeTimes, Times};
use super::shown::Shown;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::job::{Job, PathCount};
use crate::limits::{METHODS, Work};
use crate::memory::Memory;
use crate::patterns::Pattern;
use crate::warm_up::{Next, WarmUp};

/// Part of a turn's iterations that come before its time: other processes have
/// used the caches meanwhile.
const WARM_UP_PART: u64 = 4;
/// Turns of each bare method by which the fastest are found.
const TRIALS: usize = 3;
/// Bare methods that go on to the rounds.
const FINALISTS: usize = 3;
/// What fits into one cache line with a flag: there the hop is a limit.
const LINE_BYTES: u64 = 56;

/// One who takes turns at one size.
struct Contender {
    who: Whose,
    times: Times,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    Ours(Who),
    Peer(usize),
}

/// One size, over all passes.
struct Course {
    iterations: u64,
    contenders: Vec<Contender>,
    ways: Vec<PathCount>,
    verified_messages: u64,
    rounds: u32,
}

/// All of it.
pub struct Measuring<'a> {
    job: &'a Job,
    /// None where only MPIs are compared.
    ours: Option<Ours>,
    peers: Contenders<'a>,
    roles: Vec<Role>,
    shown: &'a Shown<'a, SizeTimes>,
    interrupt: &'a Interrupt,
    done: u64,
}

impl<'a> Measuring<'a> {
    /// Starts everybody.
    ///
    /// # Errors
    /// Our own ranks fail, or all peers do. One peer that does is left out.
    pub fn start(
        job: &'a Job,
        peers: &[Peer],
        cores: usize,
        interrupt: &'a Interrupt,
        shown: &'a Shown<'a, SizeTimes>,
    ) -> Result<Self, BenchError> {
        let setup = Setup {
            ranks: job.ranks,
            cpus: &job.cpus,
            cores,
            buffer_bytes: (job.buffer_bytes() / 2).max(64),
        };
        let roles = peers.iter().map(|peer| peer.role).collect();
        let peers = Contenders::new(peers, !job.mechanisms.is_empty(), setup, interrupt);
        let mut measuring = Self { job, ours: None, peers, roles, shown, interrupt, done: 0 };
        measuring.restart(0)?;
        Ok(measuring)
    }

    /// Ends everybody, and starts them in the order of this pass.
    fn restart(&mut self, pass: u32) -> Result<(), BenchError> {
        self.ours = None;
        let (job, shown) = (self.job, self.shown);
        self.ours = self.peers.restart(pass, &mut |sentence| shown.note(sentence), |note| {
            // What ranks of ours note, they note each time.
            let mut heard = |sentence: &str| {
                if pass == 0 {
                    note(sentence);
                }
            };
            (!job.mechanisms.is_empty()).then(|| Ours::start(job, &mut heard)).transpose()
        })?;
        Ok(())
    }

    /// Measures every size.
    ///
    /// # Errors
    /// One of our ranks fails, or a signal came.
    pub fn run(mut self) -> Result<Vec<SizeTimes>, BenchError> {
        self.shown.begin()?;
        let mut courses = Vec::new();
        let passes = self.peers.passes(self.job.repetitions);
        let mut results = Vec::new();
        for pass in 0..passes {
            if pass > 0 {
                self.restart(pass)?;
            }
            for (index, &bytes) in self.job.sizes.iter().enumerate() {
                if pass == 0 {
                    courses.push(self.course(bytes)?);
                }
                let until = self.job.repetitions * (pass + 1) / passes;
                self.rounds(&mut courses[index], bytes, until)?;
                if pass + 1 == passes {
                    let times = self.over(&mut courses[index], bytes)?;
                    self.shown.size(&times)?;
                    results.push(times);
                }
            }
        }
        Ok(results)
    }

    /// Finds who takes part, and the iterations by the first of them: our own
    /// first mechanism, or the first MPI where there is none.
    fn course(&mut self, bytes: u64) -> Result<Course, BenchError> {
        let new = |who, name: &str, role| Contender {
            who,
            times: Times { name: name.to_owned(), role, usec: Vec::new() },
        };
        let links = self.job.mechanisms.iter().enumerate();
        let mut contenders: Vec<Contender> =
            links.map(|(index, name)| new(Whose::Ours(Who::Link(index)), name, Role::Ours)).collect();
        for (index, name) in self.peers.names() {
            contenders.push(new(Whose::Peer(index), &name, self.roles[index]));
        }
        let iterations = match (self.job.iterations, contenders.first()) {
            (Some(iterations), _) => iterations,
            (None, Some(first)) => self.find_iterations(&first.who.clone(), bytes)?,
            (None, None) => 1,
        };
        for name in self.finalists(bytes, iterations)? {
            contenders.push(new(Whose::Ours(Who::Bare(name.clone())), &name, Role::Limit));
        }
        Ok(Course { iterations, contenders, ways: Vec::new(), verified_messages: 0, rounds: 0 })
    }

    fn find_iterations(&mut self, first: &Whose, bytes: u64) -> Result<u64, BenchError> {
        let (mut warm_up, mut iterations) = (WarmUp::default(), 1);
        loop {
            // One that fails has been noted; the others take as many.
            let Some(seconds) = self.turn(first, bytes, iterations, 0)? else { return Ok(iterations) };
            match warm_up.took(seconds) {
                Next::Try(number) => iterations = number,
                Next::Chosen(number) => return Ok(number),
            }
        }
    }

    /// The fastest bare methods at this size, where the pattern has any.
    fn finalists(&mut self, bytes: u64, iterations: u64) -> Result<Vec<String>, BenchError> {
        let Some(ours) = self.ours.as_mut().filter(|_| self.job.limits) else { return Ok(Vec::new()) };
        let mut fastest: Vec<(f64, String)> = Vec::new();
        for name in ours.bare.clone().into_iter().filter(|name| is_limit(name, bytes, self.job.buffers)) {
            let mut least = f64::INFINITY;
            for _ in 0..TRIALS {
                let seconds = ours.turn(&Who::Bare(name.clone()), bytes, iterations, warm_up(iterations))?;
                least = least.min(seconds);
            }
            fastest.push((least, name));
        }
        fastest.sort_by(|one, other| one.0.total_cmp(&other.0));
        fastest.truncate(FINALISTS);
        Ok(fastest.into_iter().map(|(_, name)| name).collect())
    }

    /// Rounds up to number `until`: each round, everybody has one turn, and each
    /// round another one begins.
    fn rounds(&mut self, course: &mut Course, bytes: u64, until: u32) -> Result<(), BenchError> {
        let before = self.ways()?;
        self.keep_running(course);
        while course.rounds < until {
            let number = course.contenders.len();
            for step in 0..number {
                let at = (step + course.rounds as usize) % number;
                self.interrupt.check()?;
                let contender = &mut course.contenders[at];
                if let Some(seconds) =
                    self.turn(&contender.who, bytes, course.iterations, warm_up(course.iterations))?
                {
                    let usec = self.usec(&contender.who, seconds, course.iterations, bytes);
                    contender.times.usec.push(usec);
                }
            }
            self.keep_running(course);
            course.rounds += 1;
            self.done += 1;
            let total = u64::from(self.job.repetitions) * self.job.sizes.len() as u64;
            self.shown.progress(self.done, total);
        }
        for new in PathCount::since(&before, self.ways()?) {
            new.add_to(&mut course.ways);
        }
        Ok(())
    }

    /// One that has failed, or works no more since a restart, has nothing to compare.
    fn keep_running(&mut self, course: &mut Course) {
        let bare: &[String] = self.ours.as_ref().map_or(&[], |ours| &ours.bare);
        let (peers, shown) = (&self.peers, self.shown);
        course.contenders.retain(|contender| match &contender.who {
            // That one has failed was said.
            Whose::Peer(index) => peers.is_there(*index),
            Whose::Ours(Who::Bare(name)) if !bare.contains(name) => {
                shown.note(&format!("{name} works no more since the ranks were started anew"));
                false
            }
            Whose::Ours(_) => true,
        });
    }

    /// The seconds of a turn; none of a peer that fails in it, which is gone then.
    fn turn(
        &mut self,
        whose: &Whose,
        bytes: u64,
        iterations: u64,
        warm_up: u64,
    ) -> Result<Option<f64>, BenchError> {
        let index = match (whose, &mut self.ours) {
            (Whose::Ours(who), Some(ours)) => return ours.turn(who, bytes, iterations, warm_up).map(Some),
            (Whose::Ours(_), None) => return Ok(None),
            (Whose::Peer(index), _) => *index,
        };
        let pattern = self.job.pattern;
        let turn = Turn {
            pattern: pattern.name(),
            bytes,
            window: pattern.window(bytes, self.job.ranks),
            iterations,
            warm_up,
            in_use: self.job.in_use,
            rotate: self.job.rotation_bytes.is_some(),
        };
        match self.peers.turn(index, &turn) {
            Ok(seconds) if pattern.times_slowest() => Ok(seconds.into_iter().reduce(f64::max)),
            Ok(seconds) => Ok(seconds.first().copied()),
            Err(sentence) => {
                self.shown.note(&sentence);
                Ok(None)
            }
        }
    }

    /// Which way our first mechanism's messages have gone so far.
    fn ways(&mut self) -> Result<Vec<PathCount>, BenchError> {
        self.ours.as_mut().map_or_else(|| Ok(Vec::new()), |ours| ours.ways(0))
    }

    fn usec(&self, whose: &Whose, seconds: f64, iterations: u64, bytes: u64) -> f64 {
        match whose {
            // Half a round trip.
            Whose::Ours(Who::Bare(_)) => Pattern::Limits.usec(seconds, iterations, bytes),
            _ => self.job.pattern.usec(seconds, iterations, bytes),
        }
    }

    fn over(&mut self, course: &mut Course, bytes: u64) -> Result<SizeTimes, BenchError> {
        if let Some(ours) = self.ours.as_mut().filter(|_| self.job.verify) {
            course.verified_messages = ours.verify(0, bytes)?;
        }
        Ok(SizeTimes {
            bytes,
            iterations: course.iterations,
            times: course.contenders.iter().map(|contender| contender.times.clone()).collect(),
            ways: course.ways.iter().filter(|way| way.messages > 0).cloned().collect(),
            verified_messages: course.verified_messages,
        })
    }
}

/// At least two: the first finds cold caches, and so does the other side's.
pub(crate) fn warm_up(iterations: u64) -> u64 {
    (iterations / WARM_UP_PART).max(2)
}

/// Whether a bare method bounds a message of this length between such buffers.
fn is_limit(name: &str, bytes: u64, buffers: Memory) -> bool {
    let is_shared = buffers == Memory::Shared;
    METHODS.iter().filter(|method| method.name == name).any(|method| match method.work {
        Work::Hop => bytes <= LINE_BYTES,
        work => bytes > 0 && work.moves_bytes() && work.has_shared_buffers() == is_shared,
    })
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
