//! The kernel, and what it lets this process do.

use lmt::diagnostic::{Finding, Host, State};

/// What the kernel calls its first namespaces (PROC_USER_INIT_INO and
/// PROC_PID_INIT_INO in include/uapi/linux/nsfs.h; the same on every machine).
const INITIAL_USER: &str = "user:[4026531837]";
const INITIAL_PID: &str = "pid:[4026531836]";

/// Capabilities that lift a limit or a rule for lmt (capabilities(7)).
const CAPABILITIES: [(u32, &str, &str); 4] = [
    (14, "CAP_IPC_LOCK", "locks memory without limit"),
    (19, "CAP_SYS_PTRACE", "reaches other processes"),
    (21, "CAP_SYS_ADMIN", "exceeds limits on pipes"),
    (24, "CAP_SYS_RESOURCE", "exceeds limits on pipes and raises its own"),
];

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![
        kernel(host),
        seccomp(host),
        user_namespace(host),
        pid_namespace(host),
        capabilities(host),
        set_uid_programs(host),
    ]
}

fn unknown(name: &str, why: impl Into<String>) -> Finding {
    Finding::new(name, State::Unknown, why)
}

fn kernel(host: &Host) -> Finding {
    let name = "kernel";
    let release = match host.proc_text("sys/kernel/osrelease") {
        Ok(Some(release)) => release,
        Ok(None) => return unknown(name, "there is no /proc/sys/kernel/osrelease; mount /proc"),
        Err(why) => return unknown(name, why),
    };
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let fix = "use Linux 5.3 or newer";
    match version {
        (0, _) => unknown(name, format!("its release is '{release}', which names no version")),
        (3, 0..=16) | (1..=2, _) => {
            let meaning = format!("Linux {release} has no memfd_create, without which there is no endpoint");
            Finding::new(name, State::Blocked, meaning).fixed_by(fix)
        }
        (3 | 4, _) | (5, 0..=2) => {
            let meaning = format!("Linux {release} has no pidfd_open: deaths are told by sockets alone");
            Finding::new(name, State::Limited, meaning).fixed_by(fix)
        }
        _ => Finding::new(name, State::Good, format!("Linux {release}")),
    }
}

fn seccomp(host: &Host) -> Finding {
    let name = "seccomp";
    let privileges = match host.status("NoNewPrivs").as_deref() {
        Some("1") => "; starting a set-uid program gives no rights (NoNewPrivs)",
        _ => "",
    };
    match host.status("Seccomp").as_deref() {
        None => unknown(name, "the status of this process does not tell; the kernel may be without seccomp"),
        Some("0") => Finding::new(name, State::Good, format!("no filter{privileges}")),
        Some("1") => Finding::new(name, State::Blocked, "strict mode: nothing but read and write is allowed")
            .fixed_by("start the program without PR_SET_SECCOMP"),
        Some(_) => {
            let filters = host.status("Seccomp_filters").unwrap_or_else(|| "some".to_owned());
            let meaning = format!(
                "filters in force: {filters}{privileges}; which calls they refuse shows only by making them, as was done for the mechanisms"
            );
            Finding::new(name, State::Good, meaning)
        }
    }
}

fn user_namespace(host: &Host) -> Finding {
    let name = "user namespace";
    let link = std::fs::read_link(host.proc_dir.join("self/ns/user")).ok();
    let map = match host.proc_text("self/uid_map") {
        Ok(Some(map)) => map,
        Ok(None) => return Finding::new(name, State::Good, "this kernel has none"),
        Err(why) => return unknown(name, why),
    };
    let words: Vec<&str> = map.split_whitespace().collect();
    // A namespace made by hand may map everything too; the link knows better.
    let initial = link.map_or(words == ["0", "0", "4294967295"], |link| link.as_os_str() == INITIAL_USER);
    if initial {
        return Finding::new(name, State::Good, "the initial one");
    }
    let shown = words.chunks(3).map(|line| line.join(" ")).collect::<Vec<_>>().join(", ");
    let shown = if shown.is_empty() { "nothing".to_owned() } else { shown };
    Finding::new(
        name,
        State::Limited,
        format!(
            "not the initial one (uid_map: {shown}): capabilities count within it only, and processes of different user namespaces do not reach each other's memory; messages between them go through shared memory"
        ),
    )
    .fixed_by("run all processes in one user namespace (with containers: one container, or --userns=host)")
}

fn pid_namespace(host: &Host) -> Finding {
    let name = "pid namespace";
    let link = std::fs::read_link(host.proc_dir.join("self/ns/pid"));
    let children = std::fs::read_link(host.proc_dir.join("self/ns/pid_for_children"));
    if let (Ok(own), Ok(children)) = (&link, &children)
        && own != children
    {
        let meaning = "the processes that this one starts are in another pid namespace than it, so they do not see its pid and cannot copy from or into it";
        return Finding::new(name, State::Limited, meaning)
            .fixed_by("start it as the first process of its namespace (unshare --fork --pid --mount-proc)");
    }
    // As many numbers as namespaces are seen from here down.
    let nested = host.status("NSpid").is_some_and(|pids| pids.split_whitespace().count() > 1);
    match link {
        Ok(link) if link.as_os_str() == INITIAL_PID && !nested => {
            Finding::new(name, State::Good, "the initial one")
        }
        Ok(_) => Finding::new(
            name,
            State::Limited,
            "not the initial one: a process copies from and into those only whose pid it sees; messages to others are copied by the one that sees the other, or go through shared memory",
        )
        .fixed_by("run all processes in one pid namespace (with containers: one container, --pid=container:NAME or --pid=host)"),
        Err(error) => unknown(name, format!("/proc/self/ns/pid cannot be read: {error}")),
    }
}

fn capabilities(host: &Host) -> Finding {
    let name = "capabilities";
    if host.has_capability(0).is_none() {
        return unknown(name, "the status of this process does not tell them");
    }
    let held = CAPABILITIES.iter().filter(|(number, _, _)| host.has_capability(*number) == Some(true));
    let held: Vec<String> = held.map(|(_, name, effect)| format!("{name} ({effect})")).collect();
    let meaning = if held.is_empty() {
        "none that lifts a rule or limit for lmt; none is needed".to_owned()
    } else {
        format!("{}; none is needed, and users without them may find more refused", held.join(", "))
    };
    Finding::new(name, State::Good, meaning)
}

/// What becomes of programs that change rights when they start (suid_dumpable
/// in proc_sys_fs(5)).
fn set_uid_programs(host: &Host) -> Finding {
    let name = "suid_dumpable";
    match host.proc_number("sys/fs/suid_dumpable") {
        Ok(Some(1)) => Finding::new(
            name,
            State::Good,
            "1: even programs that are set-uid, or that their user cannot read, may be reached by others",
        ),
        Ok(Some(value)) => Finding::new(
            name,
            State::Good,
            format!(
                "{value}: programs that are set-uid, have file capabilities, or cannot be read by their user are reached by nobody but the privileged; others are not concerned"
            ),
        ),
        Ok(None) => unknown(name, "there is no /proc/sys/fs/suid_dumpable"),
        Err(why) => unknown(name, why),
    }
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
