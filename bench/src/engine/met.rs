//! What two processes found out about each other, as one tells it to the command.

use lmt::mechanism::{Abilities, Unavailable};
use lmt::mechanisms::Standing;
use serde::{Deserialize, Serialize};

use super::endpoint::Meeting;

/// [`Meeting`] as it travels.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Met {
    standings: Vec<Stands>,
    own_descriptors: u64,
    peer_descriptors: u64,
}

/// One mechanism's [`Standing`]: read, write, cooperate.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Stands {
    name: String,
    ours: [bool; 3],
    theirs: [bool; 3],
    /// Why something does not work: the number and the sentence.
    reason: Option<(i32, String)>,
}

impl From<Meeting> for Met {
    fn from(meeting: Meeting) -> Self {
        let stands = |(name, standing): (&'static str, Standing)| Stands {
            name: name.to_owned(),
            ours: [standing.ours.read, standing.ours.write, standing.ours.cooperate],
            theirs: [standing.theirs.read, standing.theirs.write, standing.theirs.cooperate],
            reason: standing.reason.map(|Unavailable { errno, sentence }| (errno, sentence)),
        };
        Self {
            standings: meeting.standings.into_iter().map(stands).collect(),
            own_descriptors: meeting.own_descriptors,
            peer_descriptors: meeting.peer_descriptors,
        }
    }
}

impl Met {
    /// It again; of mechanisms that this program knows, which is the same one.
    pub fn into_meeting(self) -> Meeting {
        let names = lmt::mechanism_names();
        let able = |[read, write, cooperate]: [bool; 3]| Abilities { read, write, cooperate };
        let standing = |stands: Stands| {
            let name = names.iter().copied().find(|name| *name == stands.name)?;
            let reason = stands.reason.map(|(errno, sentence)| Unavailable { errno, sentence });
            Some((name, Standing { ours: able(stands.ours), theirs: able(stands.theirs), reason }))
        };
        Meeting {
            standings: self.standings.into_iter().filter_map(standing).collect(),
            own_descriptors: self.own_descriptors,
            peer_descriptors: self.peer_descriptors,
        }
    }
}

#[cfg(test)]
#[path = "met_tests.rs"]
mod tests;
