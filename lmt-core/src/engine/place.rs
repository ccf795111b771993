//! Where processes may run, as far as waiting needs to know it.

use nix::sched::{CpuSet as KernelSet, sched_getaffinity};
use nix::unistd::Pid;

/// The CPUs on which a process may run: one bit each, up to 1024.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuSet([u8; Self::BYTES]);

impl CpuSet {
    /// Its size on the wire.
    pub const BYTES: usize = 128;

    /// No CPU at all.
    pub const EMPTY: Self = Self([0; Self::BYTES]);

    /// Where the calling thread may run now (sched_getaffinity(2)). Empty when
    /// the kernel does not say.
    pub fn of_this_thread() -> Self {
        let mut set = Self::EMPTY;
        let Ok(kernel) = sched_getaffinity(Pid::from_raw(0)) else { return set };
        for cpu in 0..KernelSet::count().min(Self::BYTES * 8) {
            if kernel.is_set(cpu).unwrap_or(false) {
                set.0[cpu / 8] |= 1 << (cpu % 8);
            }
        }
        set
    }

    /// The set with these bits; bit 0 of byte 0 is CPU 0.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bits.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The CPUs in either set.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
        self
    }

    /// How many CPUs.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|b| b.count_ones()).sum()
    }
}
