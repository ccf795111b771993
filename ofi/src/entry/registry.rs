//! Endpoints by a small number, for calls that name a message and nothing else:
//! an owner hands its entries back with what it was given for the message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::shared_domain::Shared;
use crate::abi::Errno;

/// Bits of a handle that number the message.
const MESSAGE_BITS: u32 = 48;

type Place = Option<(Weak<Shared>, usize)>;
static ENDPOINTS: RwLock<Vec<Place>> = RwLock::new(Vec::new());

/// An endpoint's number here, until it is dropped.
#[derive(Debug)]
pub struct Registered(u16);

impl Registered {
    /// A number for endpoint `endpoint` of this domain.
    ///
    /// # Errors
    /// [`Errno::NOMEM`]: 65536 have one.
    pub fn new(domain: &Arc<Shared>, endpoint: usize) -> Result<Self, Errno> {
        let mut all = ENDPOINTS.write().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(Option::is_none).unwrap_or(all.len());
        let number = u16::try_from(at).map_err(|_| Errno::NOMEM)?;
        if at == all.len() {
            all.push(None);
        }
        all[at] = Some((Arc::downgrade(domain), endpoint));
        Ok(Self(number))
    }

    /// The number.
    pub const fn number(&self) -> u16 {
        self.0
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut all = ENDPOINTS.write().unwrap_or_else(PoisonError::into_inner);
        all[usize::from(self.0)] = None;
    }
}

/// A message that an owner has, as one number that is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(u64);

impl Handle {
    /// A new one; no two endpoints have the same, so one that has outlived its
    /// endpoint means nothing.
    pub fn new(registered: u16) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only that each is given out once matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed) & ((1 << MESSAGE_BITS) - 1);
        Self(u64::from(registered) << MESSAGE_BITS | number)
    }

    /// Reads [`Handle::to_raw`]; any number is harmless.
    pub const fn from_raw(raw: usize) -> Self {
        Self(raw as u64)
    }

    /// The handle as a pointer's number.
    pub const fn to_raw(self) -> usize {
        self.0 as usize
    }

    /// The number under which the endpoint keeps the message.
    pub const fn message(self) -> u64 {
        self.0
    }

    /// The endpoint that keeps it.
    ///
    /// # Errors
    /// [`Errno::INVAL`]: there is none.
    pub fn endpoint(self) -> Result<(Arc<Shared>, usize), Errno> {
        let all = ENDPOINTS.read().unwrap_or_else(PoisonError::into_inner);
        let place = all.get((self.0 >> MESSAGE_BITS) as usize).and_then(Option::as_ref);
        let (domain, endpoint) = place.ok_or(Errno::INVAL)?;
        Ok((domain.upgrade().ok_or(Errno::INVAL)?, *endpoint))
    }
}
