//! What is made of the times of one size: medians, and ratios taken round by round.
#![forbid(unsafe_code)]

use serde::Serialize;

use crate::stats::{Spread, ratios};

/// The times of one contender, one for each round.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Its name.
    pub name: String,
    /// Whether it is an MPI.
    pub is_peer: bool,
    /// Microseconds of a call, on the slowest rank.
    pub usec: Vec<f64>,
}

/// One contender at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// Whether it is an MPI.
    pub is_peer: bool,
    /// Microseconds of a call, on the slowest rank.
    pub usec: Spread,
    /// Its time by the reference's, taken round by round: the best peer, or the first
    /// of ours where there are no peers.
    pub over_reference: Option<Spread>,
}

/// What the library has chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// The algorithm.
    pub algorithm: String,
    /// Why.
    pub reason: String,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Of a block or, of reductions, a vector.
    pub bytes: u64,
    /// Iterations of each turn.
    pub iterations: u64,
    /// Rounds.
    pub rounds: usize,
    /// Whom the ratios are taken of.
    pub reference: String,
    /// Everybody, ours first.
    pub contenders: Vec<Contender>,
    /// What `auto` has taken, where it took part.
    pub auto: Option<Chosen>,
    /// Calls of ours of which every byte was checked.
    pub verified_calls: u64,
}

impl Row {
    /// Summarises one size; `None` when nobody was measured.
    pub fn of(
        bytes: u64,
        iterations: u64,
        times: &[&Times],
        auto: Option<(String, String)>,
        verified_calls: u64,
    ) -> Option<Self> {
        let median = |times: &Times| Spread::of(&times.usec).map(|spread| spread.median);
        let peers = times.iter().filter(|times| times.is_peer && !times.usec.is_empty());
        let best =
            peers.min_by(|one, other| median(one).partial_cmp(&median(other)).unwrap_or_else(|| 0.cmp(&0)));
        let reference = *best.or_else(|| times.first())?;
        let contender = |times: &&Times| {
            Some(Contender {
                name: times.name.clone(),
                is_peer: times.is_peer,
                usec: Spread::of(&times.usec)?,
                over_reference: Spread::of(&ratios(&times.usec, &reference.usec)),
            })
        };
        Some(Self {
            bytes,
            iterations,
            rounds: reference.usec.len(),
            reference: reference.name.clone(),
            contenders: times.iter().filter_map(contender).collect(),
            auto: auto.map(|(algorithm, reason)| Chosen { algorithm, reason }),
            verified_calls,
        })
    }

    /// Whether ratios are taken of a peer.
    pub fn has_peers(&self) -> bool {
        self.contenders.iter().any(|contender| contender.is_peer)
    }

    /// Ours with the smallest median.
    pub fn fastest(&self) -> Option<&Contender> {
        let ours = self.contenders.iter().filter(|contender| !contender.is_peer);
        ours.min_by(|one, other| one.usec.median.total_cmp(&other.usec.median))
    }

    /// A contender by name.
    pub fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
