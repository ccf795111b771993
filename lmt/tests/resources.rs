//! What an endpoint takes, and what it does where there is little.

mod common;

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{LIMIT, check, join, join_plain, kib_of, pattern};
use lmt::{CreateError, Endpoint, MemoryError, OperationError, PeerError, PeerId, Source, TagMatch};
use lmt_conformance::group::{self, Test};
use lmt_conformance::test_name;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The program's own pages are left out: their share changes with the number
/// of processes that run it.
fn pss_kib() -> u64 {
    let of = |key| kib_of("/proc/self/smaps_rollup", key);
    of("Pss_Anon") + of("Pss_Shmem")
}

/// What this process's descriptors name.
fn descriptors() -> Vec<(String, u64)> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("procfs").flatten();
    let open = entries.filter_map(|entry| {
        let name = std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
        let blocks = std::fs::metadata(entry.path()).map_or(0, |m| m.blocks());
        Some((name, blocks * 512 / 1024))
    });
    open.collect()
}

#[test]
fn an_idle_endpoint_takes_less_than_a_mebibyte() {
    group::run(test_name!(), 1, LIMIT, |group| {
        drop(Endpoint::new().expect("made"));
        let (pss, open) = (pss_kib(), descriptors().len());
        let endpoint = Endpoint::new().expect("made");
        let taken_kib = pss_kib().saturating_sub(pss);
        let memory_kib: u64 =
            descriptors().iter().filter(|(name, _)| name.contains("memfd")).map(|(_, kib)| kib).sum();
        let more = descriptors().len() - open;
        group.report(format!("{taken_kib} KiB of PSS, {memory_kib} KiB of segment, {more} descriptors"));
        assert!(
            taken_kib <= 1024 && memory_kib <= 1024,
            "{taken_kib} KiB of PSS, {memory_kib} KiB of segment"
        );
        assert!(more <= 6, "{more} descriptors");
        drop(endpoint);
        assert_eq!(descriptors().len(), open, "dropping closes all");
    })
    .reports
    .iter()
    .flatten()
    .for_each(|line| println!("idle endpoint: {line}"));
}

#[test]
fn a_connected_peer_with_a_fast_box_takes_two_descriptors() {
    group::run(test_name!(), 3, LIMIT, |group| {
        let (endpoint, peers) = join_plain(group);
        let (me, idle) = (group.rank() as usize, Duration::from_millis(20));
        // The first connection has the endpoint make what all take.
        if me < 2 {
            exchange(&endpoint, peers[1 - me], 8);
        }
        common::idle(&endpoint, idle);
        group.barrier();
        let open = descriptors();
        match me {
            2 => (0..2).for_each(|other| exchange(&endpoint, peers[other], 8)),
            _ => exchange(&endpoint, peers[2], 8),
        }
        common::idle(&endpoint, idle);
        group.barrier();
        let all = descriptors();
        // Its socket and its pidfd.
        assert!(me == 2 || all.len() == open.len() + 2, "{open:?}, then {all:?}");
        group.barrier();
    });
}

#[test]
fn sixty_four_processes_that_all_know_each_other_take_little() {
    const RANKS: u32 = 64;
    let limit = Duration::from_secs(60);
    let results = group::run(test_name!(), RANKS, limit, |group| {
        drop(Endpoint::new().expect("made"));
        let (endpoint, peers) = join(group, |config| config.connect_timeout_ms = 50_000);
        let me = group.rank() as usize;
        group.barrier();
        let (pss, open) = (pss_kib(), descriptors().len());
        for (rank, peer) in peers.iter().enumerate() {
            if rank != me {
                endpoint.send(*peer, 1, &[]).expect("sent");
            }
        }
        for _ in 1..RANKS {
            endpoint.receive(Source::Any, TagMatch::any(), &mut []).expect("received");
        }
        // Late handshakes of others are answered before anybody measures.
        common::idle(&endpoint, Duration::from_millis(20));
        group.barrier();
        let bytes = (pss_kib().saturating_sub(pss)) * 1024 / u64::from(RANKS - 1);
        let more = descriptors().len() - open;
        let fds = more as f64 / f64::from(RANKS - 1);
        group.report(format!("{bytes} {fds}"));
        assert!(bytes <= 16 << 10, "{bytes} bytes of PSS a peer");
        // The socket and the pidfd of each, and what the first connection takes once.
        assert!(more <= 2 * (RANKS as usize - 1) + 4, "{more} descriptors");
        group.barrier();
    });
    let numbers = results.reports.iter().flatten().filter_map(|line| line.split_once(' '));
    let (mut bytes, mut fds) = (Vec::new(), Vec::new());
    for (b, f) in numbers {
        bytes.push(b.parse::<u64>().expect("a number"));
        fds.push(f.parse::<f64>().expect("a number"));
    }
    println!(
        "64 processes: at most {:?} bytes of PSS and {:?} descriptors a connected peer",
        bytes.iter().max(),
        fds.iter().copied().reduce(f64::max)
    );
}

