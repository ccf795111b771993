//! Waiting costs little, wakes in time, and progress does not cost more with
//! more peers.

mod common;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use common::{LIMIT, cpu_time, idle, join, join_plain, pattern};
use lmt::{Endpoint, OperationError, PeerError, PeerId, Source, TagMatch};
use lmt_conformance::group::{self, Group};
use lmt_conformance::test_name;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Runs `wait`, which takes about `time`, and checks what it burns.
fn burns_little(group: &Group, what: &str, time: Duration, wait: impl FnOnce()) {
    let (before, started) = (cpu_time(), Instant::now());
    wait();
    let (burnt, took) = (cpu_time() - before, started.elapsed());
    let percent = 100.0 * burnt.as_secs_f64() / took.as_secs_f64();
    group.report(format!("{what}: {percent:.2} % of a core for {took:?}"));
    assert!(took > time * 9 / 10, "{what} took {took:?}");
    assert!(percent < 5.0, "{what} burnt {percent:.2} % of a core");
}

/// Where a send has no room, who waits for progress is to hear of each message that ends, also of
/// one that is found to have ended on the way to sleep.
#[test]
fn a_full_sender_hears_that_there_is_room() {
    const MESSAGES: u32 = 300;
    const PATIENCE: Duration = Duration::from_secs(5);
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| {
            (config.pending_max_messages, config.eager_max_bytes) = (1, 0);
            (config.spins, config.yields) = (2000, 10);
        });
        let peer = peers[1 - group.rank() as usize];
        let data = pattern(1, 64 << 10);
        if group.rank() == 1 {
            let into = &mut vec![0; data.len()];
            for message in 0..MESSAGES {
                // Sometimes long enough for the sender to fall asleep.
                std::thread::sleep(Duration::from_micros(u64::from(message % 7) * 100));
                endpoint.receive(Source::Peer(peer), TagMatch::exactly(1), into).expect("received");
                assert!(*into == data);
            }
            return;
        }
        endpoint.scope(|scope| {
            let mut requests = Vec::new();
            while requests.len() < MESSAGES as usize {
                match scope.send(peer, 1, &data) {
                    Ok(request) => requests.push(request),
                    Err(OperationError::WouldBlock { .. }) => {
                        let moved = endpoint.wait_for_progress(Some(PATIENCE)).expect("no child");
                        assert!(moved, "no room behind {} messages", requests.len());
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
    });
}

#[test]
fn waiting_for_a_second_burns_little() {
    let time = Duration::from_secs(1);
    let results = group::run(test_name!(), 4, LIMIT, |group| {
        let (endpoint, peers) = join(group, |config| config.connect_timeout_ms = 1000);
        let me = group.rank() as usize;
        let next = peers[(me + 1) % 4];
        for peer in &peers {
            endpoint.send(*peer, 1, &[]).expect("sent");
        }
        (0..4).for_each(|_| drop(endpoint.receive(Source::Any, TagMatch::exactly(1), &mut [])));
        group.barrier();
        if me == 3 {
            // All others wait for this rank.
            for _ in 0..2 {
                std::thread::sleep(time);
                for to in &peers[..3] {
                    endpoint.send(*to, 2, &[]).expect("sent");
                }
            }
            std::thread::sleep(time);
            (0..3).for_each(|from| {
                endpoint.receive(Source::Peer(peers[from]), TagMatch::any(), &mut [0; 9]).expect("received");
            });
            group.barrier();
            return;
        }
        burns_little(group, "a receive", time, || {
            endpoint.receive(Source::Any, TagMatch::exactly(2), &mut []).expect("received");
        });
        burns_little(group, "a receive from one and one posted before", time, || {
            let into = &mut [0; 10];
            endpoint.scope(|scope| {
                let _other = scope.receive(Source::Peer(next), TagMatch::exactly(9), into).expect("posted");
                endpoint.receive(Source::Peer(peers[3]), TagMatch::exactly(2), &mut []).expect("received");
            });
        });
        burns_little(group, "a synchronous send", time / 2, || {
            endpoint.send_synchronous(peers[3], 3, b"matched").expect("matched");
        });
        burns_little(group, "a wait for progress", time / 2, || {
            let end = Instant::now() + time;
            while Instant::now() < end {
                endpoint.wait_for_progress(Some(end - Instant::now())).expect("no fork here");
            }
        });
        let address = lmt::Address::abstract_socket(group.id().member(77));
        let nobody = endpoint.insert_peer(&address).expect("a peer");
        burns_little(group, "a send to a peer that is not there", time, || {
            endpoint.send(nobody, 1, b"hello").expect_err("nobody is there");
        });
        group.barrier();
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}

/// A sender whose receiver does not look: its inbox is full.
#[test]
fn waiting_for_room_burns_little() {
    group::run(test_name!(), 2, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let other = peers[1 - group.rank() as usize];
        endpoint.send(other, 1, &[]).expect("sent");
        endpoint.receive(Source::Peer(other), TagMatch::any(), &mut []).expect("received");
        let data = pattern(1, 4096);
        if group.rank() == 0 {
            group.barrier();
            burns_little(group, "a send to a full inbox", Duration::from_millis(900), || {
                for _ in 0..300 {
                    endpoint.send(other, 1, &data).expect("sent");
                }
            });
        } else {
            group.barrier();
            std::thread::sleep(Duration::from_secs(1));
            let mut into = vec![0; 4096];
            for _ in 0..300 {
                endpoint.receive(Source::Any, TagMatch::any(), &mut into).expect("received");
            }
        }
        group.barrier();
    });
}

/// Polls the wait descriptor once, as an event loop does; false when the time
/// is over.
fn wakes(endpoint: &Endpoint, time: Duration) -> bool {
    let descriptor = endpoint.wait_descriptor().expect("a descriptor");
    if !endpoint.prepare_to_sleep().expect("no fork here") {
        return true;
    }
    let limit = PollTimeout::try_from(time.min(endpoint.sleep_limit())).expect("short");
    let mut fds = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, limit).expect("poll") > 0
}

/// Turns the event loop until `done`; gives the time that took.
fn event_loop(endpoint: &Endpoint, mut done: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    loop {
        while endpoint.progress().expect("no fork here") {}
        if done() {
            return started.elapsed();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "nothing woke the event loop");
        let _either_way = wakes(endpoint, Duration::from_secs(5));
    }
}

#[test]
fn the_wait_descriptor_wakes_for_connections_messages_and_deaths() {
    let results = group::Test::new(test_name!(), 2).time_limit(LIMIT).run_with(
        |parent| {
            assert_eq!(parent.next_report(0).as_deref(), Some("quiet"));
            parent.kill(1, 9);
        },
        |group| {
            let (endpoint, peers) = join_plain(group);
            if group.rank() == 1 {
                group.barrier();
                std::thread::sleep(Duration::from_millis(100));
                endpoint.send(peers[0], 1, b"connected").expect("sent");
                for _ in 0..3 {
                    std::thread::sleep(Duration::from_millis(300));
                    endpoint.send(peers[0], 2, b"woken").expect("sent");
                }
                group.barrier();
                loop {
                    std::thread::park();
                }
            }
            group.barrier();
            let has = |tag| endpoint.probe(Source::Any, TagMatch::exactly(tag)).expect("no fork").is_some();
            event_loop(&endpoint, || has(1));
            for _ in 0..3 {
                let took = event_loop(&endpoint, || has(2));
                assert!(took < Duration::from_millis(900), "a message took {took:?} to wake");
                endpoint.receive(Source::Any, TagMatch::exactly(2), &mut [0; 5]).expect("received");
            }
            // It goes quiet again: the descriptor is not readable for nothing.
            group.barrier();
            idle(&endpoint, Duration::from_millis(30));
            let mut woken = 0;
            let quiet = Instant::now();
            while quiet.elapsed() < Duration::from_millis(300) {
                while endpoint.progress().expect("no fork here") {}
                woken += u32::from(wakes(&endpoint, Duration::from_millis(50)));
            }
            assert!(woken <= 2, "woken {woken} times for nothing");
            group.report("quiet");
            let mut into = [0; 1];
            let ended = endpoint.scope(|scope| {
                let posted = scope.receive(Source::Peer(peers[1]), TagMatch::exactly(9), &mut into);
                let (mut open, mut ended) = (Some(posted.expect("posted")), None);
                let took = event_loop(&endpoint, || {
                    match open.take().map(lmt::Request::test) {
                        Some(Err(request)) => open = Some(request),
                        Some(Ok(end)) => ended = Some(end),
                        None => {}
                    }
                    ended.is_some()
                });
                assert!(took < Duration::from_secs(1), "the death took {took:?} to be noticed");
                ended.expect("it has ended")
            });
            assert!(matches!(ended, Err(OperationError::Peer(PeerError::Dead { .. }))), "{ended:?}");
        },
    );
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}

/// Time of so many calls of progress that find nothing.
fn time_of_polls(endpoint: &Endpoint, polls: u32) -> Duration {
    let started = Instant::now();
    for _ in 0..polls {
        endpoint.progress().expect("no fork here");
    }
    started.elapsed()
}

fn median<T: Ord + Copy>(values: &mut [T]) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Two endpoints of one process, one with 2 peers and one with 64.
#[test]
fn a_poll_costs_the_same_with_many_peers() {
    const FEW: u32 = 1000;
    let results = group::run(test_name!(), 65, LIMIT, |group| {
        let greet = |endpoint: &Endpoint, peer: PeerId| endpoint.send(peer, 1, &[]).expect("sent");
        let (many, peers) = join(group, |config| config.connect_timeout_ms = 50_000);
        if group.rank() != 0 {
            greet(&many, peers[0]);
            if group.rank() <= 2 {
                let few = lmt::Address::abstract_socket(group.id().member(FEW));
                greet(&many, many.insert_peer(&few).expect("a peer"));
            }
            // Silent from here on.
            group.barrier();
            group.barrier();
            return;
        }
        let few = Endpoint::builder().id(group.id().member(FEW)).build().expect("made");
        for rank in 1..=2 {
            few.insert_peer(&group.address(rank)).expect("a peer");
        }
        // Both by turns: ranks 1 and 2 greet one after the other.
        let mut missing = [(&few, 2), (&many, 64)];
        while missing.iter().any(|(_, count)| *count > 0) {
            for (endpoint, count) in &mut missing {
                while endpoint.probe(Source::Any, TagMatch::any()).expect("no fork here").is_some() {
                    endpoint.receive(Source::Any, TagMatch::any(), &mut []).expect("received");
                    *count -= 1;
                }
            }
        }
        group.barrier();
        for endpoint in [&few, &many] {
            idle(endpoint, Duration::from_millis(50));
        }
        // Ratios of neighbours, so that what else runs here hits both alike.
        let pair = |turn: u32| {
            let even = turn.is_multiple_of(2);
            let (a, b) = if even { (&few, &many) } else { (&many, &few) };
            let (a, b) = (time_of_polls(a, 4096), time_of_polls(b, 4096));
            if even { (a, b) } else { (b, a) }
        };
        let (mut with_2, mut with_64): (Vec<_>, Vec<_>) = (0..1000).map(pair).unzip();
        let (with_2, with_64) = (median(&mut with_2).as_nanos(), median(&mut with_64).as_nanos());
        let ratio = with_64 as f64 / with_2 as f64;
        group.report(format!("{} ns a poll with 2 peers, {ratio:.3} of it with 64", with_2 / 4096));
        assert!(ratio < 1.1, "{with_2} ns for 4096 polls with 2 peers, {with_64} ns with 64");
        group.barrier();
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}

/// One round of an all-to-all of 64 KiB among the first `ranks`.
fn all_to_all(endpoint: &Endpoint, peers: &[PeerId], me: usize, data: &[u8], into: &mut [Vec<u8>]) {
    endpoint.scope(|scope| {
        let mut requests = Vec::with_capacity(2 * peers.len());
        for (from, into) in into.iter_mut().enumerate().filter(|(from, _)| *from != me) {
            requests
                .push(scope.receive(Source::Peer(peers[from]), TagMatch::exactly(5), into).expect("posted"));
        }
        for turn in 1..peers.len() {
            let to = peers[(me + turn) % peers.len()];
            requests.push(scope.send(to, 5, data).expect("begun"));
        }
        scope.wait_all(requests).into_iter().for_each(|end| assert!(end.is_ok(), "{end:?}"));
    });
}

/// Interleaved rounds among 2 and among 4 ranks on two CPUs: six times the
/// bytes take at most nine times as long. What else runs on the machine only
/// ever adds, and adds more to four ranks; so the quietest of three series
/// counts.
#[test]
fn four_ranks_on_two_cores_share_them() {
    const ROUNDS: u32 = 60;
    let cpus: Vec<_> = group::allowed_cpus().into_iter().take(2).collect();
    let test = group::Test::new(test_name!(), 4).time_limit(LIMIT).pin(&cpus);
    let results = test.run(|group| {
        let (endpoint, peers) = join_plain(group);
        let me = group.rank() as usize;
        let data = pattern(me as u64, 65_536);
        let mut into = vec![vec![0; 65_536]; 4];
        all_to_all(&endpoint, &peers, me, &data, &mut into);
        let (mut among_2, mut among_4) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            for ranks in [2, 4] {
                group.barrier();
                if me < ranks {
                    let started = Instant::now();
                    for _ in 0..20 {
                        all_to_all(&endpoint, &peers[..ranks], me, &data, &mut into[..ranks]);
                    }
                    let times = if ranks == 2 { &mut among_2 } else { &mut among_4 };
                    times.push(started.elapsed() / 20);
                }
            }
        }
        (0..4).filter(|from| *from != me).for_each(|from| common::check(from as u64, &into[from]));
        report_ratio(group, &mut among_2, &mut among_4);
        group.barrier();
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}

fn report_ratio(group: &Group, among_2: &mut [Duration], among_4: &mut [Duration]) {
    if group.rank() != 0 {
        return;
    }
    let third = among_2.len() / 3;
    let series = among_2.chunks_mut(third).zip(among_4.chunks_mut(third));
    let mut least = f64::INFINITY;
    for (among_2, among_4) in series {
        let (two, four) = (median(among_2), median(among_4));
        let ratio = four.as_secs_f64() / two.as_secs_f64();
        group.report(format!("all-to-all of 64 KiB: {two:?} among 2, {four:?} among 4, {ratio:.1} times"));
        least = least.min(ratio);
    }
    assert!(least < 9.0, "{least}");
}
