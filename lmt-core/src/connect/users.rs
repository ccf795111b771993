//! Telling users apart where a user namespace has one number for many.
//!
//! SO_PEERCRED gives a user as this process's namespace numbers it. Users that
//! the namespace does not know all get one number, the overflow uid, which
//! may be this process's own: because it is unknown there itself, or because it
//! runs as the namespace's nobody (user_namespaces(7)).

use nix::sys::signal::kill;
use nix::unistd::{Pid, geteuid};

use crate::base::process::PeerProcess;

/// Where the kernel tells the number of unknown users.
const OVERFLOW_UID: &str = "/proc/sys/kernel/overflowuid";

/// The number where the kernel tells nothing.
const USUAL_OVERFLOW_UID: u32 = 65_534;

/// Whether other users may appear under this process's own number.
pub(super) fn shares_its_number() -> bool {
    let overflow = std::fs::read_to_string(OVERFLOW_UID).ok().and_then(|text| text.trim().parse().ok());
    let map = std::fs::read_to_string("/proc/self/uid_map").ok();
    geteuid().as_raw() == overflow.unwrap_or(USUAL_OVERFLOW_UID) && map.is_none_or(|map| !knows_all(&map))
}

/// Whether a uid_map has a number for every user, as that of the first
/// namespace has.
fn knows_all(map: &str) -> bool {
    let counts = map.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
    counts.sum::<u64>() >= u64::from(u32::MAX)
}

/// Whether the kernel, which knows all users, takes a process for one of this
/// process's user: only that one's, and those with a capability over it, may
/// send it signals, be it none (kill(2)).
pub(super) fn is_same(process: &PeerProcess) -> bool {
    // A number that is not seen here cannot be asked for.
    let Some(pid) = process.pid() else { return false };
    // Alive after it, the process had its number all the while.
    kill(Pid::from_raw(pid), None).is_ok() && process.pidfd().is_some() && process.is_alive()
}

/// Why a peer is refused.
pub(super) fn unsure(own: u32) -> String {
    format!(
        "the user namespace shows the peer's user as {own}, as it does all users that it does not know, and the kernel \
         does not take it for this process's own; give the user a number in the namespace's uid_map, or set \
         allow_other_users on both sides"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_knows_all_or_some() {
        assert!(knows_all("         0          0 4294967295\n"));
        assert!(knows_all("0 0 65536\n65536 65536 4294901759\n"));
        assert!(!knows_all("0 100000 65536\n"));
        assert!(!knows_all(""));
    }

    #[test]
    fn this_process_is_of_its_own_user() {
        let pid = std::process::id() as i32;
        let pidfd = crate::base::pidfd::pidfd_open(pid).ok();
        let known = pidfd.is_some();
        assert_eq!(is_same(&PeerProcess::new(pid, pidfd)), known);
        assert!(!is_same(&PeerProcess::new(0, None)));
    }
}
