//! What would help where a system call fails, by the number of the error.

use nix::errno::Errno;

/// What would help where `call` was answered with `errno`, as the end of a sentence.
///
/// A call may be refused, absent from the kernel, or short of something; each has
/// a remedy of its own (errno(3)).
///
/// ```
/// use lmt_core::errno_advice::advice;
/// use nix::errno::Errno;
/// assert!(advice("eventfd2", Errno::EPERM).contains("seccomp"));
/// assert!(advice("eventfd2", Errno::EMFILE).contains("ulimit -n"));
/// ```
pub fn advice(call: &str, errno: Errno) -> String {
    match errno {
        Errno::EPERM | Errno::EACCES => {
            format!(
                "a seccomp filter or a security module refuses it to this process; allow {call} there (the profile of the container)"
            )
        }
        Errno::ENOSYS => {
            format!(
                "this kernel has no {call}, or a seccomp filter says so; use a newer kernel, or allow the call in the filter"
            )
        }
        Errno::EMFILE => "raise the limit on open files (RLIMIT_NOFILE, ulimit -n)".to_owned(),
        Errno::ENFILE => {
            "the machine has no open file left; close some, or raise /proc/sys/fs/file-max".to_owned()
        }
        Errno::ENOSPC if call == "epoll_ctl" => {
            "raise /proc/sys/fs/epoll/max_user_watches".to_owned()
        }
        Errno::ENOMEM | Errno::ENOBUFS | Errno::ENOSPC => {
            "free memory, or raise the limit on address space (RLIMIT_AS, ulimit -v) or on mappings (vm.max_map_count)"
                .to_owned()
        }
        Errno::ETOOMANYREFS => {
            "too many descriptors are being passed; raise the limit on open files (RLIMIT_NOFILE, ulimit -n)".to_owned()
        }
        Errno::EAGAIN => {
            "raise the limit on locked memory (RLIMIT_MEMLOCK, ulimit -l)".to_owned()
        }
        _ => format!("the manual page of {call} says what this answer means"),
    }
}

/// The same where `call` names a socket's file: EACCES is what that file and its folder
/// allow (path_resolution(7)).
pub fn socket_file_advice(call: &str, errno: Errno) -> String {
    match errno {
        Errno::EACCES => {
            "the permissions of the socket's file or of its folder forbid it; run both processes as one user, or let this one search the folder and set allow_other_users on both sides"
                .to_owned()
        }
        _ => advice(call, errno),
    }
}

/// The same where a thread cannot be made: EAGAIN is a limit on processes, or a stack
/// that finds no room (pthread_create(3)).
pub fn thread_advice(errno: Errno) -> String {
    match errno {
        Errno::EAGAIN | Errno::ENOMEM => {
            "raise the limits on processes (RLIMIT_NPROC, ulimit -u; pids.max of the cgroup) and on address space (RLIMIT_AS, ulimit -v)"
                .to_owned()
        }
        _ => advice("clone", errno),
    }
}

/// Whether this says that memory is short, and nothing else.
pub(crate) fn is_memory(errno: Errno) -> bool {
    matches!(errno, Errno::ENOMEM | Errno::ENOSPC | Errno::ENOBUFS | Errno::EFBIG)
}

/// Whether a peer may be believed that its system answered this: what [`advice`] knows. It
/// becomes an error here, where EAGAIN, say, would have a caller try for ever.
pub(crate) fn is_expected(errno: Errno) -> bool {
    use Errno::*;
    let refused = [EPERM, EACCES, ENOSYS];
    refused.contains(&errno) || [EMFILE, ENFILE, ETOOMANYREFS].contains(&errno) || is_memory(errno)
}

#[cfg(test)]
#[path = "errno_advice_tests.rs"]
mod tests;
