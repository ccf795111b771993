#![allow(unsafe_code)] // Lends the tests' own memory to engines.

use std::time::{Duration, Instant};

use lmt_core::buffer::{Access, Segment};
use lmt_core::process::PeerProcess;
use nix::sys::signal::{SigSet, Signal};
use proptest::prelude::*;

use super::*;
use crate::places::{Mapped, Place};

fn lent(memory: &mut [u8]) -> Mapped {
    // SAFETY: the tests leave the memory alone, and keep it, until the job that
    // uses it has ended or is dropped.
    unsafe { Mapped::new(Segment::of_mut(memory), Access::Write) }
}

fn myself() -> Arc<PeerProcess> {
    Arc::new(PeerProcess::new(std::process::id() as i32, None))
}

fn wait(engine: &mut Software, job: &mut Job) -> Progress {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let progress = engine.poll(job);
        if progress.state != State::Running {
            return progress;
        }
        assert!(Instant::now() < until, "the list never ended");
        std::thread::yield_now();
    }
}

/// Which way a piece of the list goes.
#[derive(Clone, Copy, Debug)]
enum Way {
    Here,
    Read,
    Write,
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Here), Just(Way::Read), Just(Way::Write)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Lists that mix all kinds of copies, with gaps: each byte is where it is
    /// to be, and no other is touched.
    #[test]
    fn mixed_lists_arrive_whole(pieces in prop::collection::vec((way(), 0usize..40_000, 0usize..3), 0..30)) {
        let total: usize = pieces.iter().map(|(_, bytes, gap)| bytes + gap).sum();
        let mut source: Vec<u8> = (0..total).map(|at| (at * 37 + at / 255) as u8 | 1).collect();
        let mut target = vec![0u8; total];
        let (from, to) = (lent(&mut source), lent(&mut target));
        let mut list = CopyList::with_peer(myself());
        let mut at = 0;
        let mut expected = vec![0u8; total];
        for &(way, bytes, gap) in &pieces {
            let (from, to) = (from.advanced(at as u64).unwrap(), to.advanced(at as u64).unwrap());
            let (from, to) = match way {
                Way::Here => (Place::Mapped(from), Place::Mapped(to)),
                Way::Read => (Place::Peer(from.address() as u64), Place::Mapped(to)),
                Way::Write => (Place::Mapped(from), Place::Peer(to.address() as u64)),
            };
            list.push(from, to, bytes as u64).unwrap();
            expected[at..at + bytes].copy_from_slice(&source[at..at + bytes]);
            at += bytes + gap;
        }
        let bytes = list.total_bytes();
        let mut engine = Software::default();
        let mut job = engine.submit(list).unwrap();
        prop_assert_eq!(wait(&mut engine, &mut job), Progress { bytes, state: State::Done });
        prop_assert_eq!(target, expected);
    }

    /// Ended at any moment, by quiesce or by dropping the job: what is counted
    /// is there, and nothing is written afterwards.
    #[test]
    fn nothing_is_written_after_quiesce(spins in 0u32..200_000, by_drop: bool) {
        const BYTES: usize = 3 << 20;
        let mut source = vec![1u8; BYTES];
        let mut target = vec![0u8; BYTES];
        let mut list = CopyList::new();
        list.push(Place::Mapped(lent(&mut source)), Place::Mapped(lent(&mut target)), BYTES as u64).unwrap();
        let mut engine = Software::default();
        let mut job = engine.submit(list).unwrap();
        (0..spins).for_each(|_| std::hint::spin_loop());
        let counted = if by_drop {
            let seen = engine.poll(&mut job).bytes;
            drop(job);
            seen
        } else {
            engine.quiesce(job).bytes
        };
        let there = target.iter().take_while(|&&byte| byte == 1).count();
        prop_assert!(there as u64 >= counted);
        target.fill(2);
        std::thread::sleep(Duration::from_millis(1));
        prop_assert!(target.iter().all(|&byte| byte == 2), "the thread wrote after quiesce");
    }
}

