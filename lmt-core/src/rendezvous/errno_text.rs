//! How a failure on the other side is told: packets carry an errno only.

use nix::errno::Errno;

/// The errno in words, or that there was none.
pub(super) fn of_errno(errno: i32) -> String {
    match errno {
        0 => "without an error of the kernel's; the peer's `mechanism_status` says why".into(),
        _ => {
            let errno = Errno::from_raw(errno);
            format!("with {errno:?} ({})", errno.desc())
        }
    }
}
