//! Registered memory.

use lmt::buffer::Access;
use lmt::{Protection, RegionKey};

use super::State;
use crate::abi::Errno;
use crate::lend::Lent;
use crate::{log, refuse};

/// Memory that is registered.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its key, if peers may use it at all.
    key: Option<RegionKey>,
}

impl State {
    /// Registers memory; gives its number in the domain, and what peers name it by.
    ///
    /// # Errors
    /// [`Errno::NOMEM`]: 65535 regions are registered; or there is no endpoint any
    /// more.
    pub fn register(&mut self, lent: Lent, protection: Option<Protection>) -> Result<(usize, u64), Errno> {
        let key = match protection {
            None => None,
            Some(protection) => {
                let declared = self.home()?.register_region(lent.whole()?, protection);
                Some(declared.map_err(|error| {
                    log::warn(log::Subsystem::Mr, format_args!("memory cannot be registered: {error}"));
                    refuse::errno_of(&error)
                })?)
            }
        };
        let handle = key.map_or(0, |key| key.handle());
        if let Some(protection) = protection {
            self.shared_state.exposed.insert(handle, lent, protection);
        }
        Ok((self.regions.insert(Region { key }), handle))
    }

    /// Takes a registration back.
    pub fn deregister(&mut self, number: usize) {
        let region = self.regions.remove(number);
        if let Some(Region { key: Some(key) }) = &region {
            self.shared_state.exposed.remove(key.handle());
        }
        if let (Some(Region { key: Some(key) }), Ok(engine)) = (region, self.home()) {
            // Gone already if the endpoint that had it was closed in between.
            let _destroyed = engine.destroy_region(&key);
        }
    }
}

/// What the memory is lent for, where peers may do so much.
pub const fn access_for(protection: Option<Protection>) -> Access {
    match protection {
        Some(Protection { write: true, .. }) => Access::Write,
        _ => Access::Read,
    }
}
