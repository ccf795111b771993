//! Admitting the launcher's processes where Yama would keep them out.
//!
//! Yama's scope 1, the default of Ubuntu, lets only ancestors read and write a
//! process's memory. A process may name one other process that may do so too,
//! and with it that process's descendants: the launcher, and so every rank
//! that it started (PR_SET_PTRACER in prctl(2); the kernel's
//! Documentation/admin-guide/LSM/Yama.rst). Everybody (PR_SET_PTRACER_ANY) is
//! never admitted.

use nix::errno::Errno;

use super::sys;

/// The environment variable in which the launcher leaves its pid.
pub const LAUNCHER_PID: &str = "LMT_LAUNCHER_PID";

/// What [`admit_launcher`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admission {
    /// The launcher and its descendants may read and write this process.
    Admitted {
        /// The launcher's pid.
        pid: u32,
    },
    /// `LMT_LAUNCHER_PID` is not set.
    NoLauncher,
    /// `LMT_LAUNCHER_PID` is not a pid: nobody is admitted.
    NotAPid,
    /// The kernel refused: it has no Yama, which then refuses nothing either,
    /// or the launcher is gone or not visible here.
    NotTaken {
        /// What the kernel answered.
        errno: i32,
    },
}

/// Names the launcher (environment variable `LMT_LAUNCHER_PID`) to Yama.
///
/// Without Yama nothing happens and nothing is needed. The answer is for
/// diagnosis; whether a peer can be read is found out by reading it.
pub fn admit_launcher() -> Admission {
    match std::env::var(LAUNCHER_PID) {
        Ok(text) => admit(&text),
        Err(_) => Admission::NoLauncher,
    }
}

/// Names this process itself to Yama, so that the processes that it starts may
/// read and write its memory: what a launcher's name does for its ranks, for a
/// process that is a rank and starts others.
pub fn admit_descendants() -> Admission {
    admit(&std::process::id().to_string())
}

/// Names this process's parent to Yama, for a rank of a launcher that sets no
/// `LMT_LAUNCHER_PID`: that launcher's part on this machine has started the other
/// ranks too. Where the variable is set, it alone counts.
pub fn admit_siblings() -> Admission {
    match admit_launcher() {
        Admission::NoLauncher => admit_parent(std::os::unix::process::parent_id()),
        named => named,
    }
}

/// The first process is everybody's ancestor: whoever has lost its own parent has
/// that one, and admits nobody.
fn admit_parent(pid: u32) -> Admission {
    if pid == 1 { Admission::NoLauncher } else { admit(&pid.to_string()) }
}

fn admit(text: &str) -> Admission {
    // 0 would take back an admission, and -1 means everybody.
    let Some(pid) = text.parse::<u32>().ok().filter(|pid| (1..=i32::MAX as u32).contains(pid)) else {
        return Admission::NotAPid;
    };
    match sys::set_ptracer(pid) {
        Ok(()) => Admission::Admitted { pid },
        Err(errno) => {
            if errno != Errno::EINVAL && errno != Errno::ENOSYS {
                tracing::debug!(pid, %errno, "PR_SET_PTRACER refused");
            }
            Admission::NotTaken { errno: errno as i32 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pid_is_admitted() {
        for text in ["", "0", "-1", "4294967295", "18446744073709551615", "x"] {
            assert_eq!(admit(text), Admission::NotAPid, "{text:?}");
        }
    }

    #[test]
    fn a_process_without_a_parent_of_its_own_admits_nobody() {
        assert_eq!(admit_parent(1), Admission::NoLauncher);
        assert_eq!(admit_parent(0), Admission::NotAPid);
    }

    #[test]
    fn this_process_is_admitted_or_there_is_no_yama() {
        let pid = std::process::id();
        match admit_descendants() {
            Admission::Admitted { pid: named } => assert_eq!(named, pid),
            Admission::NotTaken { errno } => assert_eq!(errno, libc::EINVAL),
            other => panic!("{other:?}"),
        }
    }
}
