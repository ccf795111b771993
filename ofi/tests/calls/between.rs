//! Atomic operations, reads and writes between processes.
#![allow(unsafe_code)] // Calls C functions.

use std::time::{Duration, Instant};

use lmt_fi::abi::{Errno, flags};

use crate::atomics::{READ, SUM, UINT64, key_of};
use crate::harness::{Pair, Side, close, pair};
use crate::others::{Other, TIME_LIMIT, from_text, has_role, hear, introduce, open, to_text};
use crate::remote::register;

const ADDERS: usize = 3;
/// How often each adds 1, at most: where there are more busy processes than cores, each
/// time may take a slice of the scheduler, and it ends after `ADDING_FOR`.
const TIMES: usize = 2000;
const ADDING_FOR: Duration = Duration::from_secs(2);
/// And at least so often, or nothing is seen.
const LEAST: usize = 10;
/// What is read and written where nothing reaches the other's memory.
const LONG_BYTES: usize = 1_000_003;

fn end_of(side: &Side) -> Result<(), i32> {
    let start = Instant::now();
    while start.elapsed() < TIME_LIMIT {
        match side.read() {
            Ok(_) => return Ok(()),
            Err(error) if error == Errno::AVAIL.returned() => return Err(side.read_error().err),
            Err(_) => {}
        }
    }
    panic!("nothing ended in time");
}

/// Inserts the name that is said first; gives the key that is said second.
fn meet(side: &mut Side) -> u64 {
    let words = introduce(side);
    let bytes = from_text(&words[0]);
    side.peer = side.insert(&bytes);
    words[1].parse().expect("a key")
}

/// Another process: adds to a word, and looks whether the numbers grow.
#[test]
fn adder() {
    if !has_role("between::adder") {
        return;
    }
    let mut side = open();
    let key = meet(&mut side);
    let (start, mut times, mut last) = (Instant::now(), 0, None);
    while times < TIMES && start.elapsed() < ADDING_FOR {
        let mut old = [0_u64];
        assert_eq!(side.fetch(&[1_u64], &mut old, 8, key, UINT64, SUM), 0);
        assert_eq!(end_of(&side), Ok(()));
        assert!(last.is_none_or(|last| last < old[0]));
        last = Some(old[0]);
        times += 1;
    }
    println!("says {times}");
    hear();
}

fn start(role: &str, variables: &[(&str, &str)], pair: &Pair, key: u64) -> Other {
    let mut other = Other::start(role, variables);
    other.tell(&format!("{} {key}", to_text(&pair.one.name())));
    other
}

/// Makes progress until each of them has said something, and gives what.
fn serve(side: &Side, others: &[Other], mut meanwhile: impl FnMut()) -> Vec<String> {
    let start = Instant::now();
    let mut said = Vec::new();
    while said.len() < others.len() {
        said.extend(others[said.len()].says.try_recv());
        let _progress = side.read();
        meanwhile();
        assert!(start.elapsed() < TIME_LIMIT, "{} of {} are done", said.len(), others.len());
    }
    said
}

#[test]
fn processes_that_add_to_one_word_lose_nothing() {
    let mut pair = pair();
    let mut memory = [0_u8; 24];
    let mr = register(pair.domain, &mut memory, flags::REMOTE_READ | flags::REMOTE_WRITE);
    let others: Vec<Other> = (0..ADDERS).map(|_| start("between::adder", &[], &pair, key_of(mr))).collect();
    // The owner adds, too, by both of its endpoints, which its own queue tells of.
    pair.one.peer = pair.one.own;
    let (mut own, mut neighbour) = (0, 0);
    let said = serve(&pair.one, &others, || {
        for (side, times) in [(&pair.one, &mut own), (&pair.two, &mut neighbour)] {
            if *times < TIMES && side.atomic(&[1_u64], 8, key_of(mr), UINT64, SUM) == 0 {
                *times += 1;
            }
            let _progress = side.read();
        }
    });
    let start = Instant::now();
    let sum = |memory: &[u8; 24]| u64::from_ne_bytes(memory[8..16].try_into().expect("8 bytes"));
    let theirs: Vec<usize> = said.iter().map(|times| times.parse().expect("a number")).collect();
    assert!(theirs.iter().all(|times| *times >= LEAST), "each adds beside the others: {theirs:?}");
    let expected = (theirs.iter().sum::<usize>() + own + neighbour) as u64;
    while sum(&memory) != expected && start.elapsed() < TIME_LIMIT {
        let _progress = (pair.one.read(), pair.two.read());
    }
    assert_eq!(close(mr), 0);
    assert_eq!(sum(&memory), expected);
    assert!(memory[..8].iter().chain(&memory[16..]).all(|byte| *byte == 0));
}

