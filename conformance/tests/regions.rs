//! Declared memory between real processes.
#![allow(unsafe_code)] // fork(2), and memory declared for writing.

use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};

use lmt::{
    Direction, Endpoint, OperationError, PeerError, PeerId, Protection, Region, RegionError, RegionKey,
    SharedRegion, Source, TagMatch,
};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

/// Long against what a machine needs on which every core has other work too.
const LIMIT: Duration = Duration::from_secs(120);
/// Where an error within a second is promised, the test allows a loaded
/// machine some more.
const SOON: Duration = Duration::from_secs(3);

/// This rank's endpoint and the other rank, connected.
fn meet(group: &Group, mechanisms: Option<&[&str]>) -> (Endpoint, PeerId) {
    let mut builder = Endpoint::builder().id(group.id().member(group.rank()));
    if let Some(names) = mechanisms {
        builder = builder.mechanisms(names);
    }
    let endpoint = builder.build().expect("an endpoint");
    let other = endpoint.insert_peer(&group.address(1 - group.rank())).expect("room for a peer");
    exchange(&endpoint, other);
    (endpoint, other)
}

/// Returns when the other rank has called it as often.
fn exchange(endpoint: &Endpoint, other: PeerId) {
    let mut nothing = [0; 0];
    endpoint
        .scope(|scope| {
            let receive = scope.receive(Source::Peer(other), TagMatch::exactly(99), &mut nothing)?;
            scope.send(other, 99, &[])?.wait()?;
            receive.wait()
        })
        .expect("the other rank lives");
}

fn send_key(endpoint: &Endpoint, other: PeerId, key: RegionKey) {
    endpoint.send(other, 1, &key.to_bytes()).expect("the peer lives");
}

fn receive_key(endpoint: &Endpoint, other: PeerId) -> RegionKey {
    let mut bytes = [0; RegionKey::BYTES];
    endpoint.receive(Source::Peer(other), TagMatch::exactly(1), &mut bytes).expect("the owner lives");
    RegionKey::from_bytes(bytes)
}

/// Whether some mechanism reaches the other rank's own memory; says so if not.
fn reaches_private_memory(endpoint: &Endpoint, other: PeerId) -> bool {
    let mechanism_status = endpoint.mechanism_status(other);
    let able = mechanism_status.iter().any(|(_, s)| s.ours.read && s.ours.write);
    if !able {
        let required = std::env::var("LMT_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name == "cma"), "{mechanism_status:?}");
        eprintln!("skipped for declared memory: {mechanism_status:?}");
    }
    able
}

fn byte(seed: u64, at: u64) -> u8 {
    let x = (at ^ seed << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x >> 56) as u8
}

fn filled(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| byte(seed, at)).collect()
}

fn error_of<T: std::fmt::Debug>(result: Result<T, OperationError>) -> RegionError {
    match result {
        Err(OperationError::Region(error)) => error,
        other => panic!("a region's error was expected, not {other:?}"),
    }
}

/// What the peer of a region does in `offsets_and_refusals`.
fn use_region(endpoint: &Endpoint, other: PeerId, bytes: usize) {
    let key = receive_key(endpoint, other);
    assert_eq!(key.total_bytes(), bytes as u64);
    let expected = filled(1, bytes);
    for (offset, length) in [(0, bytes), (0, 0), (bytes, 0), (1, 1), (4097, 70_001), (bytes - 1, 1)] {
        let mut into = vec![0xEE; length];
        endpoint.get(&key, offset as u64, &mut into).expect("a get");
        assert_eq!(into, expected[offset..offset + length], "get of {length} from {offset}");
    }
    endpoint.put(&key, 12_345, &filled(2, 1_100_000)).expect("a put");
    let mut back = vec![0; 1_100_000];
    endpoint.get(&key, 12_345, &mut back).expect("a get");
    assert_eq!(back, filled(2, 1_100_000));
    for (offset, length) in [(bytes as u64, 1), (bytes as u64 - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 8)] {
        let expected = RegionError::OutOfBounds { offset, bytes: length, total_bytes: bytes as u64 };
        let mut into = vec![0; length as usize];
        assert_eq!(error_of(endpoint.get(&key, offset, &mut into)), expected);
        assert_eq!(error_of(endpoint.put(&key, offset, &into)), expected);
    }
    exchange(endpoint, other);
    let (read_only, write_only) = (receive_key(endpoint, other), receive_key(endpoint, other));
    let mut some = [0; 8];
    endpoint.get(&read_only, 0, &mut some).expect("reading is allowed");
    assert_eq!(error_of(endpoint.put(&read_only, 0, &some)), RegionError::Forbidden(Direction::Put));
    endpoint.put(&write_only, 0, &some).expect("writing is allowed");
    assert_eq!(error_of(endpoint.get(&write_only, 0, &mut some)), RegionError::Forbidden(Direction::Get));
    exchange(endpoint, other);
    // They are destroyed now, and another has taken the first one's place.
    let third = receive_key(endpoint, other);
    assert_eq!(error_of(endpoint.get(&read_only, 0, &mut some)), RegionError::NotRegistered);
    assert_eq!(error_of(endpoint.put(&write_only, 0, &some)), RegionError::NotRegistered);
    endpoint.get(&third, 0, &mut some).expect("the new one is there");
    exchange(endpoint, other);
}

