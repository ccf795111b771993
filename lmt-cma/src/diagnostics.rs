//! What decides whether one process may copy from or into another: the system
//! calls themselves, and the rules of ptrace(2), "Ptrace access mode checking".

use lmt_core::diagnostic::{Finding, Host, State};
use lmt_core::process::PeerProcess;
use nix::errno::Errno;

use crate::vm::{CopyError, read_bytes, write_bytes};

/// CAP_SYS_PTRACE (capabilities(7)).
const SYS_PTRACE: u32 = 19;
/// Yama's switch.
const SCOPE: &str = "sys/kernel/yama/ptrace_scope";

/// What there is to look at on a machine for whoever copies by process_vm_readv
/// and process_vm_writev.
///
/// ```
/// use lmt_core::diagnostic::Host;
/// assert!(lmt_cma::diagnostics(&Host::default()).iter().any(|finding| finding.name == "Yama"));
/// ```
pub fn diagnostics(host: &Host) -> Vec<Finding> {
    let privileged = host.has_capability(SYS_PTRACE);
    let mut found = vec![
        calls().by_call(host),
        yama(host, privileged),
        capability(privileged),
        dumpability(crate::sys::dumpable(), privileged).by_call(host),
    ];
    found.extend(selinux(host));
    found
}

/// SELinux's switch against debuggers, where there is SELinux: its value now,
/// and the one that is pending.
fn selinux(host: &Host) -> Option<Finding> {
    let name = "SELinux, deny_ptrace";
    let text = match host.sys_text("fs/selinux/booleans/deny_ptrace") {
        Ok(text) => text?,
        Err(why) => return Some(Finding::new(name, State::Unknown, why)),
    };
    Some(match text.split_whitespace().next() {
        Some("0") => Finding::new(name, State::Good, "off: it refuses nobody"),
        Some("1") => Finding::new(
            name,
            State::Blocked,
            "on: no process may reach another's memory, but for those of exempt domains",
        )
        .fixed_by("sudo setsebool -P deny_ptrace off"),
        _ => Finding::new(name, State::Unknown, format!("it says '{text}', which is neither 0 nor 1")),
    })
}

/// Both calls on memory of this very process: that needs no right, so what is
/// refused here is refused by a seccomp filter or missing in the kernel.
fn calls() -> Finding {
    let own = PeerProcess::new(std::process::id() as i32, None);
    let source = [7u8; 16];
    let mut target = [0u8; 16];
    let read = read_bytes(&own, source.as_ptr().expose_provenance() as u64, &mut target);
    // Another array, that only the kernel touches, by its address.
    let mut written = [0u8; 16];
    let write = write_bytes(&own, written.as_mut_ptr().expose_provenance() as u64, &source);
    calls_finding(errno_of(read), errno_of(write))
}

fn errno_of(result: Result<(), CopyError>) -> Option<Errno> {
    match result {
        Ok(()) => None,
        Err(CopyError::Refused(errno)) => Some(errno),
        Err(CopyError::Dead) => Some(Errno::ESRCH),
    }
}

fn calls_finding(read: Option<Errno>, write: Option<Errno>) -> Finding {
    let name = "process_vm_readv and process_vm_writev";
    let refused: Vec<(&str, Errno)> = [("process_vm_readv", read), ("process_vm_writev", write)]
        .into_iter()
        .filter_map(|(call, errno)| Some((call, errno?)))
        .collect();
    let Some((_, errno)) = refused.first() else {
        return Finding::new(name, State::Good, "the kernel has both calls, and no filter refuses them");
    };
    let list: Vec<String> = refused.iter().map(|(call, errno)| format!("{call} ({errno})")).collect();
    let list = list.join(" and ");
    if *errno == Errno::ENOSYS {
        let meaning = format!(
            "refused even for this process's own memory: {list}; the kernel was built without them, or a seccomp filter says so"
        );
        return Finding::new(name, State::Blocked, meaning).fixed_by(
            "use a kernel with CONFIG_CROSS_MEMORY_ATTACH=y, or a seccomp filter that allows both calls",
        );
    }
    let meaning = format!(
        "refused even for this process's own memory: {list}; that is the work of a seccomp filter, as of a container"
    );
    Finding::new(name, State::Blocked, meaning).fixed_by(
        "allow both calls in the filter; with Docker: --security-opt seccomp=FILE, whose FILE lists process_vm_readv and process_vm_writev",
    )
}

