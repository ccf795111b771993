//! Numbers of an address vector and the engine's names for the same peers.

use lmt::{EndpointId, Engine, PeerId};

use super::vector::{AddressVector, Place};
use crate::abi::{ADDR_UNSPEC, Errno, FiAddr};
use crate::log::Subsystem;
use crate::refuse;

fn place_of(vector: Option<&AddressVector>, number: FiAddr) -> Result<&Place, Errno> {
    vector.and_then(|vector| vector.place(number)).ok_or_else(|| {
        let why = format_args!("the endpoint's address vector has no number {number}");
        refuse::because(Subsystem::EpData, Errno::INVAL, why)
    })
}

/// What one endpoint has found out about the numbers of its address vector.
#[derive(Debug, Default)]
pub struct Peers {
    /// By number of the vector.
    named: Vec<Option<PeerId>>,
    /// By the engine's index, with the peer that had it then.
    numbers: Vec<Option<(PeerId, FiAddr)>>,
}

impl Peers {
    /// The engine's name for the peer with this number, if it was asked for before.
    #[inline]
    pub fn known(&self, number: FiAddr) -> Option<PeerId> {
        self.named.get(number as usize).copied().flatten()
    }

    /// The same of one that may not have been.
    ///
    /// # Errors
    /// [`Errno::INVAL`]: the vector has no such number; or the engine knows as
    /// many peers as it may.
    #[cold]
    pub fn named(
        &mut self,
        engine: &mut Engine,
        vector: Option<&AddressVector>,
        number: FiAddr,
    ) -> Result<PeerId, Errno> {
        if let Some(peer) = self.known(number) {
            return Ok(peer);
        }
        let place = place_of(vector, number)?;
        let peer = engine.insert_peer(&place.address).map_err(|error| refuse::errno_of(&error))?;
        let at = number as usize;
        if self.named.len() <= at {
            self.named.resize(at + 1, None);
        }
        self.named[at] = Some(peer);
        Ok(peer)
    }

    /// Who has the memory regions of the peer with this number: the first endpoint
    /// of its domain, which the engine knows from now on.
    ///
    /// # Errors
    /// As [`Peers::named`].
    pub fn home_of(
        &mut self,
        engine: &mut Engine,
        vector: Option<&AddressVector>,
        number: FiAddr,
    ) -> Result<EndpointId, Errno> {
        let place = place_of(vector, number)?;
        let home = place.home();
        if place.number == 0 {
            self.named(engine, vector, number)?;
        } else {
            engine.insert_peer(&home).map_err(|error| refuse::errno_of(&error))?;
        }
        Ok(home.id())
    }

    /// The number of a peer from which a message came, if it was asked for before.
    #[inline]
    pub fn known_number(&self, peer: PeerId) -> Option<FiAddr> {
        match self.numbers.get(peer.index() as usize) {
            Some(Some((known, number))) if *known == peer => Some(*number),
            _ => None,
        }
    }

    /// The same of one that may not have been; [`ADDR_UNSPEC`] if the vector has none.
    #[cold]
    pub fn number_of(&mut self, engine: &Engine, vector: Option<&AddressVector>, peer: PeerId) -> FiAddr {
        let number = engine.peer_id(peer).and_then(|id| vector?.number_of(id));
        let Some(number) = number else { return ADDR_UNSPEC };
        let at = peer.index() as usize;
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, None);
        }
        self.numbers[at] = Some((peer, number));
        number
    }

    /// The vector has lost this number.
    pub fn forget(&mut self, number: FiAddr) {
        // What it was told as may be another number; all are looked up anew.
        self.numbers.clear();
        if let Some(named) = usize::try_from(number).ok().and_then(|at| self.named.get_mut(at)) {
            *named = None;
        }
    }
}
