//! Every call of libfabric that the provider offers, made as a program makes it:
//! through the machine's libfabric (1.17 or later), between two processes, the
//! provider chosen by its name. What is expected is what the man pages say, and the
//! same cases run over libfabric's own shm provider; where that does otherwise,
//! [`DIFFERENCES`] says so, and the run prints it.

mod cases;
mod leftovers;
mod library;
mod link;
#[path = "../scratch/mod.rs"]
mod scratch;
mod side;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lmt_conformance::require;

use cases::CASES;
use library::Fi;
use link::{Link, ROLE};
use side::Side;

/// Where a provider does otherwise than the man pages say, and how: Debian's
/// libfabric 1.17.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("shm", "operation-flags", "FI_SETOPSFLAG is answered by -FI_ENOSYS"),
    ("shm", "av-sync-errors", "any string is an address, and FI_SYNC_ERR writes no errors"),
    (
        "shm",
        "av-events",
        "FI_EVENT of an address vector is ignored, and so are its event queue and -FI_ENOEQ",
    ),
    ("shm", "cq-timeout", "fi_cq_sread never returns without a completion, whatever its timeout"),
    ("shm", "counter-wait", "fi_cntr_wait never returns below its threshold, whatever its timeout"),
    (
        "shm",
        "ignore-masks",
        "of two messages that have come and match, one that came later is received first",
    ),
    ("shm", "peek", "FI_PEEK is ignored, and the call is a receive of no bytes"),
    ("shm", "claim", "FI_PEEK and FI_CLAIM are ignored, and the call is a receive of no bytes"),
    ("shm", "discard", "FI_PEEK and FI_DISCARD are ignored, and the call is a receive of no bytes"),
    ("shm", "truncation", "the error is -265 instead of 265 (FI_ETRUNC), and olen is not set"),
    ("shm", "rma-errors", "memory registered for reading can be written"),
    ("shm", "rma-fault", "the error is -5 instead of 5 (FI_EIO)"),
    ("shm", "wait-fd", "FI_WAIT_FD is answered by -FI_ENOSYS"),
    ("shm", "wait-fd-rounds", "FI_WAIT_FD is answered by -FI_ENOSYS"),
    ("shm", "wait-fd-counter", "FI_WAIT_FD is answered by -FI_ENOSYS"),
];
/// So long is waited for a case that is known to go otherwise, as by a call that
/// never returns.
const DIFFERENT_LIMIT: Duration = Duration::from_secs(4);

/// Names the only case that is run, to look into it.
const ONLY: &str = "LMT_FI_CASE";

/// One process of a case: not a test, but what [`link::run`] starts.
#[test]
fn member() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let [provider, case, number] = role.split(' ').collect::<Vec<_>>()[..] else { panic!("role {role}") };
    let (_, part) = CASES.iter().find(|(name, _)| *name == case).expect("a case");
    let fi = Fi::load().expect("the parent has loaded it");
    let number = number.parse().expect("a number");
    leftovers::remove(std::process::id());
    let side = Side::new(fi, side::lasting(provider), number, Link::new());
    link::done(&part(side));
}

/// Why a provider cannot be exercised here, if it cannot.
fn lacks(provider: &str) -> Option<String> {
    let fi = match Fi::load() {
        Ok(fi) => fi,
        Err(why) => return Some(why),
    };
    if provider == "lmt" {
        return None;
    }
    let mut hints = side::hints(side::CAPABILITIES);
    let offer = fi.getinfo(side::lasting(provider), side::VERSION, &mut hints);
    offer.err().map(|error| format!("libfabric offers no {provider} provider: {}", fi.text(-error)))
}

fn exercise(provider: &str) {
    if let Some(why) = lacks(provider) {
        return require::skipped("libfabric-dev", &why);
    }
    // One provider after the other: processes that spin are to have a processor each.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = scratch::library(&format!("exercise-{provider}"));
    let (mut wrong, mut right, mut run) = (Vec::new(), 0, 0);
    let only = std::env::var(ONLY).ok();
    for (case, _) in CASES.iter().filter(|(case, _)| only.as_deref().is_none_or(|only| only == *case)) {
        run += 1;
        let differs = DIFFERENCES.iter().find(|(of, at, _)| (of, at) == (&provider, case));
        let limit = if differs.is_some() { DIFFERENT_LIMIT } else { 2 * link::TIME_LIMIT };
        // Another's provider may err when the machine is busy; ours must not.
        let attempts = if provider == "lmt" { 1 } else { 3 };
        let mut results = (0..attempts).map(|_| link::run(provider, case, &folder.0, limit));
        let first = results.next().expect("one attempt at least");
        let is_expected = |result: &Result<(), String>| result.is_ok() == differs.is_none();
        let result = if is_expected(&first) { first } else { results.find(is_expected).unwrap_or(first) };
        match (result, differs) {
            (Ok(()), None) => right += 1,
            (Ok(()), Some(_)) => {
                wrong.push(format!("{case}: it does as the man pages say; DIFFERENCES is wrong"))
            }
            (Err(_), Some((_, _, how))) => println!("DIFFERENT: {provider}, {case}: {how}"),
            (Err(why), None) => wrong.push(format!("{case}, {attempts} times, at first: {why}")),
        }
    }
    println!("{provider}: {right} of {run} cases are as the man pages say");
    assert!(wrong.is_empty(), "{provider}:\n{}", wrong.join("\n"));
}

#[test]
fn lmt_does_as_the_man_pages_say() {
    exercise("lmt");
}

#[test]
fn shm_does_as_the_man_pages_say_where_nothing_else_is_known() {
    exercise("shm");
}
