//! The helper for tests of several processes, tested on itself.

#[path = "common/panics.rs"]
mod panics;
#[path = "common/processes.rs"]
mod processes;

use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lmt_conformance::group::{self, Test, allowed_cpus};
use lmt_conformance::test_name;

use panics::panic_of;
use processes::processes_with;

const LIMIT: Duration = Duration::from_secs(20);
const SIGKILL: i32 = 9;

fn sleeper() -> Command {
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", "sleep 1000 & sleep 1000"]).stdin(Stdio::null());
    command
}

#[test]
fn ranks_run_the_closure_and_report() {
    let results = group::run(test_name!(), 3, LIMIT, |group| {
        group.report(format_args!("{} of {}", group.rank(), group.size()));
        group.report(group.address(group.rank()).id() == group.id().member(group.rank()));
    });
    let expected: Vec<Vec<String>> =
        (0..3).map(|rank| vec![format!("{rank} of 3"), "true".to_owned()]).collect();
    assert_eq!(results.reports, expected);
    assert!(results.exits.iter().all(|exit| exit.is_some_and(|exit| exit.success())));
}

mod inner {
    #[test]
    fn the_name_holds_the_module() {
        assert_eq!(test_name!(), "inner::the_name_holds_the_module");
        let in_a_closure = || test_name!();
        assert_eq!(in_a_closure(), "inner::the_name_holds_the_module");
        let results = super::group::run(test_name!(), 2, super::LIMIT, |group| group.report(group.rank()));
        assert_eq!(results.reports, [["0"], ["1"]]);
    }

    use super::test_name;
}

#[test]
fn two_runs_in_one_test_are_told_apart() {
    let first = group::run(test_name!(), 2, LIMIT, |group| group.report("first"));
    let second = group::run(test_name!(), 2, LIMIT, |group| group.report("second"));
    assert_eq!(first.reports, [["first"], ["first"]]);
    assert_eq!(second.reports, [["second"], ["second"]]);
}

#[test]
fn a_rank_that_panics_fails_the_test_with_its_words() {
    let text = panic_of(|| {
        group::run(test_name!(), 3, LIMIT, |group| {
            assert!(group.rank() != 1, "rank one does not like this");
            std::thread::sleep(LIMIT);
        });
    });
    assert!(text.contains("rank 1 ended with status 1; the other ranks were ended"), "{text}");
    assert!(text.contains("--- rank 1, standard error:"), "{text}");
    assert!(text.contains("rank one does not like this"), "{text}");
}

#[test]
fn a_rank_that_hangs_is_killed_at_the_limit_with_all_it_started() {
    let mark = format!("LMT_TEST_MARK=hang-{}", std::process::id());
    let started = Instant::now();
    let text = panic_of(|| {
        let (name, value) = mark.split_once('=').expect("it has one");
        let test = Test::new(test_name!(), 2).env(name, value).time_limit(Duration::from_millis(700));
        test.run(|group| {
            if group.rank() == 1 {
                println!("about to hang");
                let mut left_behind = sleeper().spawn().expect("setsid is there");
                left_behind.wait().expect("it is ours");
            }
        });
    });
    assert!(text.contains("ranks [1] had not ended after 700 ms, and were killed"), "{text}");
    assert!(text.contains("about to hang"), "{text}");
    assert!(started.elapsed() < LIMIT / 2);
    assert_eq!(processes_with(&mark), 0);
}

#[test]
fn an_unexpected_kill_fails_the_test() {
    let text = panic_of(|| {
        group::run(test_name!(), 2, LIMIT, |group| {
            if group.rank() == 0 {
                let status = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
                unreachable!("killed before {status:?}");
            }
            group.barrier();
            group.barrier();
            std::thread::sleep(LIMIT);
        });
    });
    assert!(text.contains("rank 0 was killed by signal 9 (SIGKILL)"), "{text}");
}

