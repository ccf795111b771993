//! One rank of an application: the mechanisms and algorithms take turns, run by run,
//! so that what slows the machine for a while slows all of them alike.

use std::io::BufRead;
use std::time::{Duration, Instant};

use lmt::{Address, Endpoint};
use lmt_collectives::{Algorithm, Group, GroupError};
use serde::{Deserialize, Serialize};

use super::application::{AppError, Application, Round};
use super::comm::Comm;
use super::job::{AppJob, Outcome, Turn};
use crate::collectives::args::AUTO;
use crate::ending::end_with;
use crate::error::BenchError;
use crate::group::{self, Tell};
use crate::job::{Event, RankCard};
use crate::rank_side::{pin, read_line};

/// The hidden subcommand.
pub const RANK_COMMAND: &str = "app-rank";

/// How often the command is told how far a run has come.
const TELLING: Duration = Duration::from_secs(1);
/// Parts of a run that are told apart.
const PARTS: u64 = 1000;

/// What a rank is told first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Its number.
    pub rank: u32,
    /// The command's process.
    pub parent: i32,
    /// What all of them do.
    pub job: AppJob,
}

/// The whole life of the process behind the hidden subcommand. Its failure travels as
/// an event.
///
/// # Errors
/// [`BenchError::RankFailed`], once the command knows why.
pub fn rank_main() -> Result<(), BenchError> {
    group::live(|input, tell| {
        let Assignment { rank, parent, job } = read_line(input)?;
        end_with(parent)?;
        if let Some(&cpu) = job.cpus.get(rank as usize) {
            pin(rank, cpu)?;
        }
        let endpoints = group::open_all(&job.mechanisms)?;
        let groups = meet(&job, &endpoints, input, tell)?;
        let application = job.problem.start(rank, &job)?;
        Course {
            job: &job,
            rank,
            groups: &groups,
            application,
            tell,
            left_out: Vec::new(),
            done: 0,
            total: 0,
        }
        .run()
    })
}

/// Makes a group for each mechanism, of the endpoints of all ranks.
fn meet<'e>(
    job: &AppJob,
    endpoints: &'e [Endpoint],
    input: &mut impl BufRead,
    tell: Tell<'_>,
) -> Result<Vec<Group<'e>>, BenchError> {
    let addresses = endpoints.iter().map(|endpoint| endpoint.address().to_bytes()).collect();
    tell(Event::Card(RankCard { addresses, ..RankCard::default() }))?;
    let cards: Vec<RankCard> = read_line(input)?;
    let group = |(index, endpoint): (usize, &'e Endpoint)| {
        let addresses = cards.iter().map(|card| card.addresses.get(index).map_or(&[][..], Vec::as_slice));
        let addresses: Vec<Address> = addresses
            .map(|bytes| Address::from_bytes(bytes).map_err(|error| failed(job, index, &error)))
            .collect::<Result<_, _>>()?;
        Group::create(endpoint, &addresses).map_err(|error| failed(job, index, &error))
    };
    endpoints.iter().enumerate().map(group).collect()
}

fn failed(job: &AppJob, mechanism: usize, error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Mechanism { name: job.mechanisms[mechanism].clone(), sentence: error.to_string() }
}

/// An algorithm that cannot do the application's operation with a mechanism.
#[derive(Clone, Debug)]
struct LeftOut {
    /// The mechanism's place in the job.
    mechanism: usize,
    algorithm: String,
    reason: String,
}

/// A rank at work.
struct Course<'a> {
    job: &'a AppJob,
    rank: u32,
    groups: &'a [Group<'a>],
    application: Box<dyn Application>,
    tell: Tell<'a>,
    /// What cannot do it, in the order of turns.
    left_out: Vec<LeftOut>,
    /// Runs that are over.
    done: u64,
    total: u64,
}

