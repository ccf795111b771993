//! Descriptors that pipes may take: connections come first, since without a
//! pipe a message takes another way, and without a connection there is none.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::resource::{Resource, getrlimit};

/// At most so many descriptors are kept free for others.
const MAX_KEPT_FREE: u64 = 256;

/// Whether a descriptor that was just made leaves enough free: half of what
/// this process may have, or 256. The kernel gives the lowest number that is
/// free, so the number says how many are taken.
pub(crate) fn leaves_enough(descriptor: &OwnedFd) -> bool {
    // Where the limit cannot be read there is none that would be met.
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    is_within(u64::try_from(descriptor.as_raw_fd()).unwrap_or(u64::MAX), limit)
}

fn is_within(number: u64, limit: u64) -> bool {
    number < limit - (limit / 2).min(MAX_KEPT_FREE)
}

#[cfg(test)]
#[path = "spare_tests.rs"]
mod tests;