/// What this process has open or mapped that has a name in a file system, and where
/// its sockets listen there (/proc/net/unix).
fn named() -> Vec<String> {
    let nameless = ["socket:", "anon_inode:", "/memfd:", "pipe:", "/proc/", "["];
    let has_a_name = |name: &String| !name.is_empty() && nameless.iter().all(|n| !name.starts_with(n));
    let open: Vec<String> = descriptors().into_iter().map(|(name, _)| name).collect();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs");
    let column = |line: &str, at| line.split_whitespace().nth(at).unwrap_or_default().to_owned();
    let mapped = maps.lines().map(|line| column(line, 5));
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("procfs");
    let own = |line: &&str| open.contains(&format!("socket:[{}]", column(line, 6)));
    let bound = sockets.lines().filter(own).map(|line| column(line, 7)).filter(|name| !name.starts_with('@'));
    let mut names: Vec<String> = open.iter().cloned().chain(mapped).chain(bound).filter(has_a_name).collect();
    names.sort();
    names.dedup();
    names
}

/// Names in the usual folders that contain a group's identity; members differ in the last
/// digits only.
fn files_of(group: &str) -> Vec<String> {
    let folders = ["/dev/shm", "/tmp", "/run", "/var/tmp"];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(&group[..20])).collect()
}

/// Other programs' files come and go, so only those of these processes are looked at.
#[test]
fn nothing_has_a_name_that_could_be_left_behind() {
    let results = Test::new(test_name!(), 2).time_limit(LIMIT).run_with(
        |parent| {
            let ids = [0, 1].map(|rank| parent.next_report(rank).expect("it connects"));
            (0..2).for_each(|rank| parent.kill(rank, 9));
            ids.iter().for_each(|id| assert_eq!(files_of(id), [""; 0]));
        },
        |group| {
            let earlier = named();
            let (endpoint, peers) = join_plain(group);
            let other = peers[1 - group.rank() as usize];
            exchange(&endpoint, other, 1 << 20);
            let now = named();
            let new: Vec<_> = now.iter().filter(|name| !earlier.contains(name)).collect();
            assert!(new.is_empty(), "{new:?} are in a file system");
            let id = endpoint.id().to_string();
            assert_eq!(files_of(&id), [""; 0]);
            group.report(id);
            loop {
                exchange(&endpoint, other, 1 << 20);
            }
        },
    );
    drop(results);
}

