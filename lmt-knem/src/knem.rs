//! The one safe type.

use crate::driver::Driver;
use crate::error::KnemError;
use crate::ioctl::IoctlDriver;

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

    /// KNEM's interface by the kernel module behind /dev/knem.
    ///
    /// # Errors
    /// [`KnemError::Unavailable`] with a sentence on what is missing.
    pub fn ioctl() -> Result<Self, KnemError> {
        IoctlDriver::open().map(Self::with)
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
