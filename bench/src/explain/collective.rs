//! Which algorithm a collective operation takes, and by which mechanism its ranks copy.
//! A second process is started only to find out which mechanisms work, where some is asked for.

use std::fmt::Write;

use lmt::selection::{Source, Taken};
use lmt_collectives::explain::{Explanation, Question, explain};
use lmt_collectives::{Copies, Kind};
use serde::Serialize;

use super::args::{ExplainArgs, ExplainFormat};
use super::copies::Asked;
use crate::console::{json, print};
use crate::error::BenchError;
use crate::sizes::human;

/// How many predictions are shown.
const SHOWN: usize = 6;

/// What is told, for programs.
#[derive(Debug, Serialize)]
struct Answer {
    operation: &'static str,
    ranks: u32,
    /// Whether all ranks may reach into each other's memory.
    single_copy: bool,
    /// How it is known which mechanisms work, where ranks copy by some.
    #[serde(skip_serializing_if = "Option::is_none")]
    mechanisms: Option<String>,
    /// One for each length.
    calls: Vec<Told>,
    /// Remarks of the configuration.
    remarks: Vec<String>,
}

/// One call.
#[derive(Debug, Serialize)]
struct Told {
    /// The message, one rank's block or the vector.
    bytes: u64,
    algorithm: String,
    /// Who has spoken and why.
    reason: String,
    /// Rules that cannot do the call, a sentence each.
    passed_over: Vec<String>,
    /// The fastest first.
    predicted: Vec<Prediction>,
    /// The gets and puts of ranks.
    copies: Vec<Copied>,
}

/// Gets or puts of ranks, and by which mechanism they go.
#[derive(Debug, Serialize)]
struct Copied {
    /// How many bytes at a time, in words.
    what: String,
    /// The mechanism; none where none reaches others' memory.
    mechanism: Option<String>,
    /// The rule that spoke, in words.
    rule: String,
    /// Where it comes from.
    source: Source,
}

impl Copied {
    fn of(copies: &Copies, asked: &Asked) -> Self {
        let lmt::Explanation { taken, rule, source, .. } = asked.explain(copies);
        let mechanism = match taken {
            Taken::By { mechanism, .. } => Some(mechanism),
            _ => None,
        };
        Self { what: copies.to_string(), mechanism, rule, source }
    }
}

/// What the model says of one algorithm.
#[derive(Debug, Serialize)]
struct Prediction {
    algorithm: String,
    usec: f64,
}

/// `lmt explain --collective`.
///
/// # Errors
/// The configuration is wrong.
pub fn run(kind: Kind, args: &ExplainArgs) -> Result<(), BenchError> {
    let configuration = super::configuration(args.config.as_deref())?;
    let ranks = args.ranks.unwrap_or(1);
    // A barrier has no bytes.
    let lengths = if kind == Kind::Barrier { vec![0] } else { args.lengths() };
    let explained = |bytes| {
        let question = Question { kind, ranks, bytes, single_copy: !args.denied };
        let explained = explain(&configuration, question);
        explained.map(|one| (bytes, one)).map_err(|error| BenchError::Failure(error.to_string()))
    };
    let explained: Vec<(u64, Explanation)> = lengths.into_iter().map(explained).collect::<Result<_, _>>()?;
    let copies = explained.iter().any(|(_, one)| !one.copies.is_empty());
    let asked = copies.then(|| Asked::new(&configuration, ranks, args)).transpose()?;
    let answer = Answer {
        operation: kind.name(),
        ranks,
        single_copy: !args.denied,
        mechanisms: asked.as_ref().map(|asked| asked.availability.clone()),
        calls: explained.into_iter().map(|(bytes, one)| Told::of(bytes, one, asked.as_ref())).collect(),
        remarks: configuration.remarks.clone(),
    };
    print(&match args.format {
        ExplainFormat::Json => json(&answer)?,
        ExplainFormat::Text if args.table => answer.table(),
        ExplainFormat::Text => answer.text(),
    })
}

impl Told {
    fn of(bytes: u64, explanation: Explanation, asked: Option<&Asked>) -> Self {
        let Explanation { algorithm, reason, passed_over, predicted_us, copies } = explanation;
        let predicted = predicted_us
            .into_iter()
            .map(|(algorithm, usec)| Prediction { algorithm: algorithm.to_string(), usec })
            .collect();
        let copies = asked
            .map_or_else(Vec::new, |asked| copies.iter().map(|copies| Copied::of(copies, asked)).collect());
        Self { bytes, algorithm: algorithm.to_string(), reason, passed_over, predicted, copies }
    }
}

impl Answer {
    /// What holds for all lengths, above them.
    fn preamble(&self) -> String {
        let single_copy = match self.single_copy {
            true => "taken to work between all ranks; --denied tells of those where it does not",
            false => "denied between some ranks",
        };
        let mechanisms =
            self.mechanisms.as_ref().map_or_else(String::new, |how| format!("mechanisms   {how}\n"));
        format!(
            "operation    {} on {} ranks\nsingle copy  {single_copy}\n{mechanisms}",
            self.operation, self.ranks
        )
    }

    fn text(&self) -> String {
        let mut text = self.preamble();
        for call in &self.calls {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "\n{} bytes: {}\n  by    {}", call.bytes, call.algorithm, call.reason);
            for Copied { what, mechanism, rule, source } in &call.copies {
                let mechanism =
                    mechanism.as_deref().unwrap_or("nothing: no mechanism reaches others' memory");
                let _ = writeln!(text, "  copy  {what} by {mechanism} ({rule}, {source})");
            }
            for sentence in &call.passed_over {
                let _ = writeln!(text, "  note  {sentence}");
            }
            for Prediction { algorithm, usec } in call.predicted.iter().take(SHOWN) {
                let _ = writeln!(text, "  model {usec:>12.2} us  {algorithm}");
            }
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "\nNote: {remark}.");
        }
        text
    }

    /// One line for each length.
    fn table(&self) -> String {
        let width = self.calls.iter().map(|call| call.algorithm.len()).max().unwrap_or_default().max(9);
        let mut text = self.preamble();
        let _ = writeln!(text, "\n{:>9}  {:width$}  by", "bytes", "algorithm");
        for call in &self.calls {
            let _ = writeln!(text, "{:>9}  {:width$}  {}", human(call.bytes), call.algorithm, call.reason);
        }
        text
    }
}