const BYTES: usize = 3 << 20;

#[test]
fn declared_memory_offsets_and_refusals() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let (endpoint, other) = meet(group, None);
        if !reaches_private_memory(&endpoint, other) {
            return;
        }
        if group.rank() == 1 {
            return use_region(&endpoint, other, BYTES);
        }
        let mut memory = filled(1, BYTES);
        let (a, mut b, c) = ([7; 64], [8; 64], [9; 64]);
        endpoint.scope(|scope| {
            // SAFETY: the peer's puts return before it exchanges messages, which
            // this rank does after each of them, and last before the scope ends.
            let region =
                unsafe { scope.register_memory(&mut memory, Protection::READ_WRITE) }.expect("a region");
            send_key(&endpoint, other, region.key());
            exchange(&endpoint, other);
            let mut seen = vec![0; 1_100_000];
            region.read_at(12_345, &mut seen).expect("its owner reads it");
            assert_eq!(seen, filled(2, 1_100_000));
            let read_only = scope.register_read_only(&[IoSlice::new(&a)]).expect("a region");
            // SAFETY: as above.
            let write_only = unsafe { scope.register_memory(&mut b, Protection::WRITE) }.expect("a region");
            send_key(&endpoint, other, read_only.key());
            send_key(&endpoint, other, write_only.key());
            exchange(&endpoint, other);
            read_only.destroy().expect("it is declared");
            write_only.destroy().expect("it is declared");
            let third = scope.register_read_only(&[IoSlice::new(&c)]).expect("a region");
            send_key(&endpoint, other, third.key());
            exchange(&endpoint, other);
        });
    });
}

fn allocated(group: &Group, mechanisms: Option<&[&str]>) {
    let (endpoint, other) = meet(group, mechanisms);
    if group.rank() == 1 {
        return use_region(&endpoint, other, BYTES);
    }
    let region = endpoint.allocate_region(BYTES, Protection::READ_WRITE).expect("memory");
    region.write_at(0, &filled(1, BYTES)).expect("its owner writes it");
    send_key(&endpoint, other, region.key());
    exchange(&endpoint, other);
    let mut seen = vec![0; 1_100_000];
    region.read_at(12_345, &mut seen).expect("its owner reads it");
    assert_eq!(seen, filled(2, 1_100_000));
    let read_only = endpoint.allocate_region(64, Protection::READ).expect("memory");
    let write_only = endpoint.allocate_region(64, Protection::WRITE).expect("memory");
    send_key(&endpoint, other, read_only.key());
    send_key(&endpoint, other, write_only.key());
    exchange(&endpoint, other);
    drop((read_only, write_only));
    let third = endpoint.allocate_region(64, Protection::READ).expect("memory");
    send_key(&endpoint, other, third.key());
    exchange(&endpoint, other);
}

#[test]
fn allocated_memory_offsets_and_refusals() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| allocated(group, None));
}

#[test]
fn allocated_memory_needs_no_mechanism_that_reaches_private_memory() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| allocated(group, Some(&["shm"])));
}