fn yama(host: &Host, privileged: Option<bool>) -> Finding {
    let name = "Yama";
    let scope = match host.proc_number(SCOPE) {
        Ok(Some(scope)) => scope,
        Ok(None) => {
            return Finding::new(name, State::Good, "this kernel has no Yama; it refuses nobody");
        }
        Err(why) => return Finding::new(name, State::Unknown, why),
    };
    let exempt = privileged == Some(true);
    match (scope, exempt) {
        (0, _) => {
            Finding::new(name, State::Good, "ptrace_scope is 0: processes of one user may reach each other")
        }
        (1 | 2, true) => Finding::new(
            name,
            State::Good,
            format!("ptrace_scope is {scope}, from which this process is exempt by CAP_SYS_PTRACE"),
        ),
        (1, false) => Finding::new(
            name,
            State::Limited,
            "ptrace_scope is 1: a process is reached by its ancestors and by whom it names, so the ranks of one launcher reach each other (they name it), and processes started otherwise do not",
        )
        .fixed_by("start the processes by lmt run, or: sudo sysctl kernel.yama.ptrace_scope=0"),
        (2, false) => Finding::new(
            name,
            State::Blocked,
            "ptrace_scope is 2: only processes with CAP_SYS_PTRACE reach others, and this one has it not",
        )
        .fixed_by("sudo sysctl kernel.yama.ptrace_scope=1 (then start the processes by lmt run)"),
        (3, _) => Finding::new(
            name,
            State::Blocked,
            "ptrace_scope is 3: nobody reaches another process, and that cannot be changed before the next boot",
        )
        .fixed_by("set kernel.yama.ptrace_scope to 0 or 1 in /etc/sysctl.d, then reboot"),
        (other, _) => {
            Finding::new(name, State::Unknown, format!("ptrace_scope is {other}, which is none of 0 to 3"))
        }
    }
}

fn capability(privileged: Option<bool>) -> Finding {
    let name = "CAP_SYS_PTRACE";
    match privileged {
        Some(true) => Finding::new(
            name,
            State::Good,
            "this process has it, so Yama's scopes 1 and 2 and dumpability do not bind it within its user namespace; lmt does not ask for it",
        ),
        Some(false) => Finding::new(
            name,
            State::Good,
            "this process has it not, and needs it not: processes of one user reach each other where Yama and dumpability allow",
        ),
        None => {
            Finding::new(name, State::Unknown, "the status of this process does not tell its capabilities")
        }
    }
}

fn dumpability(dumpable: Result<i32, Errno>, privileged: Option<bool>) -> Finding {
    let name = "dumpability";
    match (dumpable, privileged) {
        (Ok(1), _) => {
            Finding::new(name, State::Good, "this program is dumpable: processes of its user may reach it")
        }
        (Ok(value), Some(true)) => Finding::new(
            name,
            State::Limited,
            format!(
                "PR_GET_DUMPABLE is {value}: only processes with CAP_SYS_PTRACE, as this one, reach programs that are not dumpable"
            ),
        )
        .fixed_by("run a program that its user can read (chmod a+r PROGRAM) and that does not clear PR_SET_DUMPABLE"),
        (Ok(value), _) => Finding::new(
            name,
            State::Blocked,
            format!(
                "PR_GET_DUMPABLE is {value}: no other process may reach this one; so it is with executables that their user cannot read, that gain rights when started, or that clear it"
            ),
        )
        .fixed_by("chmod a+r PROGRAM, take set-uid bits and file capabilities off it, and do not call prctl(PR_SET_DUMPABLE, 0) in it"),
        (Err(errno), _) => Finding::new(name, State::Unknown, format!("PR_GET_DUMPABLE failed: {errno}")),
    }
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
