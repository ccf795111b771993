//! A rank of a collective benchmark: it does the turns that the command asks for,
//! and sleeps in between.
#![forbid(unsafe_code)]

use std::io::{self, BufRead};
use std::time::Instant;

use lmt::{Endpoint, EndpointId};
use lmt_collectives::{Element, Group, GroupError, Operation, Operator, Reduction};

use super::calls::{Calls, GARBAGE, lengths};
use super::contention;
use super::plan::{Plan, Turns};
use super::words::{Answer, Ask, Assignment, Outcome};
use super::workload::Work;
use crate::ending::end_with;
use crate::error::BenchError;
use crate::memory::Held;
use crate::patterns::arena::Arena;
use crate::patterns::guarded::{Against, Guarded};
use crate::patterns::handling::read_all;
use crate::processes::failure;
use crate::rank_side::{next_line, pin, read_line, tell};

/// The hidden subcommand.
pub const RANK_COMMAND: &str = "collectives-rank";

/// The whole life of the process behind the hidden subcommand. Its failure travels
/// as an answer.
///
/// # Errors
/// [`BenchError::RankFailed`], once the command knows why.
pub fn rank_main() -> Result<(), BenchError> {
    let mut input = io::stdin().lock();
    live(&mut input).or_else(|error| {
        tell(&Answer::Failed(error.to_string()))?;
        Err(BenchError::RankFailed)
    })
}

fn live(input: &mut impl BufRead) -> Result<(), BenchError> {
    let Assignment { rank, parent, group, plan } = read_line(input)?;
    end_with(parent)?;
    if let Some(&cpu) = plan.cpus.get(rank as usize) {
        pin(rank, cpu)?;
    }
    let failed = |error: &dyn std::fmt::Display| BenchError::Failure(error.to_string());
    let id: EndpointId = group.parse().map_err(|error| failed(&error))?;
    let endpoint = Endpoint::builder().id(id.member(rank)).build().map_err(|e| failed(&e))?;
    let folder = std::env::var_os(lmt::launch::ENV_SOCKET_DIR).filter(|folder| !folder.is_empty());
    let folder = folder.as_deref().map(std::path::Path::new);
    let launch = lmt::launch::Group::new(rank, plan.ranks, id, folder).map_err(|e| failed(&e))?;
    let group = Group::from_launch(&endpoint, &launch).map_err(|e| failed(&e))?;
    match plan.work {
        Work::Collective(kind) => {
            let sum = Reduction::new(Operator::Sum, Element::F32).map_err(|e| failed(&e))?;
            let calls = Calls { kind, rank, ranks: plan.ranks, sum };
            let mut caller = Caller::new(&plan, &group, calls)?;
            tell(&Answer::Ready)?;
            serve(input, |ask| caller.answer(ask))
        }
        Work::Contention(access) => contention::with_accessor(&plan, access, &endpoint, &group, |accessor| {
            tell(&Answer::Ready)?;
            serve(input, |ask| accessor.answer(ask))
        }),
    }
}

fn serve(input: &mut impl BufRead, mut answer: impl FnMut(Ask) -> Outcome) -> Result<(), BenchError> {
    while let Some(ask) = next_line(input)? {
        tell(&answer(ask)?)?;
    }
    Ok(())
}

/// What went wrong in a call.
enum Trouble {
    /// The algorithm cannot do it.
    Unsuitable(String),
    Other(BenchError),
}

impl From<GroupError> for Trouble {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::Unsuitable(unsuitable) => Self::Unsuitable(unsuitable.reason),
            other => Self::Other(BenchError::Failure(other.to_string())),
        }
    }
}

/// Answers where it is known what a call comes to.
fn told(result: Result<Answer, Trouble>) -> Outcome {
    match result {
        Ok(answer) => Ok(answer),
        Err(Trouble::Unsuitable(reason)) => Ok(Answer::Unsuitable(reason)),
        Err(Trouble::Other(error)) => Err(error),
    }
}

/// Calls a collective operation.
struct Caller<'a> {
    plan: &'a Plan,
    group: &'a Group<'a>,
    calls: Calls,
    input: Held,
    output: Held,
    /// Where rotation goes on.
    used_bytes: (usize, usize),
}

impl<'a> Caller<'a> {
    fn new(plan: &'a Plan, group: &'a Group<'a>, calls: Calls) -> Result<Self, BenchError> {
        let bytes = usize::try_from(plan.buffer_bytes())
            .map_err(|_| BenchError::Failure("the buffers do not fit into memory".into()))?;
        // No rank's input says the same as another's.
        let seed = (2 * calls.rank) as u8;
        let (input, output) = (plan.buffers.mixed(bytes, seed)?, plan.buffers.mixed(bytes, seed + 1)?);
        Ok(Self { plan, group, calls, input, output, used_bytes: (0, 0) })
    }