#[test]
fn declared_memory_out_of_reach_says_so_in_one_sentence() {
    Test::new(test_name!(), 2).env("LMT_MECHANISM", "shm").time_limit(LIMIT).run(|group| {
        let (endpoint, other) = meet(group, None);
        let mut memory = [1; 100];
        if group.rank() == 0 {
            endpoint.scope(|scope| {
                // SAFETY: the peer's put has failed before it exchanges messages.
                let region =
                    unsafe { scope.register_memory(&mut memory, Protection::READ_WRITE) }.expect("a region");
                send_key(&endpoint, other, region.key());
                exchange(&endpoint, other);
            });
            return;
        }
        let key = receive_key(&endpoint, other);
        for error in [endpoint.get(&key, 0, &mut memory), endpoint.put(&key, 0, &memory)].map(error_of) {
            assert!(matches!(error, RegionError::Unreachable(_)), "{error:?}");
            let sentence = error.to_string();
            assert!(sentence.contains("let the owner allocate") && !sentence.contains('\n'), "{sentence}");
        }
        exchange(&endpoint, other);
    });
}

/// Who cannot copy is refused before the region's one use is taken.
#[test]
fn a_region_of_single_use_is_not_used_up_by_who_cannot_reach_it() {
    Test::new(test_name!(), 3).time_limit(LIMIT).run(|group| {
        let mechanisms: &[&str] = if group.rank() == 1 { &["shm"] } else { &["cma", "shm"] };
        let builder = Endpoint::builder().id(group.id().member(group.rank())).mechanisms(mechanisms);
        let endpoint = builder.build().expect("an endpoint");
        let peers = [0, 1, 2].map(|rank| endpoint.insert_peer(&group.address(rank)).expect("room"));
        let memory = [7; 100];
        if group.rank() == 0 {
            endpoint.scope(|scope| {
                let region = scope.register_for_one_read(&[IoSlice::new(&memory)]).expect("a region");
                for peer in [peers[1], peers[2]] {
                    send_key(&endpoint, peer, region.key());
                    exchange(&endpoint, peer);
                }
            });
            return;
        }
        let key = receive_key(&endpoint, peers[0]);
        let mut into = [0; 100];
        if group.rank() == 1 {
            let error = error_of(endpoint.get(&key, 0, &mut into));
            assert!(matches!(error, RegionError::Unreachable(_)), "{error:?}");
        } else if reaches_private_memory(&endpoint, peers[0]) {
            endpoint.get(&key, 0, &mut into).expect("it was not used up");
            assert_eq!(into, memory);
        }
        exchange(&endpoint, peers[0]);
    });
}

/// Cuts memory into `count` pieces of at most `most_bytes` together, some of
/// them empty, with gaps between.
fn cut(memory: &mut [u8], count: usize, mut most_bytes: usize) -> Vec<IoSliceMut<'_>> {
    let each = memory.len() / count;
    let chunks = memory.chunks_mut(each).take(count).enumerate();
    let pieces = chunks.map(|(index, chunk)| {
        let wanted = if index % 7 == 3 { 0 } else { each - 1 - index % 5 };
        let bytes = wanted.min(most_bytes);
        most_bytes -= bytes;
        IoSliceMut::new(&mut chunk[..bytes])
    });
    pieces.collect()
}

fn gather(pieces: &[IoSliceMut<'_>]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.to_vec()).collect()
}

const COUNTS: [usize; 9] = [1, 2, 3, 16, 17, 1023, 1024, 1025, 3000];

#[test]
fn noncontiguous_on_both_sides() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let (endpoint, other) = meet(group, None);
        if !reaches_private_memory(&endpoint, other) {
            return;
        }
        for (round, count) in COUNTS.into_iter().enumerate() {
            let mut memory = filled(round as u64, 64 * 3000);
            let mut pieces = cut(&mut memory, count, usize::MAX);
            let content = gather(&pieces);
            if group.rank() == 0 {
                endpoint.scope(|scope| {
                    // SAFETY: the peer waits for its put before it exchanges messages.
                    let region = unsafe { scope.register_segments(&mut pieces, Protection::READ_WRITE) };
                    let region = region.expect("a region");
                    send_key(&endpoint, other, region.key());
                    exchange(&endpoint, other);
                    let mut seen = vec![0; content.len() - 3];
                    region.read_at(3, &mut seen).expect("its owner reads it");
                    assert!(seen.iter().zip(&content[3..]).all(|(a, b)| *a == !*b), "{count} segments");
                });
                continue;
            }
            let key = receive_key(&endpoint, other);
            for local in [1, 5, 1030] {
                let mut target = vec![0; 64 * 3000 + 20_000];
                let mut parts = cut(&mut target, local, content.len() - 3);
                let bytes: usize = parts.iter().map(|part| part.len()).sum();
                let expected = &content[3..3 + bytes];
                endpoint.scope(|scope| {
                    scope.get_segments(&key, 3, &mut parts).and_then(lmt::Request::wait).expect("a get");
                });
                assert!(gather(&parts) == expected, "{count} segments into {local}");
            }
            let inverse: Vec<u8> = content[3..].iter().map(|b| !b).collect();
            let parts: Vec<IoSlice<'_>> = inverse.chunks(97).map(IoSlice::new).collect();
            endpoint.scope(|scope| {
                scope.put_segments(&key, 3, &parts).and_then(lmt::Request::wait).expect("a put");
            });
            exchange(&endpoint, other);
        }
    });
}

