use std::fs;

use super::*;

/// Folders of a machine that is none, removed when dropped.
struct Files(PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("lmt-checkup-{}-{test}", std::process::id()));
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::create_dir_all(root.join("dev")).unwrap();
        Self(root)
    }

    fn with(self, path: &str, content: &str) -> Self {
        fs::write(self.0.join(path), content).unwrap();
        self
    }

    fn host(&self) -> Host {
        Host::under(&self.0)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_absent_is_none_and_what_is_no_number_is_an_error() {
    let files = Files::new("numbers").with("proc/seven", "7\n").with("proc/word", "seven\n");
    let host = files.host();
    assert_eq!(host.proc_number("seven"), Ok(Some(7)));
    assert_eq!(host.proc_number("eight"), Ok(None));
    assert_eq!(host.proc_number("seven/below"), Ok(None));
    assert!(host.proc_number("word").unwrap_err().contains("holds 'seven', which is no number"));
    assert!(host.proc_text("self").unwrap_err().contains("cannot be read"));
}

#[test]
fn fields_of_the_status_are_found_by_their_whole_name() {
    let status = "Name:\tx\nSeccomp_filters:\t3\nSeccomp:\t2\nCapEff:\t0000000000080000\n";
    let files = Files::new("status").with("proc/self/status", status);
    let host = files.host();
    assert_eq!(host.status("Seccomp").as_deref(), Some("2"));
    assert_eq!(host.status("Seccomp_filters").as_deref(), Some("3"));
    assert_eq!(host.status("Sec"), None);
    assert_eq!((host.has_capability(19), host.has_capability(20)), (Some(true), Some(false)));
    assert_eq!(host.has_capability(64), Some(false));
    assert_eq!(Files::new("no-status").host().has_capability(19), None);
}

#[test]
fn devices_are_absent_or_granted() {
    let files = Files::new("devices").with("dev/there", "");
    assert_eq!(files.host().device_access("there"), FileAccess::Granted);
    assert_eq!(files.host().device_access("not-there"), FileAccess::Absent);
}

#[test]
fn a_finding_by_a_call_says_so_when_the_files_are_others() {
    let finding = || Finding::new("x", State::Good, "fine").fixed_by("nothing");
    assert_eq!(finding().by_call(&Host::default()), finding());
    let other = finding().by_call(&Host::under(Path::new("/elsewhere")));
    assert!(other.meaning.starts_with("fine (found by a call on this machine"), "{other:?}");
    assert_eq!(other.fix.as_deref(), Some("nothing"));
}

#[test]
fn this_machine_has_a_status() {
    let host = Host::default();
    assert!(host.is_this_machine());
    assert!(host.has_capability(0).is_some());
}
