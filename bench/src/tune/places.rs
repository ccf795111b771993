//! Where pairs of processes can be put on this machine.

use lmt::cpu_set::CpuSet;
use lmt_selector::topology::{Machine, Place};

/// Pairs of CPUs that share one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What the two of each pair share.
    pub place: Place,
    /// The CPUs of the pairs.
    pub pairs: Vec<[usize; 2]>,
}

/// What can be measured, and what cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// One pair at each place that can be reached, then many.
    pub settings: Vec<Setting>,
    /// What is skipped and why, a sentence each.
    pub skipped: Vec<String>,
}

/// The settings of a machine of which these CPUs may be used, with so many pairs
/// at once at most. Without a machine nothing is known of the places.
pub fn settings(machine: Option<&Machine>, allowed: &[usize], max_pairs: usize) -> Settings {
    let place = |a: usize, b: usize| match machine {
        Some(machine) => machine.place(&CpuSet::from_iter([a]), &CpuSet::from_iter([b])),
        None => Place::Other,
    };
    let mut found = Settings::default();
    if let [only] = allowed {
        found.skipped.push(format!(
            "all places but the same core: this process may use CPU {only} only; with more CPUs there is more to measure"
        ));
        found.settings.push(Setting { place: Place::SameCore, pairs: vec![[*only; 2]] });
        return found;
    }
    for wanted in Place::ALL {
        let mut pairs = disjoint_pairs(allowed, |a, b| place(a, b) == wanted);
        if pairs.len() > max_pairs.max(1) {
            pairs.truncate(max_pairs.max(1));
            found.skipped.push(format!(
                "{wanted}, more than {} pairs at once: there is memory for the buffers of that many",
                pairs.len()
            ));
        }
        let Some(first) = pairs.first().copied() else { continue };
        found.settings.push(Setting { place: wanted, pairs: vec![first] });
        if pairs.len() > 1 {
            found.settings.push(Setting { place: wanted, pairs });
        }
    }
    if found.settings.iter().all(|setting| setting.place != Place::SameCore) {
        found.skipped.push(
            "the same core: no two CPUs that this process may use are hardware threads of one core, and two \
             processes on one CPU wait for the scheduler, whatever copies"
                .to_owned(),
        );
    }
    if found.settings.iter().all(|setting| setting.pairs.len() == 1) && max_pairs > 1 {
        found.skipped.push(format!(
            "many pairs at once: the {} CPUs that this process may use hold one pair",
            allowed.len()
        ));
    }
    found
}

/// As many pairs as are found by taking, for each CPU in turn, the next free one
/// that fits.
fn disjoint_pairs(cpus: &[usize], fits: impl Fn(usize, usize) -> bool) -> Vec<[usize; 2]> {
    let mut free: Vec<usize> = cpus.to_vec();
    let mut pairs = Vec::new();
    while let Some((&first, others)) = free.split_first() {
        if let Some(at) = others.iter().position(|&other| fits(first, other)) {
            pairs.push([first, others[at]]);
            free.remove(at + 1);
        }
        free.remove(0);
    }
    pairs
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
