//! An address vector: addresses by number, of which `FI_AV_MAP` and
//! `FI_AV_TABLE` are the same here.

use std::collections::{BTreeSet, HashMap};

use lmt::{Address, EndpointId};

use super::State;
use crate::abi::{Errno, FiAddr};
use crate::log::Subsystem;
use crate::refuse::because;

/// Bytes of an endpoint's name. All names have this length, since a vector takes
/// several side by side; MPICH has room for 64 (`FI_NAME_MAX`).
pub const NAME_BYTES: usize = 64;
/// Bytes of an address before the socket's folder, which a zero ends in a name.
const HEAD_BYTES: usize = 20;
/// Behind them in a name: the endpoint's number in its domain.
const NUMBER_BYTES: usize = 2;

/// Where an endpoint is reached, and the first endpoint of its domain, which has
/// the domain's memory regions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The endpoint's address.
    pub address: Address,
    /// Its number in its domain, by which its id is greater than the first one's.
    pub number: u16,
}

impl Place {
    /// The name that other processes insert for it.
    ///
    /// # Errors
    /// [`Errno::INVAL`]: the socket's folder has too long a path.
    pub fn to_name(&self) -> Result<[u8; NAME_BYTES], Errno> {
        let bytes = self.address.to_bytes();
        let (head, folder) = bytes.split_at_checked(HEAD_BYTES).ok_or(Errno::INVAL)?;
        let mut name = [0; NAME_BYTES];
        name[..HEAD_BYTES].copy_from_slice(head);
        name[HEAD_BYTES..][..NUMBER_BYTES].copy_from_slice(&self.number.to_le_bytes());
        name[HEAD_BYTES + NUMBER_BYTES..]
            .get_mut(..folder.len())
            .ok_or(Errno::INVAL)?
            .copy_from_slice(folder);
        Ok(name)
    }

    /// What a name means.
    ///
    /// # Errors
    /// [`Errno::INVAL`]: it is no such name.
    pub fn from_name(name: &[u8; NAME_BYTES]) -> Result<Self, Errno> {
        let (head, rest) = name.split_at(HEAD_BYTES);
        let (number, folder) = rest.split_first_chunk::<NUMBER_BYTES>().ok_or(Errno::INVAL)?;
        let folder = folder.split(|byte| *byte == 0).next().unwrap_or_default();
        let address = Address::from_bytes(&[head, folder].concat()).map_err(|_| Errno::INVAL)?;
        Ok(Self { address, number: u16::from_le_bytes(*number) })
    }

    /// The id of the first endpoint of its domain.
    pub fn home_id(&self) -> EndpointId {
        let id = u128::from_be_bytes(self.address.id().to_bytes()).wrapping_sub(self.number.into());
        EndpointId::from_bytes(id.to_be_bytes())
    }

    /// Its address.
    pub fn home(&self) -> Address {
        let id = self.home_id();
        match self.address.folder() {
            // The same folder is as short as before.
            Some(folder) => Address::in_folder(id, folder).unwrap_or_else(|_| Address::abstract_socket(id)),
            None => Address::abstract_socket(id),
        }
    }
}

/// The addresses that one or more endpoints send to.
#[derive(Debug, Default)]
pub struct AddressVector {
    /// The endpoints that use it.
    pub endpoints: Vec<usize>,
    places: Vec<Option<Place>>,
    free: BTreeSet<FiAddr>,
    by_id: HashMap<EndpointId, FiAddr>,
    /// What the caller calls those that it has numbered itself (`FI_AV_USER_ID`).
    user_addresses: HashMap<FiAddr, FiAddr>,
}

/// What is to be said of a number that a vector does not have.
pub fn no_such_number(number: FiAddr) -> Errno {
    because(Subsystem::Av, Errno::INVAL, format_args!("the vector has no address with number {number}"))
}

impl AddressVector {
    /// Takes an address in; gives its number, the lowest that is free.
    pub fn insert(&mut self, place: Place) -> FiAddr {
        let number = self.free.pop_first().unwrap_or(self.places.len() as FiAddr);
        self.by_id.entry(place.address.id()).or_insert(number);
        match self.places.get_mut(number as usize) {
            Some(slot) => *slot = Some(place),
            None => self.places.push(Some(place)),
        }
        number
    }

    /// The same; what comes from there is told with the caller's own number, if it
    /// has one.
    pub fn insert_as(&mut self, place: Place, user_addresses: Option<FiAddr>) -> FiAddr {
        let number = self.insert(place);
        if let Some(user_addresses) = user_addresses {
            self.user_addresses.insert(number, user_addresses);
        }
        number
    }

    /// Takes an address out.
    ///
    /// # Errors
    /// There is none with this number.
    pub fn remove(&mut self, number: FiAddr) -> Result<Place, Errno> {
        let slot = usize::try_from(number).ok().and_then(|at| self.places.get_mut(at));
        let place = slot.and_then(Option::take).ok_or(Errno::INVAL)?;
        self.free.insert(number);
        let id = place.address.id();
        self.user_addresses.remove(&number);
        if self.by_id.get(&id) == Some(&number) {
            self.by_id.remove(&id);
            // It may have been inserted twice.
            let again = self.places.iter().position(|one| one.as_ref() == Some(&place));
            again.map(|at| self.by_id.insert(id, at as FiAddr));
        }
        Ok(place)
    }

    /// The endpoints that are known for this number alone: the one that it stands
    /// for, and the first of that one's domain unless others need it.
    pub fn known_only_by(&self, number: FiAddr) -> Vec<EndpointId> {
        let Some(place) = self.place(number) else { return Vec::new() };
        let (own, home) = (place.address.id(), place.home_id());
        let others = || {
            let others = self.places.iter().enumerate().filter(|(at, _)| *at as FiAddr != number);
            others.filter_map(|(_, place)| place.as_ref())
        };
        let mut ids = Vec::new();
        if others().all(|other| other.address.id() != own) {
            ids.push(own);
        }
        if home != own && others().all(|other| other.address.id() != home && other.home_id() != home) {
            ids.push(home);
        }
        ids
    }

    /// The address with this number.
    pub fn place(&self, number: FiAddr) -> Option<&Place> {
        self.places.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// The number of an endpoint's address, as its messages are told with it.
    pub fn number_of(&self, id: EndpointId) -> Option<FiAddr> {
        let number = self.by_id.get(&id)?;
        Some(*self.user_addresses.get(number).unwrap_or(number))
    }
}

impl State {
    /// Takes an address out of a vector and has its endpoints forget it: all of them
    /// or, if one cannot, none.
    ///
    /// # Errors
    /// There is none with this number; [`Errno::BUSY`]: transfers with that peer are
    /// in flight.
    pub fn remove_address(&mut self, vector: usize, number: FiAddr) -> Result<(), Errno> {
        let addresses = self.shared_state.vectors.get_mut(vector).ok_or(Errno::INVAL)?;
        addresses.place(number).ok_or_else(|| no_such_number(number))?;
        let (ids, endpoints) = (addresses.known_only_by(number), addresses.endpoints.clone());
        let may_forget = |at: &usize| self.endpoints.get(*at).map_or(Ok(()), |one| one.may_forget(&ids));
        endpoints.iter().try_for_each(may_forget)?;
        addresses.remove(number)?;
        for at in endpoints {
            if let Some(endpoint) = self.endpoints.get_mut(at) {
                endpoint.forget_peer(&mut self.shared_state, number, &ids);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "vector_tests.rs"]
mod tests;
