//! An address vector: addresses by number, of which `FI_AV_MAP` and
//! `FI_AV_TABLE` are the same here.

use std::collections::HashMap;

use lmt::{Address, EndpointId};

use crate::abi::{Errno, FiAddr};

/// Bytes of an endpoint's name. All names have this length, since a vector takes
/// several side by side; MPICH has room for 64 (`FI_NAME_MAX`).
pub const NAME_BYTES: usize = 64;
/// Bytes of a name before the socket's folder, which a zero ends.
const HEAD_BYTES: usize = 20;

/// The name that other processes insert for an endpoint at this address.
///
/// # Errors
/// The socket's folder has too long a path.
pub fn name_of(address: &Address) -> Result<[u8; NAME_BYTES], Errno> {
    let bytes = address.to_bytes();
    let mut name = [0; NAME_BYTES];
    name.get_mut(..bytes.len()).ok_or(Errno::INVAL)?.copy_from_slice(&bytes);
    Ok(name)
}

/// The address that a name means.
///
/// # Errors
/// It is no such name.
pub fn address_of(name: &[u8; NAME_BYTES]) -> Result<Address, Errno> {
    let folder = &name[HEAD_BYTES..];
    let bytes = HEAD_BYTES + folder.iter().position(|byte| *byte == 0).unwrap_or(folder.len());
    Address::from_bytes(&name[..bytes]).map_err(|_| Errno::INVAL)
}

/// The addresses that one or more endpoints send to.
#[derive(Debug, Default)]
pub struct AddressVector {
    /// The endpoints that use it.
    pub endpoints: Vec<usize>,
    addresses: Vec<Option<Address>>,
    by_id: HashMap<EndpointId, FiAddr>,
}

impl AddressVector {
    /// Takes an address in; gives its number. Numbers are given out in order, and
    /// never again.
    pub fn insert(&mut self, address: Address) -> FiAddr {
        let number = self.addresses.len() as FiAddr;
        self.by_id.entry(address.id()).or_insert(number);
        self.addresses.push(Some(address));
        number
    }

    /// Takes an address out.
    ///
    /// # Errors
    /// There is none with this number.
    pub fn remove(&mut self, number: FiAddr) -> Result<Address, Errno> {
        let slot = usize::try_from(number).ok().and_then(|at| self.addresses.get_mut(at));
        let address = slot.and_then(Option::take).ok_or(Errno::INVAL)?;
        if self.by_id.get(&address.id()) == Some(&number) {
            self.by_id.remove(&address.id());
            // It may have been inserted twice.
            let again = self.addresses.iter().position(|one| one.as_ref() == Some(&address));
            again.map(|at| self.by_id.insert(address.id(), at as FiAddr));
        }
        Ok(address)
    }

    /// The address with this number.
    pub fn address(&self, number: FiAddr) -> Option<&Address> {
        self.addresses.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// The number of an endpoint's address.
    pub fn number_of(&self, id: EndpointId) -> Option<FiAddr> {
        self.by_id.get(&id).copied()
    }
}

#[cfg(test)]
#[path = "vector_tests.rs"]
mod tests;
