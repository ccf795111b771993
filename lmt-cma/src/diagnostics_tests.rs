use std::fs;
use std::path::PathBuf;

use super::*;

/// A /proc in which Yama's switch says this, or is not there; removed when
/// dropped.
struct Files(PathBuf);

impl Files {
    fn new(test: &str, scope: Option<&str>, cap_eff: &str) -> Self {
        let root = std::env::temp_dir().join(format!("lmt-cma-checkups-{}-{test}", std::process::id()));
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::create_dir_all(root.join("proc/sys/kernel/yama")).unwrap();
        fs::write(root.join("proc/self/status"), format!("CapEff:\t{cap_eff}\n")).unwrap();
        if let Some(scope) = scope {
            fs::write(root.join("proc").join(SCOPE), scope).unwrap();
        }
        Self(root)
    }

    fn finding(&self, name: &str) -> Finding {
        let found = diagnostics(&Host::under(&self.0));
        found.into_iter().find(|finding| finding.name == name).unwrap()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const NO_CAPABILITY: &str = "0000000000000000";
const ONLY_SYS_PTRACE: &str = "0000000000080000";

#[test]
fn every_scope_of_yama_has_its_meaning() {
    for (scope, capabilities, state, part, fix) in [
        (None, NO_CAPABILITY, State::Good, "no Yama", None),
        (Some("0\n"), NO_CAPABILITY, State::Good, "is 0", None),
        (Some("1\n"), NO_CAPABILITY, State::Limited, "one launcher", Some("lmt run")),
        (Some("1\n"), ONLY_SYS_PTRACE, State::Good, "exempt", None),
        (Some("2\n"), NO_CAPABILITY, State::Blocked, "CAP_SYS_PTRACE", Some("ptrace_scope=1")),
        (Some("2\n"), ONLY_SYS_PTRACE, State::Good, "exempt", None),
        (Some("3\n"), NO_CAPABILITY, State::Blocked, "nobody", Some("reboot")),
        (Some("3\n"), ONLY_SYS_PTRACE, State::Blocked, "nobody", Some("reboot")),
        (Some("4\n"), NO_CAPABILITY, State::Unknown, "none of 0 to 3", None),
        (Some("on\n"), NO_CAPABILITY, State::Unknown, "no number", None),
    ] {
        let found = Files::new("scopes", scope, capabilities).finding("Yama");
        assert_eq!(found.state, state, "{scope:?}: {found:?}");
        assert!(found.meaning.contains(part), "{scope:?}: {found:?}");
        assert_eq!(found.fix.is_some(), fix.is_some(), "{scope:?}: {found:?}");
        assert!(found.fix.unwrap_or_default().contains(fix.unwrap_or_default()), "{scope:?}");
    }
}

#[test]
fn without_a_status_nobody_is_taken_to_be_privileged() {
    let files = Files::new("no-status", Some("2\n"), NO_CAPABILITY);
    fs::remove_file(files.0.join("proc/self/status")).unwrap();
    assert_eq!(files.finding("Yama").state, State::Blocked);
    assert_eq!(files.finding("CAP_SYS_PTRACE").state, State::Unknown);
}

#[test]
fn a_refused_call_is_named_and_told_from_a_missing_one() {
    assert_eq!(calls_finding(None, None).state, State::Good);
    let filtered = calls_finding(None, Some(Errno::EPERM));
    assert_eq!(filtered.state, State::Blocked);
    assert!(filtered.meaning.contains("process_vm_writev (EPERM"), "{filtered:?}");
    assert!(!filtered.meaning.contains("process_vm_readv"), "{filtered:?}");
    assert!(filtered.meaning.contains("seccomp"), "{filtered:?}");
    let missing = calls_finding(Some(Errno::ENOSYS), Some(Errno::ENOSYS));
    assert!(missing.fix.unwrap().contains("CONFIG_CROSS_MEMORY_ATTACH"));
}

#[test]
fn who_is_not_dumpable_is_reached_by_the_privileged_only() {
    assert_eq!(dumpability(Ok(1), Some(false)).state, State::Good);
    assert_eq!(dumpability(Ok(0), Some(true)).state, State::Limited);
    let blocked = dumpability(Ok(2), Some(false));
    assert_eq!(blocked.state, State::Blocked);
    assert!(blocked.fix.unwrap().contains("chmod a+r"));
    assert_eq!(dumpability(Ok(0), None).state, State::Blocked);
    assert_eq!(dumpability(Err(Errno::EPERM), None).state, State::Unknown);
}

/// The tests themselves run where the calls work, or the conformance suite of
/// this crate says that it was skipped.
#[test]
fn the_calls_are_made_for_real() {
    let found = calls();
    assert!(matches!(found.state, State::Good | State::Blocked), "{found:?}");
    let other = Files::new("real", None, NO_CAPABILITY).finding(&found.name);
    assert!(other.meaning.ends_with("(found by a call on this machine, not in the files given)"));
}

#[test]
fn the_switch_of_selinux_is_looked_at_where_it_is() {
    let files = Files::new("selinux", None, NO_CAPABILITY);
    let host = Host::under(&files.0);
    assert_eq!(selinux(&host), None);
    fs::create_dir_all(files.0.join("sys/fs/selinux/booleans")).unwrap();
    for (text, state) in [("0 0", State::Good), ("1 0", State::Blocked), ("", State::Unknown)] {
        fs::write(files.0.join("sys/fs/selinux/booleans/deny_ptrace"), text).unwrap();
        assert_eq!(selinux(&host).unwrap().state, state, "{text}");
        assert_eq!(files.finding("SELinux, deny_ptrace").state, state, "{text}");
    }
}
