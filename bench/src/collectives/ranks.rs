//! Our ranks, seen from the command.
#![forbid(unsafe_code)]

use std::time::Duration;

use lmt::EndpointId;
use lmt_core::random;
use nix::unistd::Pid;

use super::plan::Plan;
use super::rank::RANK_COMMAND;
use super::words::{Answer, Ask, Assignment};
use crate::error::BenchError;
use crate::processes::{Processes, failure};

/// How long nothing may be heard from any rank before the run is given up.
const SILENCE: Duration = Duration::from_secs(120);
/// How long they may take to end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The ranks; they end with it.
pub struct Ranks {
    /// None once they have ended.
    processes: Option<Processes<Answer>>,
    number: u32,
}

/// What a turn came to.
#[derive(Debug)]
pub enum Turned {
    /// The seconds of the slowest rank.
    Slowest(f64),
    /// The algorithm cannot do it: why.
    Unsuitable(String),
}

impl Ranks {
    /// Starts them and lets them know each other.
    ///
    /// # Errors
    /// One fails or ends.
    pub fn start(plan: &Plan) -> Result<Self, BenchError> {
        Self::started(plan, Processes::start)
    }

    /// The same, of processes that find none of the user's settings.
    ///
    /// # Errors
    /// One fails or ends.
    pub fn start_without_settings(plan: &Plan) -> Result<Self, BenchError> {
        Self::started(plan, Processes::start_without_settings)
    }

    fn started(
        plan: &Plan,
        start: impl FnOnce(&str, &[Assignment]) -> Result<Processes<Answer>, BenchError>,
    ) -> Result<Self, BenchError> {
        let id = random::bytes()
            .map(EndpointId::from_bytes)
            .map_err(|error| failure("no group can be named", &error.into()))?;
        let parent = Pid::this().as_raw();
        let assignment = |rank| Assignment { rank, parent, group: id.to_string(), plan: plan.clone() };
        let assignments: Vec<Assignment> = (0..plan.ranks).map(assignment).collect();
        let processes = start(RANK_COMMAND, &assignments)?;
        let mut ranks = Self { processes: Some(processes), number: plan.ranks };
        ranks.answers()?;
        Ok(ranks)
    }

    /// Ends them; they are of no more use then.
    pub fn end(&mut self) {
        if let Some(processes) = self.processes.take() {
            processes.end(END_LIMIT);
        }
    }

    /// Does a turn.
    ///
    /// # Errors
    /// A rank fails or ends.
    pub fn turn(
        &mut self,
        contender: usize,
        bytes: u64,
        iterations: u64,
        warm_up: u64,
    ) -> Result<Turned, BenchError> {
        self.ask(&Ask::Turn { contender, bytes, iterations, warm_up })?;
        let mut slowest = 0.0;
        let mut unsuitable = None;
        for answer in self.answers()? {
            match answer {
                Answer::Timed { seconds } => slowest = f64::max(slowest, seconds),
                Answer::Unsuitable(reason) => unsuitable = Some(reason),
                _ => return Err(BenchError::Failure("a rank answers what nobody has asked".into())),
            }
        }
        Ok(unsuitable.map_or(Turned::Slowest(slowest), Turned::Unsuitable))
    }

    /// Checks a call's bytes.
    ///
    /// # Errors
    /// One is wrong, or a rank fails or ends.
    pub fn verify(&mut self, contender: usize, bytes: u64) -> Result<(), BenchError> {
        self.ask(&Ask::Verify { contender, bytes })?;
        self.answers().map(drop)
    }

    /// What the library chooses, and why.
    ///
    /// # Errors
    /// A rank fails or ends.
    pub fn explain(&mut self, bytes: u64) -> Result<Option<(String, String)>, BenchError> {
        self.ask(&Ask::Explain { bytes })?;
        Ok(self.answers()?.into_iter().find_map(|answer| match answer {
            Answer::Chosen { algorithm, reason } => Some((algorithm, reason)),
            _ => None,
        }))
    }

    fn processes(&mut self) -> Result<&mut Processes<Answer>, BenchError> {
        self.processes.as_mut().ok_or_else(|| BenchError::Failure("the ranks have ended".into()))
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), BenchError> {
        self.processes()?.tell(ask).map_err(|error| failure("a rank cannot be told its turn", &error))
    }

    /// One answer of each rank.
    fn answers(&mut self) -> Result<Vec<Answer>, BenchError> {
        let number = self.number;
        let processes = self.processes()?;
        let mut answers = Vec::new();
        while answers.len() < number as usize {
            match processes.next_within(SILENCE)? {
                Some((_, Answer::Failed(sentence))) => return Err(BenchError::Failure(sentence)),
                Some((_, answer)) => answers.push(answer),
                None => {
                    return Err(BenchError::Failure(format!(
                        "no answer from the ranks for {} s; try fewer ranks or smaller sizes",
                        SILENCE.as_secs()
                    )));
                }
            }
        }
        Ok(answers)
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.end();
    }
}
