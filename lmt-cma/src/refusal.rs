//! Why the kernel refuses this process a copy, in one sentence that says what
//! would help.
//!
//! EPERM has many reasons. Whether the call itself is refused shows by a call
//! that asks for nothing; what is wrong with the peer is looked up in proc(5),
//! in the order in which the kernel checks (ptrace(2), "Ptrace access mode
//! checking"). Where that says nothing, what is left is named.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use crate::sys;

/// One sentence on what an errno of these calls means and what would help.
pub(crate) fn sentence(errno: Errno, process: &PeerProcess) -> String {
    let meaning = match errno {
        Errno::EPERM | Errno::ENOSYS => match sys::refused_call() {
            Some((call, _)) => of_the_call(call, errno, is_filtered(Path::new("/proc/thread-self"))),
            None => of_the_peer(process),
        },
        Errno::EFAULT => {
            "a page of the buffer here or in the peer cannot be accessed; it must be mapped and \
             neither PROT_NONE nor, where it is written, read-only"
                .to_owned()
        }
        Errno::ESRCH => "the peer's pid names no process here; both must share one pid namespace".to_owned(),
        Errno::ENOMEM => {
            "the kernel found no memory to describe the pieces; free memory or send fewer segments".to_owned()
        }
        Errno::EACCES => "the receive buffer is read-only; pass it with Access::Write".to_owned(),
        _ => "the kernel refused the copy between the two processes".to_owned(),
    };
    format!("{meaning} ({errno})")
}

/// The call itself is refused, whatever process it names.
fn of_the_call(call: &str, errno: Errno, is_filtered: bool) -> String {
    match (is_filtered, errno) {
        (true, _) => format!(
            "a seccomp filter of this process refuses {call}; allow process_vm_readv and process_vm_writev in the \
             container's seccomp profile"
        ),
        (false, Errno::ENOSYS) => format!("the kernel lacks {call}; it needs CONFIG_CROSS_MEMORY_ATTACH"),
        (false, _) => format!(
            "this process may not call {call} at all; no security module or sandbox around it may forbid \
             process_vm_readv and process_vm_writev"
        ),
    }
}

/// The call is allowed, but not with this peer.
fn of_the_peer(process: &PeerProcess) -> String {
    let seen = process.pid().and_then(|pid| Seen::of(Path::new("/proc"), pid));
    let why = match seen.map(|seen| seen.obstacles()) {
        None => UNSEEN.to_owned(),
        Some(found) if found.is_empty() => LEFT.to_owned(),
        Some(found) => found.join("; and "),
    };
    format!("the kernel does not let this process into the peer's memory: {why}")
}

const UNSEEN: &str = "/proc does not show why; both must run as one user in one user namespace, the peer dumpable, no \
     security module (such as AppArmor or SELinux) may forbid it, and where Yama's \
     /proc/sys/kernel/yama/ptrace_scope is 1 the peer must have named this process's launcher by PR_SET_PTRACER";
const LEFT: &str = "users, dumpability and Yama do not forbid it, so the peer is in another user namespace, or a security \
     module (such as AppArmor or SELinux) forbids it; run both in one container, and allow ptrace between them";

/// Whether a seccomp filter is in force for the thread of this folder of
/// proc(5).
fn is_filtered(thread: &Path) -> bool {
    let status = std::fs::read_to_string(thread.join("status")).unwrap_or_default();
    value(&status, "Seccomp").is_some_and(|mode| mode == "2")
}

/// The value of a `key:` line.
fn value<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    let of_key = |line: &'a str| line.strip_prefix(key)?.strip_prefix(':');
    status.lines().find_map(of_key).map(str::trim)
}

/// What proc(5) shows of two processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    ours: Credentials,
    theirs: Credentials,
    /// Whether the peer's files belong to another user than the peer: the
    /// kernel's mark of a process that is not dumpable.
    is_closed: bool,
    /// Whether their user namespaces are known to differ.
    other_user_namespace: bool,
    /// Yama's scope, 0 where there is no Yama.
    yama_scope: u32,
}

/// Who a process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Credentials {
    /// Real, effective and saved.
    users: Vec<u32>,
    /// Real, effective and saved.
    groups: Vec<u32>,
    /// The permitted capabilities as bits.
    capabilities: u64,
}

impl Credentials {
    fn read(process: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(process.join("status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let three = |key| -> Option<Vec<u32>> {
            value(status, key)?.split_ascii_whitespace().take(3).map(|number| number.parse().ok()).collect()
        };
        Some(Self {
            users: three("Uid")?,
            groups: three("Gid")?,
            capabilities: u64::from_str_radix(value(status, "CapPrm")?, 16).ok()?,
        })
    }
}

impl Seen {
    /// `None` where nothing can be said, as where /proc is that of another pid
    /// namespace.
    fn of(proc: &Path, pid: i32) -> Option<Self> {
        let own = std::process::id().to_string();
        if std::fs::read_link(proc.join("self")).ok()?.as_os_str() != own.as_str() {
            return None;
        }
        let (here, there) = (proc.join(own), proc.join(pid.to_string()));
        let owner = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.uid()).ok();
        let map = |process: &Path| std::fs::read_to_string(process.join("uid_map")).ok();
        let yama = std::fs::read_to_string(proc.join("sys/kernel/yama/ptrace_scope")).ok();
        Some(Self {
            ours: Credentials::read(&here)?,
            theirs: Credentials::read(&there)?,
            is_closed: owner(&there)? != owner(&there.join("stat"))?,
            // Read by one process, the maps of one namespace are the same.
            other_user_namespace: map(&here)? != map(&there)?,
            yama_scope: yama.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        })
    }

    /// What certainly stands in the way, each with what would help.
    fn obstacles(&self) -> Vec<String> {
        let mut found = Vec::new();
        let own = |ids: &[u32]| ids.first().copied().unwrap_or_default();
        let (user, group) = (own(&self.ours.users), own(&self.ours.groups));
        let differ = |theirs: &[u32], own: u32| theirs.iter().any(|id| *id != own);
        if differ(&self.theirs.users, user) || differ(&self.theirs.groups, group) {
            found.push(format!(
                "the peer's real, effective and saved users {:?} and groups {:?} are not all this process's own, {user} \
                 and {group}; run both as one user and one group",
                self.theirs.users, self.theirs.groups
            ));
        }
        if self.is_closed {
            found.push(
                "the peer is not dumpable (PR_SET_DUMPABLE); it must not ask for that, change its user, or run a \
                 program that it may not read"
                    .to_owned(),
            );
        }
        if self.other_user_namespace {
            found.push("the peer is in another user namespace; run both in one".to_owned());
        } else if self.theirs.capabilities & !self.ours.capabilities != 0 {
            found.push(
                "the peer holds capabilities that this process lacks; drop them there or grant them here"
                    .to_owned(),
            );
        }
        found.extend(yama(self.yama_scope).map(str::to_owned));
        found
    }
}

/// What Yama's scope (its page in the kernel's admin guide) forbids.
fn yama(scope: u32) -> Option<&'static str> {
    match scope {
        0 => None,
        1 => Some(
            "Yama (/proc/sys/kernel/yama/ptrace_scope is 1) admits nobody whom the peer has not named by PR_SET_PTRACER; \
             start both by one `lmt run`, or set it to 0",
        ),
        2 => Some(
            "Yama (/proc/sys/kernel/yama/ptrace_scope is 2) admits only who has CAP_SYS_PTRACE; grant it, or set it to 0",
        ),
        _ => Some(
            "Yama (/proc/sys/kernel/yama/ptrace_scope is 3) admits nobody until the next boot; boot with another scope",
        ),
    }
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
