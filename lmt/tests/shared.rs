//! Several threads on one endpoint, and the thread that makes progress.

mod common;

use std::time::{Duration, Instant};

use common::{LIMIT, check, join_plain, pattern};
use lmt::{Endpoint, OperationError, SharedEndpoint, Source, TagMatch};
use lmt_conformance::group::Test;
use lmt_conformance::{group, test_name};

const LONG: usize = 32 << 20;

fn threads_of_this_process() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = text.lines().find(|l| l.starts_with("Threads:")).expect("it is there");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn threads_share_an_endpoint() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let shared = SharedEndpoint::new(endpoint);
        let other = peers[1 - group.rank() as usize];
        for with_thread in [false, true] {
            let _progress = with_thread.then(|| shared.start_progress_thread().expect("a thread"));
            std::thread::scope(|threads| {
                for thread in 0..4_u64 {
                    let shared = &shared;
                    threads.spawn(move || {
                        for turn in 0..50 {
                            let bytes = [8, 3000, 70_000][turn as usize % 3];
                            let (tag, seed) = (thread, thread << 32 | turn);
                            let data = pattern(seed, bytes);
                            let mut into = vec![0; bytes];
                            shared.scope(|scope| {
                                let receive =
                                    scope.receive(Source::Peer(other), TagMatch::exactly(tag), &mut into);
                                let send = scope.send(other, tag, &data).expect("begun");
                                assert_eq!(receive.expect("begun").wait().map(|s| s.bytes), Ok(bytes as u64));
                                send.wait().expect("sent");
                            });
                            check(seed, &into);
                        }
                    });
                }
            });
        }
        group.barrier();
    });
}

/// Spins without touching the endpoint until `done`, for at most a while.
fn compute(limit: Duration) {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// The receive is posted, then both sides compute: the transfer is over all
/// the same when they look.
#[test]
fn a_long_transfer_advances_under_computation() {
    for (mechanism, announced_first) in [("cma", true), ("cma", false), ("shm", true), ("shm", false)] {
        let test = Test::new(test_name!(), 2).time_limit(LIMIT).env("LMT_MECHANISM", mechanism);
        test.run(|group| {
            let (endpoint, peers) = join_plain(group);
            let shared = SharedEndpoint::new(endpoint);
            let _progress = shared.start_progress_thread().expect("a thread");
            let data = pattern(5, LONG);
            let mut into = vec![0; if group.rank() == 1 { LONG } else { 0 }];
            let is_done = shared.scope(|scope| {
                let begin_send = || scope.send(peers[1], 1, &data).expect("begun");
                if group.rank() == 0 {
                    if announced_first {
                        let request = begin_send();
                        group.barrier();
                        compute(Duration::from_millis(1500));
                        return request.test().is_ok();
                    }
                    group.barrier();
                    std::thread::sleep(Duration::from_millis(200));
                    let request = begin_send();
                    compute(Duration::from_millis(1300));
                    return request.test().is_ok();
                }
                if announced_first {
                    group.barrier();
                    // The progress thread sleeps by now, and nothing wakes it
                    // but the receive that is posted here.
                    std::thread::sleep(Duration::from_millis(250));
                }
                let request =
                    scope.receive(Source::Peer(peers[0]), TagMatch::any(), &mut into).expect("posted");
                if !announced_first {
                    group.barrier();
                }
                compute(Duration::from_millis(1250));
                request.test().is_ok()
            });
            assert!(is_done, "the transfer waited for the application");
            if group.rank() == 1 {
                check(5, &into);
            }
            group.barrier();
        });
    }
}

#[test]
fn a_progress_thread_answers_soon_though_the_application_waited_before() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let shared = SharedEndpoint::new(endpoint);
        let _progress = (group.rank() == 1).then(|| shared.start_progress_thread().expect("a thread"));
        let data = pattern(1, 100_000);
        let mut waits = Vec::new();
        for turn in 0..20 {
            if group.rank() == 0 {
                // Waits a while, so that all over there sleep.
                std::thread::sleep(Duration::from_millis(20));
                shared.send(peers[1], 1, b"go").expect("sent");
                group.barrier();
                let started = Instant::now();
                shared.send(peers[1], 2, &data).expect("sent");
                waits.push(started.elapsed());
            } else {
                shared.receive(Source::Any, TagMatch::exactly(1), &mut [0; 2]).expect("received");
                let mut into = vec![0; 100_000];
                shared.scope(|scope| {
                    let posted = scope.receive(Source::Any, TagMatch::exactly(2), &mut into).expect("posted");
                    group.barrier();
                    compute(Duration::from_millis(40));
                    posted.wait().expect("received");
                });
                let _ = turn;
            }
        }
        waits.sort_unstable();
        if let Some(median) = waits.get(waits.len() / 2) {
            eprintln!("a send under computation took {median:?}");
            assert!(*median < Duration::from_millis(35), "{waits:?}");
        }
        group.barrier();
    });
}