    fn answer(&mut self, ask: Ask) -> Outcome {
        told(match ask {
            Ask::Turn { contender, bytes, iterations, warm_up } => {
                self.turn(contender, bytes, iterations, warm_up).map(|seconds| Answer::Timed { seconds })
            }
            Ask::Verify { contender, bytes } => self.verify(contender, bytes).map(|()| Answer::Verified),
            Ask::Explain { bytes } => self.explain(bytes),
        })
    }

    /// The algorithm of a contender; none where the library chooses.
    fn algorithm(&self, contender: usize) -> Result<Option<lmt_collectives::Algorithm>, Trouble> {
        let unknown = || Trouble::Other(BenchError::Failure("this turn is nobody's".into()));
        match self.plan.contenders.get(contender) {
            Some(Turns::Algorithm(name)) if name == super::args::AUTO => Ok(None),
            Some(Turns::Algorithm(name)) => name.parse().map(Some).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }

    fn lengths(&self, bytes: u64) -> Result<(usize, usize), Trouble> {
        lengths(self.calls.kind, bytes, self.plan.ranks)
            .ok_or_else(|| Trouble::Other(BenchError::Failure("this size does not fit into memory".into())))
    }

    fn turn(&mut self, contender: usize, bytes: u64, iterations: u64, warm_up: u64) -> Result<f64, Trouble> {
        let algorithm = self.algorithm(contender)?;
        let lengths = self.lengths(bytes)?;
        let rotate = self.plan.rotation_bytes.is_some();
        let short = || Trouble::Other(BenchError::Failure("the buffers are too short for this size".into()));
        let mut input = Arena::new(&mut self.input, lengths.0, 1, rotate).ok_or_else(short)?;
        let mut output = Arena::new(&mut self.output, lengths.1, 1, rotate).ok_or_else(short)?;
        input.start_at(self.used_bytes.0);
        output.start_at(self.used_bytes.1);
        let mut seconds = 0.0;
        for number in 0..warm_up + iterations {
            let (from, into) = (input.slot(), output.slot());
            self.group.run(Operation::barrier())?;
            let start = Instant::now();
            if self.plan.in_use && self.calls.has_input() {
                from.fill(number as u8);
            }
            self.group.run(self.calls.operation(from, into).by(algorithm))?;
            if self.plan.in_use && self.calls.has_output() {
                read_all(into);
            }
            let one = start.elapsed().as_secs_f64();
            seconds += if number < warm_up { 0.0 } else { one };
        }
        self.used_bytes = (input.position_bytes(), output.position_bytes());
        Ok(seconds)
    }

    /// Between guard pages, once against either.
    fn verify(&mut self, contender: usize, bytes: u64) -> Result<(), Trouble> {
        let algorithm = self.algorithm(contender)?;
        let (input, output) = self.lengths(bytes)?;
        for against in [Against::Front, Against::Back] {
            let memory = |bytes| {
                Guarded::new(bytes, against)
                    .map_err(|error| Trouble::Other(failure("there is no memory to check in", &error)))
            };
            let (mut from, mut into) = (memory(input)?, memory(output)?);
            self.calls.fill(bytes, from.as_mut_slice());
            into.as_mut_slice().fill(GARBAGE);
            self.group.run(self.calls.operation(from.as_mut_slice(), into.as_mut_slice()).by(algorithm))?;
            let wrong =
                self.calls.has_output().then(|| self.calls.wrong(bytes, into.as_mut_slice())).flatten();
            if let Some(at) = wrong {
                let Calls { kind, rank, .. } = self.calls;
                let name = super::args::name_of(algorithm);
                return Err(Trouble::Other(BenchError::Failure(format!(
                    "{kind} by {name} at {bytes} bytes: rank {rank}'s output is wrong from byte or element {at} on"
                ))));
            }
        }
        Ok(())
    }

    fn explain(&mut self, bytes: u64) -> Result<Answer, Trouble> {
        let (input, output) = self.lengths(bytes)?;
        let operation = self.calls.operation(&mut self.input[..input], &mut self.output[..output]);
        let (algorithm, reason) = self.group.explain(&operation)?;
        Ok(Answer::Chosen { algorithm: algorithm.to_string(), reason })
    }
}
