//! What is made of the times of one size: medians, ratios taken round by round,
//! the limit, the way.

use serde::Serialize;

use crate::job::PathCount;
use crate::stats::{Spread, ratios};

/// What a contender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// One of our mechanisms, or our own choice.
    Ours,
    /// An MPI.
    Peer,
    /// A bare method.
    Limit,
}

/// The times of one contender, one for each round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Microseconds, as the pattern defines its time.
    pub usec: Vec<f64>,
}

/// What was measured at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeTimes {
    /// The messages' length.
    pub bytes: u64,
    /// Iterations of each turn, the same for all.
    pub iterations: u64,
    /// Everybody's times.
    pub times: Vec<Times>,
    /// Which way the messages of our first mechanism took.
    pub ways: Vec<PathCount>,
    /// Messages of ours of which every byte was checked.
    pub verified_messages: u64,
}

/// One contender's times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Microseconds over the rounds.
    pub usec: Spread,
    /// Our first mechanism's time by this one's, taken round by round.
    pub ours_over_this: Spread,
}

/// One line of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The messages' length.
    pub bytes: u64,
    /// Iterations of each turn.
    pub iterations: u64,
    /// Rounds.
    pub rounds: usize,
    /// Everybody, ours first.
    pub contenders: Vec<Contender>,
    /// The peer with the smallest median.
    pub best_peer: Option<String>,
    /// The bare method with the smallest median.
    pub limit: Option<String>,
    /// The limit's time by the best peer's, taken round by round.
    pub limit_over_peer: Option<Spread>,
    /// Which way the messages of our first mechanism took.
    pub ways: Vec<PathCount>,
    /// Messages of ours of which every byte was checked.
    pub verified_messages: u64,
}

impl Row {
    /// Summarises one size; `None` when we were not measured at all.
    pub fn of(size: &SizeTimes) -> Option<Self> {
        let ours = size.times.iter().find(|times| times.role == Role::Ours)?;
        let contenders: Vec<Contender> = size
            .times
            .iter()
            .filter_map(|times| {
                Some(Contender {
                    name: times.name.clone(),
                    role: times.role,
                    usec: Spread::of(&times.usec)?,
                    ours_over_this: Spread::of(&ratios(&ours.usec, &times.usec))?,
                })
            })
            .collect();
        let best = |role| {
            let those = contenders.iter().filter(|contender| contender.role == role);
            those
                .min_by(|one, other| one.usec.median.total_cmp(&other.usec.median))
                .map(|best| best.name.clone())
        };
        let (best_peer, limit) = (best(Role::Peer), best(Role::Limit));
        let times = |name: &Option<String>| {
            size.times.iter().find(|times| Some(&times.name) == name.as_ref()).map(|times| &times.usec)
        };
        let limit_over_peer =
            times(&limit).zip(times(&best_peer)).and_then(|(limit, peer)| Spread::of(&ratios(limit, peer)));
        Some(Self {
            bytes: size.bytes,
            iterations: size.iterations,
            rounds: ours.usec.len(),
            contenders,
            best_peer,
            limit,
            limit_over_peer,
            ways: size.ways.clone(),
            verified_messages: size.verified_messages,
        })
    }

    /// A contender by name.
    pub fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }

    /// Our first mechanism.
    pub fn ours(&self) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.role == Role::Ours)
    }

    /// Our time by the best peer's.
    pub fn over_peer(&self) -> Option<Spread> {
        self.contender(self.best_peer.as_deref()?).map(|peer| peer.ours_over_this)
    }

    /// Our time by the limit's.
    pub fn over_limit(&self) -> Option<Spread> {
        self.contender(self.limit.as_deref()?).map(|limit| limit.ours_over_this)
    }

    /// Which way most bytes took, with their part in percent where others took
    /// another one.
    pub fn way(&self) -> String {
        // By bytes, for the short messages by which ranks meet are no part of what is
        // measured; of empty messages only the number can be told.
        let has_bytes = self.ways.iter().any(|way| way.bytes > 0);
        let weight = |way: &PathCount| if has_bytes { way.bytes } else { way.messages };
        let all: u64 = self.ways.iter().map(weight).sum();
        let Some(most) = self.ways.iter().max_by_key(|way| weight(way)) else { return "-".to_owned() };
        match 100 * weight(most) / all.max(1) {
            percent if percent >= 99 => most.way.clone(),
            percent => format!("{} {percent}%", most.way),
        }
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
pub(in crate::peers) mod tests;