impl Course<'_> {
    fn run(mut self) -> Result<(), BenchError> {
        let mut turns: Vec<(usize, Turn)> = self.job.turns().into_iter().enumerate().collect();
        self.total = turns.len() as u64 * u64::from(self.job.repetitions);
        for _ in 0..self.job.repetitions {
            let mut left = Vec::with_capacity(turns.len());
            for (index, turn) in turns {
                if self.turn(index, turn)? {
                    left.push((index, turn));
                }
                self.done += 1;
                self.tell(Event::Progress { done: self.done * PARTS, total: self.total * PARTS })?;
            }
            turns = left;
            self.tell_left_out()?;
        }
        Ok(())
    }

    /// One sentence for those of a mechanism that are left out for the same reason.
    fn tell_left_out(&mut self) -> Result<(), BenchError> {
        let mut left = std::mem::take(&mut self.left_out);
        while let Some(LeftOut { mechanism, reason, .. }) = left.first().cloned() {
            let alike = left.extract_if(.., |one| one.mechanism == mechanism && one.reason == reason);
            let names: Vec<String> = alike.map(|one| one.algorithm).collect();
            let (name, names) = (&self.job.mechanisms[mechanism], names.join(" and by "));
            let sentence = format!("{name} by {names} is left out: it cannot do this call: {reason}");
            self.tell(Event::Note(sentence))?;
        }
        Ok(())
    }

    /// One run; false if the algorithm cannot do it, as all ranks find.
    fn turn(&mut self, index: usize, turn: Turn) -> Result<bool, BenchError> {
        let Turn { mechanism, .. } = turn;
        let of_mechanism = |error: &dyn std::fmt::Display| failed(self.job, mechanism, error);
        let algorithm = self.algorithm(turn)?;
        let comm = Comm::new(&self.groups[mechanism], algorithm).map_err(|error| of_mechanism(&error))?;
        let mut watch = watch(self.rank, (self.done, self.total), self.tell);
        match self.application.run(&comm, &mut watch) {
            Ok(round) => {
                drop(watch);
                let outcome = self.outcome(index, turn, &comm, round)?;
                self.tell(Event::Outcome(outcome))?;
                Ok(true)
            }
            Err(AppError::Group(GroupError::Unsuitable(why))) => {
                drop(watch);
                let algorithm = self.job.algorithms[turn.algorithm].clone();
                self.left_out.push(LeftOut { mechanism, algorithm, reason: why.reason });
                Ok(false)
            }
            Err(AppError::Group(error)) => Err(of_mechanism(&error)),
            Err(AppError::Bench(error)) => Err(error),
        }
    }

    fn algorithm(&self, turn: Turn) -> Result<Option<Algorithm>, BenchError> {
        match self.job.algorithms[turn.algorithm].as_str() {
            AUTO => Ok(None),
            name => name.parse().map(Some).map_err(|error| BenchError::Usage(format!("{error}"))),
        }
    }

    fn name(&self, turn: Turn) -> String {
        format!("{} by {}", self.job.mechanisms[turn.mechanism], self.job.algorithms[turn.algorithm])
    }

    /// What the ranks have found together; each says what it found wrong.
    fn outcome(
        &mut self,
        index: usize,
        turn: Turn,
        comm: &Comm<'_>,
        round: Round,
    ) -> Result<Outcome, BenchError> {
        let Round { seconds, communication_seconds, finding } = round;
        if let Some(fault) = &finding.fault {
            let note = format!("verification of {}, rank {}: {fault}", self.name(turn), self.rank);
            (self.tell)(Event::Note(note))?;
        }
        let is_wrong = u64::from(finding.fault.is_some());
        let own = [seconds.to_bits(), communication_seconds.to_bits(), finding.checks, is_wrong];
        let of_mechanism = |error: GroupError| failed(self.job, turn.mechanism, &error);
        let all = comm.all_have(own).map_err(of_mechanism)?;
        let algorithm = self.application.algorithm(comm).map_err(of_mechanism)?.to_string();
        let checks = all.iter().map(|rank| rank[2]).sum();
        let is_enough = self.application.checks().is_none_or(|wanted| wanted == checks);
        if !is_enough && self.rank == 0 {
            let name = self.name(turn);
            let note = format!("verification of {name}: {checks} of the published results came out");
            (self.tell)(Event::Note(note))?;
        }
        let communication: f64 = all.iter().map(|rank| f64::from_bits(rank[1])).sum();
        Ok(Outcome {
            turn: index,
            algorithm,
            seconds: all.iter().map(|rank| f64::from_bits(rank[0])).fold(0.0, f64::max),
            communication_seconds: communication / all.len() as f64,
            checks,
            verified: is_enough && checks > 0 && all.iter().all(|rank| rank[3] == 0),
        })
    }

    fn tell(&mut self, event: Event) -> Result<(), BenchError> {
        if self.rank == 0 { (self.tell)(event) } else { Ok(()) }
    }
}

/// Rank 0 says now and then how far a run has come: it may take longer than a silent
/// rank is waited for.
fn watch<'a>(
    rank: u32,
    (done, total): (u64, u64),
    tell: Tell<'a>,
) -> impl FnMut(u32, u32) -> Result<(), BenchError> + 'a {
    let mut told = Instant::now();
    move |part, parts| {
        if rank != 0 || told.elapsed() < TELLING {
            return Ok(());
        }
        told = Instant::now();
        let part = PARTS * u64::from(part) / u64::from(parts.max(1));
        tell(Event::Progress { done: done * PARTS + part, total: total * PARTS })
    }
}
