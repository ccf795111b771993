use std::time::Duration;

use super::*;

/// Who was alive is believed for a moment, and not for long.
#[test]
fn a_dead_process_holds_its_pid_for_a_moment_only() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("there is sleep");
    let pid = child.id() as i32;
    let process = PeerProcess::new(pid, Some(crate::base::pidfd::pidfd_open(pid).expect("it lives")));
    assert!(process.holds_pid() && process.holds_pid() && !process.has_ended());
    child.kill().expect("it is ours");
    assert!(process.has_ended(), "waits for what is about to end");
    std::thread::sleep(Duration::from_millis(1));
    assert!(!process.holds_pid());
    child.wait().expect("it is ours");
    assert!(PeerProcess::new(1, None).holds_pid(), "without a pidfd it is taken to live");
}