#[test]
fn a_long_copy_past_the_cache_is_right() {
    const BYTES: usize = (5 << 20) + 17;
    let mut source: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 4096) as u8).collect();
    let mut target = vec![0u8; BYTES + 3];
    let mut list = CopyList::new();
    let to = Place::Mapped(lent(&mut target[3..]));
    list.push(Place::Mapped(lent(&mut source)), to, BYTES as u64).unwrap();
    let mut engine = Software::default();
    let mut job = engine.submit(list).unwrap();
    assert_eq!(wait(&mut engine, &mut job), Progress { bytes: BYTES as u64, state: State::Done });
    assert!(target[3..] == source);
}

#[test]
fn a_bad_address_fails_after_the_bytes_before_it() {
    let mut target = vec![0u8; 100_000];
    let mut good = vec![7u8; 60_000];
    let mut list = CopyList::with_peer(myself());
    let to = lent(&mut target);
    let from = lent(&mut good);
    list.push(Place::Peer(from.address() as u64), Place::Mapped(to), 60_000).unwrap();
    list.push(Place::Peer(8), Place::Mapped(to.advanced(60_000).unwrap()), 40_000).unwrap();
    let mut engine = Software::default();
    let mut job = engine.submit(list).unwrap();
    let failed = State::Failed(CopyFailure::Refused { errno: libc::EFAULT });
    assert_eq!(wait(&mut engine, &mut job), Progress { bytes: 60_000, state: failed });
    assert_eq!((target[59_999], target[60_000]), (7, 0));
}

#[test]
fn lists_that_it_cannot_reach_are_refused() {
    let mut memory = vec![0u8; 10];
    let here = Place::Mapped(lent(&mut memory));
    let mut engine = Software::default();
    let mut submit = |peer: Option<Arc<PeerProcess>>, from, to| {
        let mut list = peer.map_or_else(CopyList::new, CopyList::with_peer);
        list.push(from, to, 10).unwrap();
        engine.submit(list).err()
    };
    let owner = lmt_core::identity::EndpointId::from_bytes([0; 16]);
    let region = Place::Region { cookie: lmt_knem::RegionCookie::new(owner, 1, 1), offset: 0 };
    assert_eq!(submit(None, region, here), Some(SubmitError::OutOfReach));
    assert_eq!(submit(None, Place::Peer(1), here), Some(SubmitError::OutOfReach));
    assert_eq!(submit(Some(myself()), Place::Peer(1), Place::Peer(2)), Some(SubmitError::OutOfReach));
    assert!(!engine.is_running(), "no thread is made for what is refused");
}

#[test]
fn jobs_outlive_their_engine() {
    let mut source = vec![1u8; 8 << 20];
    let mut target = vec![0u8; 8 << 20];
    let mut list = CopyList::new();
    list.push(Place::Mapped(lent(&mut source)), Place::Mapped(lent(&mut target)), 8 << 20).unwrap();
    let mut engine = Software::default();
    let job = engine.submit(list).unwrap();
    drop(engine);
    let progress = job.progress();
    assert!(matches!(progress.state, State::Done | State::Failed(CopyFailure::EngineGone)), "{progress:?}");
    target.fill(2);
    std::thread::sleep(Duration::from_millis(1));
    assert!(target.iter().all(|&byte| byte == 2));
}

/// What /proc says of the copying threads of this process.
fn copying_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let status = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).ok());
    status.filter(|status| status.starts_with("Name:\tlmt-copy\n")).collect()
}

/// Alone in its process under nextest; otherwise other tests' threads are there
/// too, and are looked at as well.
#[test]
fn the_thread_takes_no_signals() {
    let before = SigSet::thread_get_mask().unwrap();
    let mut engine = Software::default();
    engine.submit(CopyList::new()).unwrap();
    assert_eq!(SigSet::thread_get_mask().unwrap(), before, "the caller's signals are as before");
    let threads = copying_threads();
    assert!(!threads.is_empty());
    for status in threads {
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        let blocked = u64::from_str_radix(blocked, 16).unwrap();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1, Signal::SIGALRM] {
            assert_ne!(blocked & 1 << (signal as u64 - 1), 0, "{signal} reaches the copying thread");
        }
    }
}

