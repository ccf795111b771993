//! What a call's programs copy out of, and into, the memory of other ranks: what the
//! selector is asked for.
#![forbid(unsafe_code)]

use std::fmt;

use lmt_core::endpoint::Engine;
use lmt_core::region::Direction;
use lmt_core::selection::Taken;

use crate::program::{Action, Program};
use crate::running::Member;

/// Gets or puts of some lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Whether a rank copies out of others' memory, or into it.
    pub direction: Direction,
    /// The shortest, in bytes.
    pub least_bytes: u64,
    /// The longest, in bytes.
    pub most_bytes: u64,
}

impl fmt::Display for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, least_bytes, most_bytes } = self;
        let what = match direction {
            Direction::Get => "gets",
            Direction::Put => "puts",
        };
        if least_bytes == most_bytes {
            return write!(f, "{what} of {most_bytes} bytes");
        }
        write!(f, "{what} of {least_bytes} to {most_bytes} bytes")
    }
}

/// The gets and puts of a program, each with its rank and length.
pub(crate) fn of_program(program: &Program) -> impl Iterator<Item = (u32, Direction, u64)> {
    program.steps.iter().flatten().filter_map(|action| match action {
        Action::Get { rank, into, .. } if into.bytes > 0 => Some((*rank, Direction::Get, into.bytes)),
        Action::Put { rank, from, .. } if from.bytes > 0 => Some((*rank, Direction::Put, from.bytes)),
        _ => None,
    })
}

/// Gets and puts with something that is said of each: one entry for each direction and
/// saying.
pub(crate) fn gathered<T: PartialEq>(copies: impl Iterator<Item = (Direction, u64, T)>) -> Vec<(Copies, T)> {
    let mut list: Vec<(Copies, T)> = Vec::new();
    for (direction, bytes, said) in copies {
        let same = list.iter_mut().find(|(known, other)| known.direction == direction && *other == said);
        match same {
            Some((known, _)) => {
                known.least_bytes = known.least_bytes.min(bytes);
                known.most_bytes = known.most_bytes.max(bytes);
            }
            None => list.push((Copies { direction, least_bytes: bytes, most_bytes: bytes }, said)),
        }
    }
    list
}

/// By which mechanisms a rank's gets and puts go, and why, a sentence for each.
pub(crate) fn ways(copies: &[(Member, Direction, u64)], engine: &Engine) -> Vec<String> {
    let mut asked: Vec<(Member, Direction, u64)> = Vec::new();
    for &copy in copies {
        if !asked.contains(&copy) {
            asked.push(copy);
        }
    }
    let told = asked.into_iter().filter_map(|(member, direction, bytes)| {
        let explanation = engine.explain_one_sided(member.peer, direction, bytes).ok()?;
        let by = match explanation.taken {
            Taken::By { mechanism, .. } => mechanism,
            Taken::Unknown => "what is found out when the two connect".to_owned(),
            _ => "no mechanism, for none reaches the other's memory".to_owned(),
        };
        Some((direction, bytes, format!("by {by} ({}, {})", explanation.rule, explanation.source)))
    });
    gathered(told).into_iter().map(|(copies, way)| format!("{copies} {way}")).collect()
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
