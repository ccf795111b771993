use lmt_collectives::Kind;

use super::*;
use crate::cli::{Command, Parsed, parse};

fn args(line: &str) -> BenchArgs {
    match parse(line.split_whitespace().map(Into::into)).unwrap() {
        Parsed::Command(Command::Bench(args)) => args,
        other => panic!("{other:?}"),
    }
}

fn planned(work: Work, line: &str) -> Result<Plan, BenchError> {
    let args = args(line);
    without_conflicts(work, &args).and_then(|()| plan(work, &args))
}

const BROADCAST: Work = Work::Collective(Kind::Broadcast);

#[test]
fn an_operation_has_its_ranks_and_accesses_one_more() {
    let found = planned(BROADCAST, "lmt bench bcast -n 3 --algorithm slots,auto --pin none").unwrap();
    assert_eq!((found.ranks, found.contenders.len(), found.sizes.len()), (3, 2, 18));
    let work = Work::Contention(access::Access::OneToAll);
    let found = planned(work, "lmt bench one-to-all -n 2").unwrap();
    assert_eq!((found.ranks, found.cpus.len()), (3, 3));
    // The owner sleeps beside the last of them.
    assert_eq!(found.cpus[0], found.cpus[2]);
}

#[test]
fn what_makes_no_sense_is_said() {
    let access = Work::Contention(access::Access::OneToAll);
    let sum = Work::Collective(Kind::Allreduce);
    for (work, line, part) in [
        (BROADCAST, "lmt bench bcast --mechanism shm", "bcast has no --mechanism"),
        (BROADCAST, "lmt bench bcast --limits", "bcast has no --limits"),
        (Work::Collective(Kind::Barrier), "lmt bench barrier --sizes 8", "leave --sizes out"),
        (sum, "lmt bench allreduce --sizes 6", "multiples of 4"),
        (access, "lmt bench one-to-all --touch", "has no --in-use"),
        (access, "lmt bench one-to-all --unmodified", "has no --unmodified"),
        (access, "lmt bench one-to-all --algorithm slots", "leave it out with one-to-all"),
        (access, "lmt bench one-to-all --sizes 0", "from 1 byte up"),
    ] {
        let error = planned(work, line).unwrap_err();
        assert!(error.exit_status() == 2 && error.to_string().contains(part), "{line}: {error}");
    }
}

#[test]
fn buffers_that_do_not_fit_are_refused_before_anything_starts() {
    let line = "lmt bench alltoall -n 64 --sizes 4GiB --pin none";
    let mut found = planned(Work::Collective(Kind::Alltoall), line).unwrap();
    let error = fit(&mut found, &args(line), 0).unwrap_err();
    assert!(error.to_string().contains("take smaller --sizes or fewer ranks"), "{error}");
    let error = fit(&mut found, &args(line), 1).unwrap_err();
    assert!(error.to_string().contains("stay below 2GiB"), "{error}");
}