#[test]
fn more_shared_regions_at_once_than_mappings_are_kept() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let (endpoint, other) = meet(group, None);
        if group.rank() == 0 {
            let regions: Vec<_> = (0..40)
                .map(|n| {
                    let region = endpoint.allocate_region(100_000, Protection::READ).expect("memory");
                    region.write_at(0, &filled(n, 100_000)).expect("its owner writes it");
                    send_key(&endpoint, other, region.key());
                    region
                })
                .collect();
            exchange(&endpoint, other);
            assert_eq!(regions.len(), 40);
            return;
        }
        let keys: Vec<RegionKey> = (0..40).map(|_| receive_key(&endpoint, other)).collect();
        let mut targets = vec![vec![0; 100_000]; 40];
        endpoint.scope(|scope| {
            let gets = keys.iter().zip(&mut targets).map(|(key, into)| scope.get(key, 0, into));
            let gets: Vec<_> = gets.collect::<Result<_, _>>().expect("the owner lives");
            scope.wait_all(gets).into_iter().for_each(|result| {
                result.expect("a get");
            });
        });
        (0..40).zip(&targets).for_each(|(n, target)| assert_eq!(*target, filled(n, 100_000)));
        exchange(&endpoint, other);
    });
}

/// Gets until the owner's death is noticed; the parent kills it meanwhile.
fn get_until_death(group: &Group, endpoint: &Endpoint, other: PeerId, key: RegionKey, bytes: usize) {
    let mut into = vec![0; bytes];
    let begun = Instant::now();
    let mut rounds = 0;
    let (error, took) = loop {
        let now = Instant::now();
        match endpoint.get(&key, 0, &mut into) {
            Ok(_) => rounds += 1,
            Err(error) => break (error, now.elapsed()),
        }
        if rounds == 3 {
            group.report("in flight");
        }
        assert!(begun.elapsed() < LIMIT / 2, "the death was never noticed");
    };
    let owner = endpoint.peer_id(other).expect("the peer is known");
    assert_eq!(error, OperationError::Peer(PeerError::Dead { id: owner }));
    assert!(took < SOON, "{took:?}");
}

fn kill_when_under_way(test: Test, body: impl FnOnce(&Group)) {
    let drive = |parent: &mut lmt_conformance::group::Parent| {
        // A rank that skips says nothing.
        if parent.next_report(0).is_some() {
            std::thread::sleep(Duration::from_millis(5));
            parent.kill(1, 9);
        }
    };
    test.may_die(1).time_limit(LIMIT).run_with(drive, body);
}

#[test]
fn owner_of_declared_memory_killed_in_the_middle() {
    kill_when_under_way(Test::new(test_name!(), 2), |group| {
        let (endpoint, other) = meet(group, None);
        if !reaches_private_memory(&endpoint, other) {
            return;
        }
        let bytes = 64 << 20;
        if group.rank() == 0 {
            let key = receive_key(&endpoint, other);
            return get_until_death(group, &endpoint, other, key, bytes);
        }
        let memory = vec![5; bytes];
        endpoint.scope(|scope| {
            let region = scope.register_read_only(&[IoSlice::new(&memory)]).expect("a region");
            send_key(&endpoint, other, region.key());
            std::thread::sleep(LIMIT);
        });
    });
}

