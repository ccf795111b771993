//! The fastest of several algorithms, by the model.

use super::formulas::Model;
use crate::algorithm::{Algorithm, Kind};

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The algorithm, with its best number where it has one.
    pub algorithm: Algorithm,
    /// What it is predicted to take, in microseconds.
    pub predicted_us: f64,
    /// Why, in a sentence.
    pub reason: String,
}

impl Model<'_> {
    /// The fastest of the candidates, the earlier and the lower number where two are
    /// equal; nothing if there is a formula of none.
    ///
    /// `bytes` is as in [the module](super). Of a candidate with a throttle, or the
    /// length of a piece, every useful one is tried, whatever stands there.
    ///
    /// ```
    /// use lmt_collectives::model::{Counting, Model};
    /// use lmt_collectives::{Algorithm, Kind};
    /// use lmt_selector::contention::KNL;
    ///
    /// let model = Model::new(&KNL.parameters, Counting::Readers);
    /// let candidates = [Algorithm::ParallelRead, Algorithm::ThrottledRead(1)];
    /// let choice = model.choose(Kind::Scatter, 2, 4096, &candidates).expect("a way");
    /// // With one reader there is nothing to hold back.
    /// assert_eq!(choice.algorithm, Algorithm::ParallelRead);
    /// assert!(choice.reason.contains("throttled-read:1, the next best"), "{}", choice.reason);
    /// ```
    pub fn choose(&self, kind: Kind, ranks: u32, bytes: u64, candidates: &[Algorithm]) -> Option<Choice> {
        let tried = candidates.iter().filter_map(|&candidate| self.best_of(kind, candidate, ranks, bytes));
        self.fastest(ranks, tried.collect())
    }

    /// As [`Self::choose`], with the numbers that the candidates have.
    pub fn choose_as_named(
        &self,
        kind: Kind,
        ranks: u32,
        bytes: u64,
        candidates: &[Algorithm],
    ) -> Option<Choice> {
        let time = |&one: &Algorithm| Some((one, self.predict_us(kind, one, ranks, bytes)?));
        self.fastest(ranks, candidates.iter().filter_map(time).collect())
    }

    fn fastest(&self, ranks: u32, mut tried: Vec<(Algorithm, f64)>) -> Option<Choice> {
        // Stable, so that of equal ones the first stays first.
        tried.sort_by_key(|(_, time_us)| picoseconds(*time_us));
        let &(algorithm, predicted_us) = tried.first()?;
        let reason = self.reason(ranks, &tried);
        Some(Choice { algorithm, predicted_us, reason })
    }

    /// An algorithm with the number for which it is the fastest, and its time in
    /// microseconds.
    pub fn best_of(
        &self,
        kind: Kind,
        algorithm: Algorithm,
        ranks: u32,
        bytes: u64,
    ) -> Option<(Algorithm, f64)> {
        let with = |number| algorithm.with_number(number);
        let all: Vec<Algorithm> = match algorithm {
            Algorithm::ThrottledRead(_) | Algorithm::ThrottledWrite(_) | Algorithm::Knomial(_) => {
                (1..=self.readers(ranks.max(2))).map(with).collect()
            }
            Algorithm::Chain(_) | Algorithm::Hierarchical(_) => {
                (2..=12).map(|power| with(1 << power)).collect()
            }
            other => vec![other],
        };
        let times = all.into_iter().filter_map(|one| Some((one, self.predict_us(kind, one, ranks, bytes)?)));
        times.min_by_key(|(_, time_us)| picoseconds(*time_us))
    }

    fn reason(&self, ranks: u32, tried: &[(Algorithm, f64)]) -> String {
        let &[(algorithm, time), ref others @ ..] = tried else { return String::new() };
        let mut reason = format!("{algorithm} is predicted to take {time:.2} us");
        match others.first() {
            Some((next, time)) => reason += &format!(", {next}, the next best, {time:.2} us"),
            None => reason += ", and nothing else can be predicted",
        }
        let at_once = match algorithm {
            Algorithm::ThrottledRead(k) | Algorithm::ThrottledWrite(k) | Algorithm::Knomial(k) => k,
            Algorithm::ParallelRead | Algorithm::ParallelWrite | Algorithm::DirectRead => self.readers(ranks),
            _ => 1,
        };
        let at_once = self.parameters.cpus.map_or(at_once, |cpus| at_once.min(cpus));
        if at_once > 1 {
            reason += &format!(
                "; {at_once} at once at one process take {:.2} times as long for a page's lock as one",
                self.parameters.gamma.of(at_once)
            );
        }
        reason
    }
}

/// By which times are compared: sums of the same numbers in another order differ in
/// their last digits.
fn picoseconds(time_us: f64) -> u64 {
    // What is too large for 64 bits becomes the largest number.
    (time_us * 1e6).round() as u64
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