#[test]
fn progress_threads_end_when_dropped() {
    let shared = SharedEndpoint::new(Endpoint::new().expect("made"));
    let me = shared.insert_peer(&shared.address()).expect("a peer");
    let before = threads_of_this_process();
    let started = Instant::now();
    for _ in 0..10 {
        let threads: Vec<_> = (0..3).map(|_| shared.start_progress_thread().expect("a thread")).collect();
        shared.send(me, 1, b"abc").expect("sent");
        shared.receive(Source::Any, TagMatch::any(), &mut [0; 3]).expect("received");
        drop(threads);
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // Other tests of this process start threads too, but end theirs.
    let end = Instant::now() + Duration::from_secs(20);
    while threads_of_this_process() > before {
        assert!(Instant::now() < end, "threads are left");
        std::thread::yield_now();
    }
    let ended =
        shared.scope(|scope| scope.receive(Source::Any, TagMatch::any(), &mut []).expect("posted").cancel());
    assert_eq!(ended, Err(OperationError::Cancelled));
}

#[test]
fn an_idle_progress_thread_and_a_waiting_one_burn_little() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let shared = SharedEndpoint::new(endpoint);
        let _progress = shared.start_progress_thread().expect("a thread");
        if group.rank() == 0 {
            shared.send(peers[1], 1, b"connected").expect("sent");
            std::thread::sleep(Duration::from_millis(1200));
            shared.send(peers[1], 2, b"done").expect("sent");
        } else {
            shared.receive(Source::Any, TagMatch::exactly(1), &mut [0; 9]).expect("received");
            let before = common::cpu_time();
            shared.receive(Source::Any, TagMatch::exactly(2), &mut [0; 4]).expect("received");
            let burnt = common::cpu_time() - before;
            eprintln!("waiting 1.2 s with a progress thread burnt {burnt:?}");
            assert!(burnt < Duration::from_millis(120), "{burnt:?}");
        }
        group.barrier();
    });
}

#[test]
fn a_shared_endpoint_offers_what_an_endpoint_does() {
    let endpoint = Endpoint::new().expect("made");
    let (address, id, names) = (endpoint.address(), endpoint.id(), endpoint.mechanism_names());
    let shared = SharedEndpoint::new(endpoint);
    assert_eq!((shared.address(), shared.id(), shared.mechanism_names()), (address, id, names));
    let me = shared.insert_peer(&shared.address()).expect("a peer");
    assert_eq!(shared.peer_id(me), Some(shared.id()));
    let (source, any) = (Source::Peer(me), TagMatch::any());
    assert_eq!(shared.probe(source, any), Ok(None));
    let pieces = [std::io::IoSlice::new(b"ab"), std::io::IoSlice::new(b"c")];
    shared.send_segments(me, 4, &pieces).expect("sent");
    assert_eq!(shared.probe(source, any).expect("no fork here").map(|s| (s.tag, s.bytes)), Some((4, 3)));
    let message = shared.matched_probe(source, any).expect("no fork here").expect("it is there");
    assert_eq!(shared.probe(source, any), Ok(None));
    let mut text = [0; 3];
    assert_eq!(shared.receive_matched(message, &mut text).map(|s| s.bytes), Ok(3));
    assert_eq!(&text, b"abc");
    std::thread::scope(|threads| {
        let sender = threads.spawn(|| shared.send_synchronous(me, 5, b"xyz"));
        let (mut front, mut back) = ([0; 1], [0; 2]);
        let mut pieces = [std::io::IoSliceMut::new(&mut front), std::io::IoSliceMut::new(&mut back)];
        shared.receive_segments(source, TagMatch::exactly(5), &mut pieces).expect("received");
        assert_eq!((front, back), (*b"x", *b"yz"));
        assert!(sender.join().expect("no panic").is_ok());
    });
    shared.progress().expect("no fork here");
    assert_eq!(shared.mechanism_status(me).len(), shared.counters(me).len());
    shared.remove_peer(me).expect("it was there");
    assert_eq!(shared.send(me, 1, b""), Err(OperationError::UnknownPeer));
    assert_eq!(shared.peer_id(me), None);
}