#[test]
fn owner_of_allocated_memory_killed_in_the_middle() {
    kill_when_under_way(Test::new(test_name!(), 2), |group| {
        let (endpoint, other) = meet(group, None);
        let bytes = 64 << 20;
        if group.rank() == 0 {
            let key = receive_key(&endpoint, other);
            return get_until_death(group, &endpoint, other, key, bytes);
        }
        let region = endpoint.allocate_region(bytes, Protection::READ).expect("memory");
        send_key(&endpoint, other, region.key());
        while endpoint.wait_for_progress(None).is_ok() {}
    });
}

#[test]
fn owner_killed_before_it_answers_for_the_mapping() {
    kill_when_under_way(Test::new(test_name!(), 2), |group| {
        let (endpoint, other) = meet(group, None);
        if group.rank() == 1 {
            let region = endpoint.allocate_region(4096, Protection::READ).expect("memory");
            send_key(&endpoint, other, region.key());
            // It makes no progress any more.
            std::thread::sleep(LIMIT);
        }
        let key = receive_key(&endpoint, other);
        group.report("in flight");
        let begun = Instant::now();
        let error = endpoint.get(&key, 0, &mut [0; 64]).expect_err("nobody answers");
        let owner = endpoint.peer_id(other).expect("the peer is known");
        assert_eq!(error, OperationError::Peer(PeerError::Dead { id: owner }));
        assert!(begun.elapsed() < SOON);
        assert_eq!(endpoint.put(&key, 0, &[0; 64]).expect_err("it is dead"), error);
    });
}

#[test]
fn a_region_destroyed_in_the_middle_ends_the_copy() {
    let drive = |parent: &mut lmt_conformance::group::Parent| while parent.next_report(0).is_some() {};
    Test::new(test_name!(), 2).time_limit(LIMIT).run_with(drive, |group| {
        let (endpoint, other) = meet(group, None);
        let bytes = 16 << 20;
        if group.rank() == 1 {
            let region = endpoint.allocate_region(bytes, Protection::READ_WRITE).expect("memory");
            send_key(&endpoint, other, region.key());
            endpoint.receive(Source::Peer(other), TagMatch::exactly(2), &mut []).expect("the other lives");
            drop(region);
            return exchange(&endpoint, other);
        }
        let key = receive_key(&endpoint, other);
        let mut memory = vec![0; bytes];
        endpoint.get(&key, 0, &mut memory).expect("it is there");
        endpoint.send(other, 2, &[]).expect("the other lives");
        let begun = Instant::now();
        let error = loop {
            let copy = endpoint.get(&key, 0, &mut memory).and_then(|_| endpoint.put(&key, 0, &memory));
            if copy.is_err() {
                break error_of(copy);
            }
            assert!(begun.elapsed() < LIMIT / 2, "the end was never noticed");
        };
        assert_eq!(error, RegionError::NotRegistered);
        exchange(&endpoint, other);
    });
}

#[test]
fn tampered_keys_name_nothing() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let (endpoint, other) = meet(group, None);
        let mut memory = [3; 1000];
        if group.rank() == 0 {
            let shared = endpoint.allocate_region(1000, Protection::READ_WRITE).expect("memory");
            return endpoint.scope(|scope| {
                // SAFETY: the peer puts nothing before it exchanges messages.
                let region =
                    unsafe { scope.register_memory(&mut memory, Protection::READ_WRITE) }.expect("a region");
                send_key(&endpoint, other, region.key());
                send_key(&endpoint, other, shared.key());
                exchange(&endpoint, other);
            });
        }
        for key in [receive_key(&endpoint, other), receive_key(&endpoint, other)] {
            for bit in 0..RegionKey::BYTES * 8 {
                let mut bytes = key.to_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let tampered = RegionKey::from_bytes(bytes);
                assert_ne!(tampered, key);
                let result = endpoint.get(&tampered, 0, &mut memory[..8]);
                match result {
                    Err(OperationError::UnknownPeer) => assert_ne!(tampered.owner(), key.owner()),
                    other => assert_eq!(error_of(other), RegionError::NotRegistered, "bit {bit}"),
                }
            }
            let mut state = 1u64;
            for _ in 0..500 {
                let mut bytes = key.to_bytes();
                bytes[16..].iter_mut().for_each(|byte| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *byte = (state >> 56) as u8;
                });
                let result = endpoint.put(&RegionKey::from_bytes(bytes), 0, &memory[..8]);
                assert_eq!(error_of(result), RegionError::NotRegistered);
            }
        }
        exchange(&endpoint, other);
    });
}