#[test]
fn the_thread_runs_where_it_is_told_and_says_when_it_cannot() {
    let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    let cpu = (0..nix::sched::CpuSet::count()).find(|&cpu| allowed.is_set(cpu).unwrap()).unwrap();
    let mut engine = Software::new(Config { cpu: Some(cpu) });
    assert_eq!(engine.available(), Ok(()));
    let checked = |engine: &Software| engine.is_tried && !engine.is_running();
    assert!(checked(&engine), "a thread was bound, and it has ended");
    assert_eq!(engine.available(), Ok(()));
    let mut job = engine.submit(CopyList::new()).unwrap();
    assert_eq!(wait(&mut engine, &mut job).state, State::Done);
    let bound = format!("Cpus_allowed_list:\t{cpu}\n");
    assert!(copying_threads().iter().any(|status| status.contains(&bound)));
    assert_eq!(nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap(), allowed);
    for cpu in [nix::sched::CpuSet::count() - 1, usize::MAX] {
        let mut engine = Software::new(Config { cpu: Some(cpu) });
        let why = engine.available().unwrap_err();
        assert!(why.sentence.contains("cannot be bound"), "{why}");
        assert!(!engine.is_tried);
        assert!(matches!(engine.submit(CopyList::new()), Err(SubmitError::Unavailable(_))));
    }
}

#[test]
fn an_idle_thread_sleeps() {
    let mut engine = Software::default();
    let mut job = engine.submit(CopyList::new()).unwrap();
    wait(&mut engine, &mut job);
    let until = Instant::now() + Duration::from_secs(20);
    // Other tests' threads may be at work in the same process.
    while !copying_threads().iter().any(|status| status.contains("State:\tS (sleeping)")) {
        assert!(Instant::now() < until, "the thread does not go to sleep");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_forked_child_has_no_engine_and_hurts_nobody() {
    let mut source = vec![1u8; 64 << 20];
    let mut target = vec![0u8; 64 << 20];
    let mut list = CopyList::new();
    list.push(Place::Mapped(lent(&mut source)), Place::Mapped(lent(&mut target)), 64 << 20).unwrap();
    let mut engine = Software::default();
    let mut job = engine.submit(list).unwrap();
    // SAFETY: the child allocates little, which glibc allows after a fork, takes
    // no lock that another thread may hold, and ends by _exit.
    let child = match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Parent { child } => child,
        nix::unistd::ForkResult::Child => {
            let gone = State::Failed(CopyFailure::EngineGone);
            // It may have been done before the fork.
            let state = engine.poll(&mut job).state;
            let poisoned = state == gone || state == State::Done;
            let refused = engine.available().is_err()
                && matches!(engine.submit(CopyList::new()), Err(SubmitError::Unavailable(_)));
            engine.cancel(&mut job);
            drop(job);
            drop(engine);
            // SAFETY: _exit(2) has no precondition.
            unsafe { libc::_exit(i32::from(!(poisoned && refused))) }
        }
    };
    assert_eq!(wait(&mut engine, &mut job).state, State::Done);
    let ended = nix::sys::wait::waitpid(child, None);
    assert_eq!(ended, Ok(nix::sys::wait::WaitStatus::Exited(child, 0)));
    assert!(target == source);
}

/// The thread is bound to the CPU that was set, and a CPU that there is not is
/// told when the thread is to be made.
#[test]
fn the_cpu_that_is_set_is_the_threads() {
    use lmt_core::config_key::Value;

    use crate::engine::CopyEngine;

    let mut engine = super::Software::default();
    assert_eq!(engine.get("cpu"), Some(Value::Absent));
    engine.set("cpu", Value::Number(100_000)).unwrap();
    assert_eq!(engine.get("cpu"), Some(Value::Number(100_000)));
    engine.available().unwrap_err();
    engine.set("cpu", Value::Absent).unwrap();
    engine.available().unwrap();
    assert!(engine.set("core", Value::Absent).is_err());
    for key in engine.keys() {
        key.check(&engine.get(key.name).unwrap()).unwrap();
    }
}
