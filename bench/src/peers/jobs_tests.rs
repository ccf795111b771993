use super::*;
use crate::cli::{Command, Parsed, parse};
use crate::memory::Memory;

fn asked(arguments: &[&str]) -> (PeersArgs, MeasuringArgs) {
    let words = ["lmt", "compare", "--peers"].iter().chain(arguments).map(Into::into);
    match parse(words).unwrap() {
        Parsed::Command(Command::Compare(args)) => (args.peers, args.measuring),
        other => panic!("{other:?}"),
    }
}

fn made(arguments: &[&str]) -> Result<Vec<Job>, BenchError> {
    let (args, measuring) = asked(arguments);
    jobs(wanted(&args, &measuring), &["auto".to_owned()], &args, &measuring, 3)
}

#[test]
fn a_ping_pong_with_the_limits_is_what_is_meant() {
    let jobs = made(&["--pin", "none"]).unwrap();
    let [job, unmodified] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!(
        (job.pattern, job.ranks, job.in_use, job.limits, job.verify),
        (Pattern::Pingpong, 2, true, true, true)
    );
    assert_eq!(*unmodified, Job { in_use: false, ..job.clone() });
    let [alone] = &made(&["--pin", "none", "--unmodified"]).unwrap()[..] else {
        panic!("one mode was asked for")
    };
    assert!(!alone.in_use);
    assert_eq!((job.sizes.len(), job.rotation_bytes, job.buffers), (25, None, Memory::Private));
}

#[test]
fn patterns_and_modes_are_combined() {
    let jobs = made(&["--pin", "none", "--pattern", "pingpong,bibw", "--all-modes", "--sizes", "8"]).unwrap();
    let modes: Vec<(bool, bool)> =
        jobs.iter().map(|job| (job.in_use, job.rotation_bytes.is_some())).collect();
    assert_eq!(modes[..4], [(true, false), (false, false), (true, true), (false, true)]);
    assert_eq!(modes[..4], modes[4..]);
    // The bare methods are ping-pongs.
    assert!(jobs.iter().all(|job| job.limits == (job.pattern == Pattern::Pingpong)));
    assert_eq!(
        made(&["--pin", "none", "--pattern", "all", "--sizes", "8"]).unwrap().len(),
        2 * PATTERNS.len()
    );
}

#[test]
fn quick_is_fewer_sizes_and_rounds() {
    assert_eq!(fewer(&[0, 1, 2, 4, 8, 16, 32]), [0, 1, 4, 16, 32]);
    assert_eq!(fewer(&[100, 200]), [100, 200]);
    let jobs = made(&["--pin", "none", "--quick"]).unwrap();
    assert_eq!((jobs[0].repetitions, jobs[0].sizes.len()), (QUICK_ROUNDS, 13));
}

#[test]
fn what_mpi_cannot_count_is_refused() {
    let error = made(&["--pin", "none", "--sizes", "2GiB"]).unwrap_err().to_string();
    assert!(error.contains("2GiB"), "{error}");
}

#[test]
fn every_figure_has_sizes() {
    let (args, measuring) = asked(&["--figures", "--quick"]);
    let all = wanted(&args, &measuring);
    assert_eq!(all.len(), 8);
    assert!(all.iter().all(|one| one.sizes.as_ref().is_some_and(|sizes| !sizes.is_empty())), "{all:?}");
    assert!(args.only());
}
