use std::fs;
use std::path::PathBuf;

use super::*;

/// Folders of a machine that is none, removed when dropped.
struct Files(PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("lmt-dsa-checkups-{}-{test}", std::process::id()));
        fs::create_dir_all(root.join("proc")).unwrap();
        Self(root)
    }

    fn with(self, path: &str, content: &str) -> Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A work queue in this mode, enabled, with a device.
    fn queue(self, name: &str, mode: &str) -> Self {
        let of = |attribute: &str| format!("sys/bus/dsa/devices/{name}/{attribute}");
        self.with(&of("state"), "enabled\n")
            .with(&of("type"), "user\n")
            .with(&of("mode"), mode)
            .with(&of("size"), "16\n")
            .with(&of("max_transfer_size"), "2147483648\n")
            .with(&format!("dev/dsa/{name}"), "")
    }

    fn found(&self) -> Vec<Finding> {
        diagnostics(&Host::under(&self.0))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_a_device_nothing_is_blocked() {
    let found = Files::new("none").found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].state, State::Missing);
    assert!(found[0].fix.as_ref().unwrap().contains("modprobe idxd"));
}

#[test]
fn a_device_without_a_queue_asks_for_one() {
    let found = Files::new("bare").with("sys/bus/dsa/devices/dsa0/state", "enabled").found();
    assert_eq!([found[0].state, found[1].state], [State::Good, State::Blocked], "{found:?}");
    assert!(found[0].meaning.contains("dsa0"));
    assert!(found[1].fix.as_ref().unwrap().contains("accel-config"));
}

#[test]
fn each_queue_is_told_with_what_the_cpu_lacks_for_it() {
    let files = Files::new("queues")
        .with("proc/cpuinfo", "processor : 0\nflags\t\t: fpu movdir64b avx2\n")
        .with("sys/bus/dsa/devices/dsa0/state", "enabled")
        .queue("wq0.0", "dedicated\n")
        .queue("wq0.1", "shared\n")
        .queue("wq0.2", "shared\n")
        .with("sys/bus/dsa/devices/wq0.2/state", "disabled\n");
    let found = files.found();
    let states: Vec<State> = found.iter().map(|finding| finding.state).collect();
    assert_eq!(states, [State::Good, State::Good, State::Limited, State::Limited], "{found:?}");
    assert!(found[1].meaning.contains("2147483648 bytes"), "{found:?}");
    assert!(found[2].meaning.contains("no enqcmd"), "{found:?}");
    assert!(found[3].meaning.contains("disabled"), "{found:?}");
}

#[test]
fn a_link_to_nowhere_is_a_fault() {
    let files = Files::new("link").queue("wq0.0", "shared\n");
    let device = files.0.join("dev/dsa/wq0.0");
    fs::remove_file(&device).unwrap();
    std::os::unix::fs::symlink("nowhere", &device).unwrap();
    let found = files.found();
    assert_eq!(found[1].state, State::Blocked, "{found:?}");
}
