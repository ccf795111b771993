//! What tests of one process have for a peer.

use std::sync::Arc;

use crate::base::process::PeerProcess;
use crate::mechanism::Mechanisms;
use crate::vocabulary::identity::{EndpointId, MechanismTag, PeerKey};
use crate::vocabulary::peer_facts::{Abilities, PeerFacts};

/// A peer of this number, whose process is this one.
pub(crate) fn facts(id: EndpointId) -> PeerFacts {
    let process = Arc::new(PeerProcess::new(std::process::id() as i32, None));
    PeerFacts { id, process, probe_address: 0, nonce: [0; 16] }
}

/// Has a peer probed that has the same mechanisms; what this side found.
pub(crate) fn meet(mechanisms: &mut Mechanisms, peer: PeerKey) -> Vec<(MechanismTag, Abilities)> {
    let hellos = mechanisms.hellos();
    mechanisms.probe(peer, &facts(EndpointId::from_bytes([1 + peer as u8; 16])), hellos)
}