#[test]
fn a_rank_killed_by_the_parent_leaves_barriers_to_the_others() {
    let results = Test::new(test_name!(), 3).time_limit(LIMIT).run_with(
        |parent| {
            assert_eq!(parent.next_report(1).as_deref(), Some("ready"));
            parent.kill(1, SIGKILL);
            assert_eq!(parent.wait_rank(1).and_then(|exit| exit.signal()), Some(SIGKILL));
            assert_eq!(parent.next_report(1), None);
        },
        |group| {
            if group.rank() == 1 {
                group.report("ready");
                std::thread::sleep(LIMIT);
            }
            group.barrier();
            group.report("past");
        },
    );
    assert_eq!(results.reports, [vec!["past".to_owned()], vec![], vec!["past".to_owned()]]);
}

#[test]
fn a_rank_that_may_die_may_not_panic() {
    let run = |test: Test, kill: bool| {
        test.may_die(0).time_limit(LIMIT).run(|group| {
            if group.rank() == 0 && kill {
                let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
            }
            assert!(group.rank() != 0, "as an assertion would");
        })
    };
    let results = run(Test::new(test_name!(), 2), true);
    let signal = results.exits.first().copied().flatten().and_then(|exit| exit.signal());
    // A rank of the second run passes here with no results of the first.
    assert!(results.exits.is_empty() || signal == Some(SIGKILL));
    let text = panic_of(|| drop(run(Test::new(test_name!(), 2), false)));
    assert!(text.contains("as an assertion would"), "{text}");
}

#[test]
fn barriers_separate_what_ranks_do() {
    // Time is the only order that ranks can compare without lmt.
    let results = group::run(test_name!(), 4, LIMIT, |group| {
        for turn in 0..20 {
            if turn % group.size() == group.rank() {
                std::thread::sleep(Duration::from_millis(2));
            }
            group.report(now_ns());
            group.barrier();
            group.report(now_ns());
            group.barrier();
        }
    });
    let times: Vec<Vec<u64>> = results
        .reports
        .iter()
        .map(|lines| lines.iter().map(|line| line.parse().expect("a number")).collect())
        .collect();
    for turn in (0..40).step_by(2) {
        let last_before = times.iter().map(|of_rank| of_rank[turn]).max();
        let first_after = times.iter().map(|of_rank| of_rank[turn + 1]).min();
        assert!(last_before <= first_after, "barrier {turn} let a rank through early");
    }
}

/// Nanoseconds on the clock that all processes share.
fn now_ns() -> u64 {
    let now =
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("every kernel has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

#[test]
fn a_panic_of_the_parent_ends_the_ranks() {
    let mark = format!("LMT_TEST_MARK=parent-{}", std::process::id());
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let (name, value) = mark.split_once('=').expect("it has one");
        Test::new(test_name!(), 2).env(name, value).time_limit(LIMIT).run_with(
            |parent| {
                assert!(parent.next_report(0).is_some());
                std::panic::panic_any(17_u8);
            },
            |group| {
                group.report("here");
                std::thread::sleep(LIMIT);
            },
        );
    }));
    assert_eq!(panic.expect_err("it panicked").downcast_ref(), Some(&17_u8));
    assert_eq!(processes_with(&mark), 0);
}

#[test]
fn ranks_can_be_pinned() {
    let cpus = allowed_cpus();
    let results =
        Test::new(test_name!(), 2).pin(&cpus).run(|group| group.report(format!("{:?}", allowed_cpus())));
    for (rank, lines) in results.reports.iter().enumerate() {
        assert_eq!(*lines, [format!("[{}]", cpus[rank % cpus.len()])]);
    }
}

#[test]
fn no_ranks_and_unknown_cpus_are_refused_in_words() {
    let text = panic_of(|| drop(group::run(test_name!(), 0, LIMIT, |_| {})));
    assert!(text.contains("a group of 0 ranks cannot be started"), "{text}");
    let text = panic_of(|| drop(Test::new(test_name!(), 1).pin(&[99_999]).run(|_| {})));
    assert!(text.contains("CPU 99999 cannot be pinned to"), "{text}");
}