/// Another process, of which nothing may copy out of or into others: writes, reads
/// back, and tells of a write.
#[test]
fn confined() {
    if !has_role("between::confined") {
        return;
    }
    let mut side = open();
    let key = meet(&mut side);
    let from: Vec<u8> = (0..LONG_BYTES).map(|at| (at % 251) as u8).collect();
    assert_eq!(side.rma_write(&from, 5, key), 0);
    assert_eq!(end_of(&side), Ok(()));
    let mut into = vec![0; LONG_BYTES];
    assert_eq!(side.rma_read(&mut into, 5, key), 0);
    assert_eq!(end_of(&side), Ok(()));
    assert!(into == from);
    assert_eq!((side.rma_write(&[], 0, key), end_of(&side)), (0, Ok(())));
    for (bytes, key, error) in [(&from[..], key, Errno::INVAL), (&from[..1], key + 1, Errno::NOKEY)] {
        assert_eq!(side.rma_write(bytes, 6, key), 0);
        assert_eq!(end_of(&side), Err(error.0));
    }
    // SAFETY: an endpoint, and bytes for the call.
    let told =
        unsafe { ((*(*side.ep).rma).injectdata)(side.ep, from.as_ptr().cast(), 3, 77, side.peer, 0, key) };
    assert_eq!(told, 0);
    // It is served when the other says so; the next is served after it.
    let mut old = [0_u64];
    assert_eq!(side.fetch(&[], &mut old, 8, key, UINT64, READ), 0);
    assert_eq!(end_of(&side), Ok(()));
    println!("says done");
    hear();
}

#[test]
fn memory_that_nothing_reaches_is_read_and_written_by_messages() {
    let pair = pair();
    let mut memory = vec![0xff_u8; LONG_BYTES + 5];
    let mr = register(pair.domain, &mut memory, flags::REMOTE_READ | flags::REMOTE_WRITE);
    // It uses shared memory only, and no single copy.
    let variables = [("LMT_MECHANISM", "shm")];
    let others = [start("between::confined", &variables, &pair, key_of(mr))];
    let start = Instant::now();
    let told = loop {
        if let Ok((entry, _)) = pair.one.read() {
            break entry;
        }
        assert!(start.elapsed() < TIME_LIMIT, "the write is told of");
    };
    let expected = flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA;
    assert_eq!((told.flags, told.data, told.len), (expected, 77, 3));
    assert_eq!(serve(&pair.one, &others, || {}), ["done"]);
    assert_eq!(close(mr), 0);
    assert_eq!(memory[..5], [0, 1, 2, 0xff, 0xff]);
    assert!(memory[5..].iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
}

/// Another process, which answers one operation and none after it.
#[test]
fn silent() {
    if !has_role("between::silent") {
        return;
    }
    let side = open();
    introduce(&side);
    let start = Instant::now();
    // It is asked, and may be connected, but does nothing for who asks.
    while start.elapsed() < Duration::from_millis(300) {
        let _progress = side.read();
    }
    println!("says done");
    hear();
}

#[test]
fn an_operation_that_a_killed_peer_was_asked_for_ends_within_a_second() {
    let mut pair = pair();
    let mut other = Other::start("between::silent", &[]);
    pair.one.peer = pair.one.insert(&other.name);
    other.tell("go on");
    let mut old = [0_u64];
    assert_eq!(pair.one.fetch(&[1_u64], &mut old, 0, 1 << 20, UINT64, SUM), 0);
    assert_eq!(end_of(&pair.one), Err(Errno::NOKEY.0), "it answers that there is no such memory");
    assert_eq!(other.says.recv_timeout(TIME_LIMIT).as_deref(), Ok("done"));
    let asked = pair.one.fetch(&[1_u64], &mut old, 0, 1 << 20, UINT64, SUM);
    assert_eq!((asked, pair.one.read().err()), (0, Some(Errno::AGAIN.returned())));
    other.kill();
    let killed = Instant::now();
    assert_eq!(end_of(&pair.one), Err(Errno::CONNRESET.0));
    assert!(killed.elapsed() < Duration::from_secs(1));
    assert_eq!(pair.one.fetch(&[1_u64], &mut old, 0, 1, UINT64, SUM), Errno::CONNRESET.returned());
}
