use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// Folders of a machine that is none, removed when dropped.
struct Files(PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("lmt-knem-checkups-{}-{test}", std::process::id()));
        for folder in ["proc", "sys/module", "dev"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        Self(root)
    }

    fn with(self, path: &str, content: &str) -> Self {
        fs::write(self.0.join(path), content).unwrap();
        self
    }

    fn states(&self) -> [State; 2] {
        let found = diagnostics(&Host::under(&self.0));
        [found[0].state, found[1].state]
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_module_and_device_nothing_is_blocked() {
    assert_eq!(Files::new("none").states(), [State::Missing, State::Missing]);
    let similar = Files::new("similar").with("proc/modules", "knem_like 4096 0 - Live 0x0\n");
    assert_eq!(similar.states(), [State::Missing, State::Missing]);
}

#[test]
fn a_module_without_a_device_is_a_fault() {
    let listed = Files::new("listed").with("proc/modules", "knem 4096 0 - Live 0x0\n");
    assert_eq!(listed.states(), [State::Good, State::Blocked]);
    let built_in = Files::new("built-in");
    fs::create_dir(built_in.0.join("sys/module/knem")).unwrap();
    assert_eq!(built_in.states(), [State::Good, State::Blocked]);
}

#[test]
fn a_device_that_may_be_used_is_good() {
    let files = Files::new("device").with("proc/modules", "knem 4096 0 - Live 0x0\n").with("dev/knem", "");
    assert_eq!(files.states(), [State::Good, State::Good]);
}

/// Where there is a device, it is opened and asked.
#[test]
fn what_is_no_driver_says_so_on_the_machine_itself() {
    let found = diagnostics(&Host::default());
    let there = Path::new("/dev/knem").exists();
    assert_eq!(found[1].state == State::Missing, !there && found[0].state != State::Good, "{found:?}");
}
