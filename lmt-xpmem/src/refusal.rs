//! What the driver's answers mean, in a sentence.

use lmt_core::mechanism::{Fault, Unavailable};
use nix::errno::Errno;

use crate::abi;

/// What stands in the way where a request was answered with this, and what would help.
pub(crate) fn sentence(errno: Errno) -> String {
    let meaning = match errno {
        Errno::ENOENT | Errno::ENXIO | Errno::ENODEV => {
            "there is no /dev/xpmem, or no such segment: XPMEM's module is not loaded, or the peer has ended; load it (modprobe xpmem)"
        }
        Errno::EACCES | Errno::EPERM => {
            "the device or the peer's segment is refused to this process: both processes must be of one user, who may read and write /dev/xpmem"
        }
        Errno::ENOTSUP => {
            "XPMEM's module is of a version that is not known, or this CPU is not: 2.6 and 2.7 are, on x86-64"
        }
        Errno::ENOMEM => {
            "there is no room to attach the peer's memory; raise the limit on address space (ulimit -v) or on mappings (vm.max_map_count)"
        }
        Errno::EFAULT => {
            "the peer's memory is not there, or is none that XPMEM attaches (of a device, or attached itself)"
        }
        Errno::UnknownErrno => {
            "XPMEM's module has forgotten this process: a library in it has closed /dev/xpmem"
        }
        _ => "XPMEM's module refuses it",
    };
    format!("{meaning} ({errno})")
}

pub(crate) fn unavailable(errno: Errno) -> Unavailable {
    Unavailable { errno: number(errno), sentence: sentence(errno) }
}

pub(crate) fn demote(errno: Errno, for_good: bool) -> Fault {
    Fault::Demote { errno: number(errno), for_good, sentence: sentence(errno) }
}

const fn number(errno: Errno) -> i32 {
    match errno {
        // The only one that nix does not know.
        Errno::UnknownErrno => abi::NO_PROCESS,
        errno => errno as i32,
    }
}
