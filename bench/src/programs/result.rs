//! What the runs of a program say: each figure over both transports, and their ratio.

use serde::Serialize;

use super::figures::{Better, FigureRule, Role};
use super::run::rules;
use super::target::Case;
use super::turns::{Turns, Verdict};
use crate::statistics::Statistics;
use crate::stats::{Spread, ratios};

/// One figure of all turns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureResult {
    /// Its name.
    pub name: String,
    /// What it is counted in.
    pub unit: String,
    /// Whether more is better.
    pub better: Better,
    /// What it stands for.
    pub role: Role,
    /// Over the MPI's own transport, turn by turn.
    pub own: Vec<f64>,
    /// Over lmt, turn by turn.
    pub lmt: Vec<f64>,
    /// How many times as good it is over lmt.
    pub ratio: Option<Spread>,
}

impl FigureResult {
    fn of(rule: FigureRule, own: Vec<f64>, lmt: Vec<f64>) -> Self {
        let pairs = match rule.better {
            Better::Lower => ratios(&own, &lmt),
            Better::Higher => ratios(&lmt, &own),
        };
        let FigureRule { name, unit, better, role, .. } = rule;
        Self { name, unit, better, role, own, lmt, ratio: Spread::of(&pairs) }
    }
}

/// One program with one MPI and so many ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseResult {
    /// The program.
    pub program: String,
    /// What it is.
    pub title: String,
    /// What it does, in words.
    pub kind: &'static str,
    /// The MPI and its version.
    pub mpi: String,
    /// Processes.
    pub ranks: u32,
    /// What it came to.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Its figures.
    pub figures: Vec<FigureResult>,
    /// Which paths the bytes took.
    pub paths: String,
    /// How many bytes each run over lmt received, in the mean.
    pub bytes: u64,
}

impl CaseResult {
    /// What the turns of a case say.
    pub fn of(case: &Case<'_>, turns: &Turns) -> Self {
        let column = |runs: &[super::run::Ran], index: usize| -> Vec<f64> {
            runs.iter().filter_map(|run| run.figures.get(index).copied()).collect()
        };
        let figure =
            |(index, rule)| FigureResult::of(rule, column(&turns.own, index), column(&turns.lmt, index));
        let told: String = turns.lmt.iter().map(|run| run.statistics.as_str()).collect();
        let statistics = Statistics::of(&told);
        Self {
            program: case.program.name.clone(),
            title: case.program.title.clone(),
            kind: case.program.kind.name(),
            mpi: format!("{} {}", case.mpi.name, case.mpi.version),
            ranks: case.ranks,
            verdict: turns.verdict.clone(),
            figures: rules(case.program).into_iter().enumerate().map(figure).collect(),
            paths: statistics.shares(),
            bytes: statistics.bytes() / turns.lmt.len().max(1) as u64,
        }
    }

    /// The median ratio of the figure with this role.
    pub fn ratio(&self, role: Role) -> Option<f64> {
        let figure = self.figures.iter().find(|figure| figure.role == role)?;
        figure.ratio.map(|ratio| ratio.median)
    }
}

/// The least ratio at which a time counts as no slower: 5 % are what runs differ by.
const NO_SLOWER: f64 = 1.0 / 1.05;

/// What all programs come to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// That do not fail over their own transport too.
    pub all: usize,
    /// That ended and were right in every turn.
    pub right: usize,
    /// Whose time over lmt is at most 5 % longer.
    pub no_slower: usize,
    /// Whose time was compared.
    pub timed: usize,
    /// Whose communication takes less time over lmt.
    pub faster_communication: usize,
    /// That tell their time in communication.
    pub with_communication: usize,
}

impl Totals {
    /// Of these results.
    pub fn of(results: &[CaseResult]) -> Self {
        let right: Vec<&CaseResult> =
            results.iter().filter(|result| result.verdict == Verdict::Right).collect();
        let ratios = |role| right.iter().filter_map(move |result| result.ratio(role)).collect::<Vec<f64>>();
        let (times, communication) = (ratios(Role::Time), ratios(Role::Communication));
        let counts = |result: &&CaseResult| !matches!(result.verdict, Verdict::OwnFails(_));
        Self {
            all: results.iter().filter(counts).count(),
            right: right.len(),
            no_slower: times.iter().filter(|&&ratio| ratio >= NO_SLOWER).count(),
            timed: times.len(),
            faster_communication: communication.iter().filter(|&&ratio| ratio > 1.0).count(),
            with_communication: communication.len(),
        }
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