/// Two peers race for each of many regions of single use; the owner counts.
#[test]
fn a_region_of_single_use_serves_one_of_two_peers() {
    const ROUNDS: usize = 200;
    Test::new(test_name!(), 3).time_limit(LIMIT).run(|group| {
        let endpoint = Endpoint::builder().id(group.id().member(group.rank())).build().expect("an endpoint");
        let peer = |rank| endpoint.insert_peer(&group.address(rank)).expect("room for a peer");
        if group.rank() > 0 {
            let owner = peer(0);
            exchange(&endpoint, owner);
            let mut into = [0; 5000];
            for round in 0..ROUNDS {
                let result = endpoint.get(&receive_key(&endpoint, owner), 0, &mut into);
                let served = match result {
                    Ok(status) => {
                        assert_eq!((status.bytes, into), (5000, [round as u8; 5000]));
                        1
                    }
                    error => {
                        assert_eq!(error_of(error), RegionError::UsedUp);
                        0
                    }
                };
                endpoint.send(owner, 3, &[served]).expect("the owner lives");
            }
            return;
        }
        let others = [peer(1), peer(2)];
        others.iter().for_each(|other| exchange(&endpoint, *other));
        let private = others.iter().all(|other| reaches_private_memory(&endpoint, *other));
        for round in 0..ROUNDS {
            let memory = [round as u8; 5000];
            endpoint.scope(|scope| {
                let (mut declared, mut allocated) = (None, None);
                let key = if private && round % 2 == 0 {
                    declared
                        .insert(scope.register_for_one_read(&[IoSlice::new(&memory)]))
                        .as_ref()
                        .map(Region::key)
                } else {
                    let made = endpoint.allocate_region(5000, Protection::READ.single_use());
                    let region = allocated.insert(made).as_ref();
                    region
                        .inspect(|r| r.write_at(0, &memory).expect("its owner writes it"))
                        .map(SharedRegion::key)
                };
                let key = *key.as_ref().expect("a region");
                others.iter().for_each(|other| send_key(&endpoint, *other, key));
                let mut served = 0;
                for other in others {
                    let mut one = [0];
                    let from = Source::Peer(other);
                    endpoint.receive(from, TagMatch::exactly(3), &mut one).expect("the peer lives");
                    served += one[0];
                }
                assert_eq!(served, 1, "round {round}");
            });
        }
    });
}

#[test]
fn a_forked_child_is_refused_and_harms_nothing() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let (endpoint, other) = meet(group, None);
        if group.rank() == 1 {
            let key = receive_key(&endpoint, other);
            let mut into = [0; 100];
            endpoint.get(&key, 0, &mut into).expect("the owner's child changed nothing");
            assert_eq!(into, [6; 100]);
            return exchange(&endpoint, other);
        }
        let region = endpoint.allocate_region(100, Protection::READ).expect("memory");
        region.write_at(0, &[6; 100]).expect("its owner writes it");
        // SAFETY: the child calls only the endpoint, which answers with errors
        // and takes no lock, and ends by _exit.
        match unsafe { nix::unistd::fork() }.expect("a child") {
            nix::unistd::ForkResult::Child => {
                let refused = [
                    region.write_at(0, &[1]),
                    region.read_at(0, &mut [1]),
                    endpoint.get(&region.key(), 0, &mut [1]).map(drop),
                    endpoint.allocate_region(10, Protection::READ).map(drop),
                ];
                drop(region);
                let all = refused.iter().all(|r| matches!(r, Err(OperationError::Forked)));
                // SAFETY: ends the child without running what belongs to the parent.
                unsafe { nix::libc::_exit(i32::from(!all)) };
            }
            nix::unistd::ForkResult::Parent { child } => {
                let ended = nix::sys::wait::waitpid(child, None).expect("the child ends");
                assert_eq!(ended, nix::sys::wait::WaitStatus::Exited(child, 0));
            }
        }
        send_key(&endpoint, other, region.key());
        exchange(&endpoint, other);
    });
}
