//! The one safe type.

use std::sync::Arc;

use lmt_core::identity::EndpointId;
use lmt_core::mechanism::Hello;
use lmt_core::process::PeerProcess;

use crate::driver::Driver;
use crate::error::KnemError;
use crate::ioctl::IoctlDriver;
use crate::user::UserDriver;

/// KNEM's interface by one driver or the other. All operations are those of
/// [`Driver`], which it derefs to.
#[derive(Debug)]
pub struct Knem {
    driver: Box<dyn Driver>,
}

impl Knem {
    /// KNEM's interface by this driver.
    pub fn with(driver: impl Driver) -> Self {
        Self { driver: Box::new(driver) }
    }

    /// KNEM's interface by the kernel module where that can be opened and is of
    /// the known version, and without it elsewhere; [`Knem::driver`] says which.
    ///
    /// Two that are to reach each other's regions need the same driver: whoever
    /// chooses it for all of them calls [`Knem::ioctl`] or [`Knem::user`].
    ///
    /// # Errors
    /// As [`Knem::user`].
    pub fn open() -> Result<Self, KnemError> {
        Self::ioctl().or_else(|_absent| Self::user())
    }

    /// KNEM's interface by the kernel module behind /dev/knem.
    ///
    /// # Errors
    /// [`KnemError::Unavailable`] with a sentence on what is missing.
    pub fn ioctl() -> Result<Self, KnemError> {
        IoctlDriver::open().map(Self::with)
    }

    /// KNEM's interface without the kernel module.
    ///
    /// # Errors
    /// [`KnemError::Memory`] or [`KnemError::System`].
    pub fn user() -> Result<Self, KnemError> {
        UserDriver::open().map(Self::with)
    }

    /// Takes an introduction by its bytes alone, where the driver finds the
    /// rest by itself; see [`UserDriver::add_process_by_name`].
    ///
    /// # Errors
    /// [`KnemError::Introduction`] where it does not, and as there.
    pub fn add_process_by_name(&mut self, name: &[u8]) -> Result<EndpointId, KnemError> {
        let introduction = Hello { bytes: name.to_vec(), descriptors: Vec::new() };
        self.driver.meet(Arc::new(PeerProcess::new(0, None)), introduction)
    }

    /// What the driver is called.
    pub fn driver(&self) -> &'static str {
        self.driver.name()
    }
}

impl std::ops::Deref for Knem {
    type Target = dyn Driver;
    fn deref(&self) -> &Self::Target {
        &*self.driver
    }
}

impl std::ops::DerefMut for Knem {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.driver
    }
}