/// A file that is open and a socket in a folder are found.
#[test]
fn what_has_a_name_is_found() {
    let folder = std::env::temp_dir().join(format!("lmt-test-named-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).display().to_string();
    let earlier = named();
    let open = std::fs::File::create(path("open")).expect("a file");
    let socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
    let now = named();
    drop((open, socket));
    std::fs::remove_dir_all(&folder).expect("it is there");
    for name in ["open", "socket"] {
        assert!(now.contains(&path(name)) && !earlier.contains(&path(name)), "{name}: {now:?}");
    }
}

/// Both send and receive so many bytes.
fn exchange(endpoint: &Endpoint, other: PeerId, bytes: usize) {
    let (data, mut into) = (pattern(3, bytes), vec![0; bytes]);
    endpoint.scope(|scope| {
        let receive = scope.receive(Source::Peer(other), TagMatch::exactly(3), &mut into).expect("posted");
        let send = scope.send(other, 3, &data).expect("begun");
        receive.wait().expect("received");
        send.wait().expect("sent");
    });
    check(3, &into);
}

#[test]
fn a_tiny_dev_shm_is_enough() {
    let results = Test::new(test_name!(), 2).time_limit(LIMIT).env("LMT_MECHANISM", "shm").run(|group| {
        match small_dev_shm() {
            Ok(()) => {
                let stat = nix::sys::statvfs::statvfs("/dev/shm").expect("it is mounted");
                assert_eq!(stat.blocks() * stat.fragment_size(), 1 << 20, "/dev/shm is small now");
            }
            Err(why) => group.report(format!("SKIPPED: {why}")),
        }
        let (endpoint, peers) = join_plain(group);
        exchange(&endpoint, peers[1 - group.rank() as usize], 16 << 20);
        group.barrier();
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}

/// Gives this process a /dev/shm of its own that holds 1 MiB.
fn small_dev_shm() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|errno| format!("no mount namespace can be made here: {errno}"))?;
    for arguments in [&["--make-rprivate", "/"][..], &["-t", "tmpfs", "-o", "size=1m", "tmpfs", "/dev/shm"]] {
        let out = Command::new("mount").args(arguments).output().map_err(|e| format!("mount(8): {e}"))?;
        if !out.status.success() {
            let why = String::from_utf8_lossy(&out.stderr);
            return Err(format!("mount {}: {}", arguments.join(" "), why.trim()));
        }
    }
    Ok(())
}

fn standing_of(endpoint: &Endpoint, peer: PeerId, name: &str) -> String {
    let all = endpoint.mechanism_status(peer);
    let (_, standing) = all.iter().find(|(n, _)| *n == name).expect("a known mechanism");
    format!("{standing:?}")
}

fn limit_to(resource: Resource, value: u64) {
    let (_, hard) = getrlimit(resource).expect("getrlimit");
    setrlimit(resource, value, hard).expect("lowering is allowed");
}

#[test]
fn short_memory_is_said_with_both_numbers() {
    for which in 0..2 {
        let results = group::run(test_name!(), 1, LIMIT, |group| {
            drop(Endpoint::new().expect("made"));
            if which == 0 {
                limit_to(Resource::RLIMIT_AS, (common::status_kib("VmSize") + 300) << 10);
            } else {
                limit_to(Resource::RLIMIT_FSIZE, 8192);
            }
            let error = Endpoint::new().map(|_| ()).expect_err("there is not enough");
            let CreateError::Memory(MemoryError::Short(short)) = &error else { panic!("{error:?}") };
            assert!(short.needed_bytes > 500_000, "{short:?}");
            let available: u64 = short.available.parse().expect("a number of bytes");
            assert!(available < short.needed_bytes, "{short:?}");
            group.report(error);
        });
        results.reports.iter().flatten().for_each(|line| println!("{line}"));
    }
}

/// Where address space is short, peers connect all the same: what a mechanism could
/// do without is not mapped, which is said, and others carry the messages.
#[test]
fn little_address_space_costs_mechanisms_and_not_connections() {
    const RANKS: u32 = 6;
    let results = group::run(test_name!(), RANKS, LIMIT, |group| {
        // Room for all that connections take, not for a pool of rings of each peer.
        limit_to(Resource::RLIMIT_AS, (common::status_kib("VmSize") + (450 << 10)) << 10);
        let (endpoint, peers) = join_plain(group);
        for (_, peer) in (0..RANKS).zip(peers).filter(|(rank, _)| *rank != group.rank()) {
            exchange(&endpoint, peer, 8);
            exchange(&endpoint, peer, 300_000);
            let ring = standing_of(&endpoint, peer, "ring");
            assert!(ring.contains("ulimit -v") && ring.contains("max_rings"), "{ring}");
            exchange(&endpoint, peer, 100);
        }
        group.report("every peer was reached");
        group.barrier();
    });
    assert_eq!(results.reports.iter().flatten().count(), RANKS as usize);
}

/// A peer for whom no ring is left gets the next mechanism, which is remembered and
/// explained; where there is none, the sentence says what would be right.
#[test]
fn a_pool_without_a_ring_left_is_asked_once_for_each_peer() {
    const MESSAGES: u64 = 10;
    for only in ["", "ring"] {
        let test = Test::new(test_name!(), 4).time_limit(LIMIT);
        let test = test.env("LMT_RING_MAX_RINGS", "1").env("LMT_MECHANISM", only);
        // The ring first, whatever this machine is.
        let test = test.env("LMT_SINGLE_COPY", "slow");
        test.run(|group| {
            let (endpoint, peers) = join_plain(group);
            let data = pattern(3, 400_000);
            if group.rank() == 0 {
                for (index, peer) in peers[1..].iter().enumerate() {
                    for message in 0..MESSAGES {
                        let sent = endpoint.send(*peer, message, &data);
                        let is_served = only.is_empty() || index == 0;
                        assert_eq!(sent.is_ok(), is_served, "{sent:?}");
                        let why = sent.err().map(|error| error.to_string()).unwrap_or_default();
                        assert!(is_served || why.contains("raise max_rings"), "{why}");
                    }
                    let known = endpoint.counters(*peer).into_iter().find(|(name, _)| *name == "ring");
                    let demotions = known.expect("a known mechanism").1.demotions;
                    // Of the first message, in each of its two models.
                    let most = if index == 0 { 0 } else { 2 };
                    assert!(demotions <= most, "{demotions} for peer {index}");
                }
                let explained = endpoint.explain(peers[2], 400_000).expect("a peer").to_string();
                assert!(!explained.lines().next().is_some_and(|line| line.contains("ring")), "{explained}");
                assert!(explained.contains("raise max_rings"), "{explained}");
            } else {
                let is_served = only.is_empty() || group.rank() == 1;
                for message in 0..MESSAGES {
                    let mut into = vec![0; data.len()];
                    let tag = TagMatch::exactly(message);
                    let received = endpoint.receive(Source::Peer(peers[0]), tag, &mut into);
                    assert_eq!(received.is_ok(), is_served, "{received:?}");
                    assert!(!is_served || into == data);
                }
            }
            group.barrier();
        });
    }
}

/// The sentence says what is short, whichever call ran out of it.
fn assert_says_descriptors(sentence: &str) {
    let short = ["EMFILE", "Too many open files", "open files (RLIMIT_NOFILE, ulimit -n)"];
    assert!(short.iter().any(|part| sentence.contains(part)), "{sentence}");
}

#[test]
fn few_descriptors_end_in_a_sentence() {
    // While it is made, and while it connects.
    let results = group::run(test_name!(), 2, LIMIT, |group| {
        let highest = || {
            let open = std::fs::read_dir("/proc/self/fd").expect("procfs").flatten();
            open.filter_map(|e| e.file_name().to_string_lossy().parse::<u64>().ok()).max().unwrap_or(0)
        };
        let (was, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("getrlimit");
        // Every number below is taken, so that the limit says how many are left.
        let _taken: Vec<_> =
            (0..highest() + 1).filter_map(|_| std::fs::File::open("/dev/null").ok()).collect();
        let lowest = highest() + 1;
        let mut made_at = None;
        for more in 0..12 {
            limit_to(Resource::RLIMIT_NOFILE, lowest + more);
            let made = Endpoint::new().map(|_| ());
            limit_to(Resource::RLIMIT_NOFILE, was);
            match (made, made_at) {
                (Ok(()), _) => made_at = made_at.or(Some(more)),
                (Err(error), None) => {
                    assert_says_descriptors(&error.to_string());
                    group.report(format!("made with {more} descriptors left: {error}"));
                }
                (Err(error), Some(fewer)) => {
                    panic!("{fewer} descriptors were enough, {more} are not: {error}")
                }
            }
        }
        assert!(made_at.is_some_and(|more| more >= 2), "{made_at:?}");
        let (mut succeeded, mut said) = (0, 0);
        for more in 0..12 {
            let id = group.id().member(10 + 2 * more as u32 + group.rank());
            let other = group.id().member(10 + 2 * more as u32 + 1 - group.rank());
            let change = |config: &mut lmt::Config| config.connect_timeout_ms = 1000;
            let endpoint = Endpoint::builder().id(id).configure(change).build().expect("made");
            let peer = endpoint.insert_peer(&lmt::Address::abstract_socket(other)).expect("a peer");
            group.barrier();
            if group.rank() == 0 {
                limit_to(Resource::RLIMIT_NOFILE, highest() + 1 + more);
            }
            let started = Instant::now();
            let sent = endpoint.send(peer, 1, b"x");
            limit_to(Resource::RLIMIT_NOFILE, was);
            assert!(started.elapsed() < Duration::from_secs(5));
            match sent {
                Ok(_) => succeeded += 1,
                // The other side may only see that nobody answers.
                Err(error @ OperationError::Peer(PeerError::Unreachable { .. })) => {
                    group.report(format!("{more} descriptors left there: {error}"));
                }
                // Refused by the system, here or to the other side.
                Err(ref error @ OperationError::Peer(PeerError::System { errno, .. })) => {
                    assert_eq!(errno, Errno::EMFILE);
                    assert_says_descriptors(&error.to_string());
                    said += 1;
                    group.report(format!("{more} descriptors left to rank 0: {error}"));
                }
                Err(error) => panic!("{error:?}"),
            }
            group.barrier();
        }
        // With none it cannot connect, and with the most it must.
        assert!(said >= 1 || group.rank() == 1, "rank 0 is never told that descriptors are short");
        assert!((1..12).contains(&succeeded), "{succeeded} of 12 connections succeeded");
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}
