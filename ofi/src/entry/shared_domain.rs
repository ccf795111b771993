//! What a domain shares with what is opened in it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::event::{self, Reports};
use super::shared_fabric::Fabric;
use crate::abi::domain::FidMr;
use crate::abi::eq::MR_COMPLETE;
use crate::state::Domain;

/// A domain, its fabric, and what both know.
#[derive(Debug)]
pub struct Shared {
    /// Its objects.
    pub domain: Domain,
    /// Held while owners are called (fi_peer(3)), before the domain's lock.
    pub(super) owner_calls: Mutex<()>,
    pub(super) fabric: Arc<Fabric>,
    /// Its event queue, and whether registering memory is told there.
    pub(super) reports: Reports,
    pub(super) tells_registrations: AtomicBool,
}

impl Shared {
    /// Lets owners be called while what is given is held, unless they are being
    /// called already, be it by this thread.
    pub(super) fn try_call_owners(&self) -> Option<MutexGuard<'_, ()>> {
        match self.owner_calls.try_lock() {
            Ok(calls) => Some(calls),
            Err(TryLockError::Poisoned(calls)) => Some(calls.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A memory region is registered.
    pub(super) fn tell_registration(&self, mr: *mut FidMr, context: *mut c_void) {
        // Relaxed: as where it is written.
        let events = self.reports.events().filter(|_| self.tells_registrations.load(Ordering::Relaxed));
        if let Some(events) = events {
            event::tell(events, MR_COMPLETE, mr, context, 0);
        }
    }

    /// Its fabric.
    pub(super) const fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// The version of libfabric's interface that its user was written for.
    pub fn api_version(&self) -> u32 {
        self.fabric.api_version
    }
}
