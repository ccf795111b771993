//! What two processes found out about each other, as one tells it to the command.

use lmt::mechanism::{Abilities, MechanismStatus, Model, Reach, Unavailable};
use serde::{Deserialize, Serialize};

use super::build::all_of_this_build;
use super::{Mechanism, out_of_reach};
use crate::memory::Memory;

/// [`ProbeReport`] as it travels.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeReportWire {
    mechanism_status: Vec<MechanismStatusWire>,
    own_descriptors: u64,
    peer_descriptors: u64,
}

/// One mechanism's [`MechanismStatus`]: read, write, cooperate.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct MechanismStatusWire {
    name: String,
    ours: [bool; 3],
    theirs: [bool; 3],
    /// Why something does not work: the number and the sentence.
    reason: Option<(i32, String)>,
}

impl From<ProbeReport> for ProbeReportWire {
    fn from(meeting: ProbeReport) -> Self {
        let stands = |(name, standing): (&'static str, MechanismStatus)| MechanismStatusWire {
            name: name.to_owned(),
            ours: [standing.ours.read, standing.ours.write, standing.ours.cooperate],
            theirs: [standing.theirs.read, standing.theirs.write, standing.theirs.cooperate],
            reason: standing.reason.map(|Unavailable { errno, sentence }| (errno, sentence)),
        };
        Self {
            mechanism_status: meeting.mechanism_status.into_iter().map(stands).collect(),
            own_descriptors: meeting.own_descriptors,
            peer_descriptors: meeting.peer_descriptors,
        }
    }
}

impl ProbeReportWire {
    /// It again; of mechanisms that this program knows, which is the same one.
    pub fn into_report(self) -> ProbeReport {
        let names = lmt::mechanism_names();
        let able = |[read, write, cooperate]: [bool; 3]| Abilities { read, write, cooperate };
        let standing = |stands: MechanismStatusWire| {
            let name = names.iter().copied().find(|name| *name == stands.name)?;
            let reason = stands.reason.map(|(errno, sentence)| Unavailable { errno, sentence });
            Some((name, MechanismStatus { ours: able(stands.ours), theirs: able(stands.theirs), reason }))
        };
        ProbeReport {
            mechanism_status: self.mechanism_status.into_iter().filter_map(standing).collect(),
            own_descriptors: self.own_descriptors,
            peer_descriptors: self.peer_descriptors,
        }
    }
}

/// What is known after a meeting with a second process.
#[derive(Debug)]
pub struct ProbeReport {
    /// Each mechanism by name, in order of preference.
    pub mechanism_status: Vec<(&'static str, MechanismStatus)>,
    /// Descriptors that this process had open beside the connection.
    pub own_descriptors: u64,
    /// Descriptors that one connected peer takes.
    pub peer_descriptors: u64,
}

impl ProbeReport {
    /// What works, and why not what does not.
    pub(super) fn mechanisms(&self) -> Vec<Mechanism> {
        let all = all_of_this_build().descriptions();
        let of = |(name, standing): &(&str, MechanismStatus)| Mechanism {
            name: (*name).to_owned(),
            unavailable: refusal(name, standing),
            reach: all.iter().find(|known| known.name == *name).map_or_else(Reach::default, |of| of.reach),
        };
        self.mechanism_status.iter().map(of).collect()
    }

    /// Each mechanism with each of its models that works, for messages that lie
    /// in such memory.
    pub(super) fn ways(&self, memory: Memory) -> Vec<String> {
        let mut ways = Vec::new();
        for of in all_of_this_build().descriptions() {
            let Some((_, standing)) = self.mechanism_status.iter().find(|(name, _)| *name == of.name) else {
                continue;
            };
            if out_of_reach(of.reach, memory).is_some() {
                continue;
            }
            let works = |model: &&Model| standing.ours.allow_sending(standing.theirs, **model);
            ways.extend(of.models.iter().filter(works).map(|model| format!("{}:{model}", of.name)));
        }
        ways
    }
}

fn refusal(name: &str, standing: &MechanismStatus) -> Option<String> {
    let models = Model::ALL;
    if models.into_iter().any(|model| standing.ours.allow_sending(standing.theirs, model)) {
        return None;
    }
    let reason = standing.reason.as_ref().map(ToString::to_string);
    Some(reason.unwrap_or_else(|| format!("{name} is refused to the other process")))
}

#[cfg(test)]
#[path = "met_tests.rs"]
mod tests;
