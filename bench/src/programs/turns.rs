//! The turns of one program: over its MPI's own transport and over lmt, the first
//! changing from turn to turn, and what they come to.

use super::check::agree;
use super::run::{Attempt, Failure, Ran};
use crate::error::BenchError;
use crate::peers::transport::Transport;

/// So often the program is tried over its own transport when it has failed over lmt.
const OWN_TRIES: u32 = 5;

/// What the runs of a program came to.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// All ended and were right.
    Right,
    /// It fails, hangs or is wrong over its own transport too, and so counts for nothing.
    OwnFails(String),
    /// It fails, hangs or is wrong over lmt alone.
    LmtFails(String),
}

/// The runs of a program that were right: of each turn both, or neither.
#[derive(Clone, Debug, PartialEq)]
pub struct Turns {
    /// What it came to.
    pub verdict: Verdict,
    /// Over the MPI's own transport; empty where it is not compared with.
    pub own: Vec<Ran>,
    /// Over lmt.
    pub lmt: Vec<Ran>,
}

/// Runs a program in turns. `run` gets the transport and a label for the run;
/// `with_own` is whether it runs over its own transport at all while it is right.
///
/// # Errors
/// A signal came.
pub fn take_turns(
    turns: u32,
    with_own: bool,
    run: &mut dyn FnMut(Transport, &str) -> Attempt,
) -> Result<Turns, BenchError> {
    let mut all = Turns { verdict: Verdict::Right, own: Vec::new(), lmt: Vec::new() };
    for turn in 0..turns {
        let order = match (with_own, turn % 2) {
            (false, _) => vec![Transport::Lmt],
            (true, 0) => vec![Transport::Default, Transport::Lmt],
            (true, _) => vec![Transport::Lmt, Transport::Default],
        };
        let (mut own, mut lmt) = (None, None);
        for transport in order {
            let label = format!("{}-{}", name(transport), turn + 1);
            match (transport, run(transport, &label)?) {
                (Transport::Lmt, Ok(ran)) => lmt = Some(ran),
                (_, Ok(ran)) => own = Some(ran),
                (Transport::Lmt, Err(failure)) => {
                    all.verdict = over_lmt(sentence(failure), None, run)?;
                    return Ok(all);
                }
                (_, Err(failure)) => {
                    all.verdict = Verdict::OwnFails(sentence(failure));
                    return Ok(all);
                }
            }
        }
        if let (Some(lmt), Some(own)) = (&lmt, &own)
            && let Err(difference) = agree(&lmt.printed, &own.printed)
        {
            all.verdict = over_lmt(format!("its result is wrong: {difference}"), Some(own), run)?;
            return Ok(all);
        }
        all.own.extend(own);
        all.lmt.extend(lmt);
    }
    Ok(all)
}

/// Whether a program that has failed over lmt fails over its own transport too, in one of some
/// further runs; or, where it has ended over lmt with a result that differs from that of a run over
/// its own transport, whether those of its own transport differ as well.
fn over_lmt(
    why: String,
    differs_from: Option<&Ran>,
    run: &mut dyn FnMut(Transport, &str) -> Attempt,
) -> Result<Verdict, BenchError> {
    for number in 1..=OWN_TRIES {
        match run(Transport::Default, &format!("again-{number}"))? {
            Err(failure) => {
                return Ok(Verdict::OwnFails(format!("{}; over lmt: {why}", sentence(failure))));
            }
            Ok(ran) => {
                let differs = differs_from.and_then(|other| agree(&ran.printed, &other.printed).err());
                if let Some(difference) = differs {
                    return Ok(Verdict::OwnFails(format!(
                        "its results differ from run to run: {difference} before; over lmt: {why}"
                    )));
                }
            }
        }
    }
    Ok(Verdict::LmtFails(why))
}

fn name(transport: Transport) -> &'static str {
    if transport == Transport::Lmt { "lmt" } else { "own" }
}

fn sentence(failure: Failure) -> String {
    let Failure { sentence, kept } = failure;
    kept.map_or(sentence.clone(), |kept| format!("{sentence} (kept in {})", kept.display()))
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
