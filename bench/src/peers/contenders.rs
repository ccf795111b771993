//! The groups of all MPIs that are compared with.

use super::group::{MpiGroup, Setup, Turn};
use super::measure::Peer;
use crate::error::BenchError;

/// The groups; one that has failed is gone.
pub(crate) struct Contenders {
    names: Vec<String>,
    groups: Vec<Option<MpiGroup>>,
}

impl Contenders {
    /// Starts a group of each; `note` hears which are left out.
    ///
    /// # Errors
    /// There are peers, and none can be started.
    pub fn start(peers: &[Peer], setup: &Setup<'_>, note: &mut dyn FnMut(&str)) -> Result<Self, BenchError> {
        let mut groups = Vec::new();
        for peer in peers {
            let group = MpiGroup::start(&peer.mpi, &peer.program, &peer.variables, setup);
            groups.push(match group {
                Ok(group) => Some(group),
                Err(sentence) => {
                    note(&format!("{} is left out: {sentence}", peer.name));
                    None
                }
            });
        }
        if !peers.is_empty() && groups.iter().all(Option::is_none) {
            return Err(BenchError::Failure("none of the MPIs could be started".into()));
        }
        Ok(Self { names: peers.iter().map(|peer| peer.name.clone()).collect(), groups })
    }

    /// Whether this peer is still there.
    pub fn is_there(&self, index: usize) -> bool {
        self.groups.get(index).is_some_and(Option::is_some)
    }

    /// The places and names of those that are there.
    pub fn names(&self) -> Vec<(usize, String)> {
        let all = self.names.iter().cloned().enumerate();
        all.filter(|(index, _)| self.is_there(*index)).collect()
    }

    /// Does a turn; each rank's seconds, none of a peer that is not there.
    ///
    /// # Errors
    /// It fails in it, and is gone then: a sentence.
    pub fn turn(&mut self, index: usize, turn: &Turn<'_>) -> Result<Vec<f64>, String> {
        let Some(group) = self.groups.get_mut(index).and_then(Option::as_mut) else { return Ok(Vec::new()) };
        group.turn(turn).map_err(|sentence| {
            self.groups[index] = None;
            format!("{} is left out from now on: {sentence}", self.names[index])
        })
    }
}
