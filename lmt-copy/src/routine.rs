//! The routines that there are, and which of them this machine can run.
#![allow(unsafe_code)] // Calls them.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::x86;
use crate::{blocks, short};

/// A way to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Routine {
    /// The C library's `memcpy`.
    #[default]
    Libc,
    /// A loop over blocks of 16 bytes, on every architecture.
    Portable,
    /// The string instruction of x86-64.
    RepMovsb,
    /// A loop over blocks of 32 bytes.
    Avx2,
    /// A loop over blocks of 64 bytes.
    Avx512,
    /// Stores past the caches; AVX2.
    NonTemporal,
}

impl Routine {
    /// All that there are, on whatever machine.
    pub const ALL: [Self; 6] =
        [Self::Libc, Self::Portable, Self::RepMovsb, Self::Avx2, Self::Avx512, Self::NonTemporal];

    /// Its name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Libc => "libc",
            Self::Portable => "portable",
            Self::RepMovsb => "rep-movsb",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::NonTemporal => "non-temporal",
        }
    }

    /// The routine of this name.
    ///
    /// ```
    /// assert_eq!(lmt_copy::Routine::named("avx2"), Some(lmt_copy::Routine::Avx2));
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|routine| routine.name() == name)
    }

    /// The routine whose discriminant this is; the C library's where none is.
    #[inline]
    pub(crate) const fn of_code(code: u64) -> Self {
        match code {
            1 => Self::Portable,
            2 => Self::RepMovsb,
            3 => Self::Avx2,
            4 => Self::Avx512,
            5 => Self::NonTemporal,
            _ => Self::Libc,
        }
    }

    /// Whether this CPU, with this kernel, can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Libc | Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::RepMovsb => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 | Self::NonTemporal => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            _ => false,
        }
    }

    /// Copies `bytes` bytes in this way; up to [`crate::SHORT_MAX_BYTES`] as all
    /// short copies are, whatever the routine.
    ///
    /// # Panics
    /// This machine cannot run it ([`Self::is_available`]).
    ///
    /// # Safety
    /// `source` is valid for reads and `target` for writes of `bytes` bytes, and
    /// the two do not overlap. What others write there meanwhile must not matter.
    pub unsafe fn run(self, target: *mut u8, source: *const u8, bytes: usize) {
        assert!(self.is_available(), "this machine cannot run the copy routine {}", self.name());
        if bytes <= short::SHORT_MAX_BYTES {
            // SAFETY: the caller's promise, and short.
            unsafe { short::copy(target, source, bytes) };
            return;
        }
        // SAFETY: the caller's promise; it was found to be available, and is
        // long enough.
        unsafe { self.run_long(target, source, bytes) };
    }

    /// [`Self::run`] without looking.
    ///
    /// # Safety
    /// As for [`Self::run`]; it is available, and `bytes` is at least 256 unless
    /// it is the C library's.
    #[inline]
    pub(crate) unsafe fn run_long(self, target: *mut u8, source: *const u8, bytes: usize) {
        match self {
            // SAFETY: the caller's promise; 256 bytes are more than 64.
            Self::Portable => unsafe { blocks::portable(target, source, bytes) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the caller's promise.
            Self::RepMovsb => unsafe { x86::rep_movsb(target, source, bytes) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the caller's promise; available means that AVX2 is there.
            Self::Avx2 => unsafe { x86::avx2(target, source, bytes) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the caller's promise; available means that AVX-512F is
            // there and enabled by the kernel.
            Self::Avx512 => unsafe { x86::avx512(target, source, bytes) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the caller's promise; available means that AVX2 is there.
            Self::NonTemporal => unsafe { x86::non_temporal(target, source, bytes) },
            // SAFETY: the caller's promise. Becomes a call of `memcpy`.
            _ => unsafe { std::ptr::copy_nonoverlapping(source, target, bytes) },
        }
    }
}

#[cfg(test)]
#[path = "routine_tests.rs"]
mod tests;
