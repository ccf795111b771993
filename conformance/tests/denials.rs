//! That what is denied to processes of tests is denied, and leaves nothing.

#[path = "common/panics.rs"]
mod panics;
#[path = "common/processes.rs"]
mod processes;

use std::time::{Duration, Instant};

use lmt_conformance::denials::{Confinement, UNPRIVILEGED, possible};
use lmt_conformance::group::{Parent, Test};
use lmt_conformance::test_name;

use panics::panic_of;
use processes::processes_with;

const LIMIT: Duration = Duration::from_secs(30);

/// A line of /proc/self/status.
fn status(key: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).expect("it is there");
    line.trim().to_owned()
}

#[test]
fn a_confined_rank_is_nobody_special() {
    let confined = Confinement::new().locked_memory(4096).copies_refused(71);
    if !possible("seccomp", &[&confined]) {
        return;
    }
    let was_root = nix::unistd::geteuid().is_root();
    let all = Test::new(test_name!(), 2).time_limit(LIMIT).confine(1, &confined).run(|group| {
        group.report(status("Uid"));
        group.report(status("CapPrm"));
        group.report(status("NoNewPrivs"));
        group.report(status("Seccomp"));
        group.report(nix::unistd::getgroups().expect("a list").len());
        group.barrier();
    });
    if was_root {
        let own = UNPRIVILEGED;
        assert_eq!(all.reports[1][0], format!("{own}\t{own}\t{own}\t{own}"));
        assert_eq!(all.reports[1][4], "0");
        assert!(all.reports[0][0].starts_with("0\t"), "the other rank stays what it is");
    }
    assert_eq!(all.reports[1][1..4], ["0000000000000000", "1", "2"]);
}

#[test]
fn a_pid_namespace_has_its_own_proc_and_first_process() {
    let confined = Confinement::new().pid_namespace();
    if !possible("pidns", &[&confined]) {
        return;
    }
    let all = Test::new(test_name!(), 1).time_limit(LIMIT).confine(0, &confined).run(|group| {
        group.report(std::process::id());
        group.report(std::fs::read_link("/proc/self").expect("procfs").display());
    });
    assert_eq!(all.reports, [["1", "1"]]);
}

/// The time limit passes for a rank so confined; nothing may be left of it.
fn ends_with_its_test(name: &str, requirement: &str, confined: &Confinement) {
    const VARIABLE: &str = "LMT_TEST_OF_DENIALS";
    if !possible(requirement, &[confined]) {
        return;
    }
    let mark = format!("{}-{requirement}", std::process::id());
    let mut was_there = 0;
    let said = panic_of(|| {
        let drive = |parent: &mut Parent| {
            assert_eq!(parent.next_report(0).as_deref(), Some("here"));
            was_there = processes_with(&format!("{VARIABLE}={mark}"));
        };
        let test = Test::new(name, 1).time_limit(Duration::from_secs(3)).env(VARIABLE, &mark);
        test.confine(0, confined).run_with(drive, |group| {
            group.report("here");
            std::thread::sleep(Duration::from_secs(1000));
        });
    });
    assert!(said.contains("had not ended"), "{said}");
    // The rank itself and its confined copy.
    assert_eq!(was_there, 2);
    let end = Instant::now() + Duration::from_secs(10);
    while processes_with(&format!("{VARIABLE}={mark}")) > 0 {
        assert!(Instant::now() < end, "processes are left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_first_process_of_a_pid_namespace_ends_with_its_test() {
    ends_with_its_test(test_name!(), "pidns", &Confinement::new().pid_namespace());
}

#[test]
fn a_process_in_a_user_namespace_ends_with_its_test() {
    ends_with_its_test(test_name!(), "userns", &Confinement::new().user_namespace(0));
}

#[test]
fn a_filtered_process_ends_with_its_test() {
    ends_with_its_test(test_name!(), "seccomp", &Confinement::new().copies_refused(1));
}
