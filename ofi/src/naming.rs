//! Addresses that nodes and services name (fi_getinfo(3)).
//!
//! There is one machine, so a service is a name on it, whatever the node is called; where no
//! service is named the node is the name. An address is the same in every process.

use lmt::{Address, EndpointId};

use crate::abi::Errno;
use crate::state::vector::{NAME_BYTES, Place};

/// An endpoint's address as libfabric has it.
pub type Name = [u8; NAME_BYTES];

/// The ids of a domain's endpoints follow each other from the named one on.
const MEMBERS: u128 = u16::MAX as u128;

/// FNV-1a of 128 bits, with room for members.
fn id_of(kind: &str, name: &str) -> EndpointId {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = kind.bytes().chain([0]).chain(name.bytes());
    let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    EndpointId::from_bytes((hash & !MEMBERS).to_be_bytes())
}

/// The address that a node and a service name; none if neither is given.
///
/// # Errors
/// A sentence for the log: the configuration does not say where sockets are, or the folder's
/// path is too long.
pub fn address_of(node: Option<&str>, service: Option<&str>) -> Result<Option<Name>, String> {
    let id = match (node, service) {
        (_, Some(service)) => id_of("service", service),
        (Some(node), None) => id_of("node", node),
        (None, None) => return Ok(None),
    };
    let configuration = lmt::configuration::load().map_err(|failure| failure.to_string())?;
    let address = match &configuration.config.socket_dir {
        Some(folder) => Address::in_folder(id, folder).map_err(|error| error.to_string())?,
        None => Address::abstract_socket(id),
    };
    let too_long =
        |_| format!("socket_dir is too long for an address of {NAME_BYTES} bytes; choose a shorter path");
    Place { address, number: 0 }.to_name().map(Some).map_err(too_long)
}

/// An address that a caller gives.
///
/// # Errors
/// [`Errno::INVAL`]: it is none.
pub fn checked(bytes: &[u8]) -> Result<Name, Errno> {
    let name: Name = bytes.try_into().map_err(|_| Errno::INVAL)?;
    Place::from_name(&name).map(|_| name)
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
