//! A peer that is killed: what names it ends with an error, within a second.
#![allow(unsafe_code)] // Calls C functions.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::time::{Duration, Instant};

use lmt_fi::abi::{Errno, flags};

use crate::harness::{Side, context, free, getinfo, open_domain, open_side};

/// Has this binary be the victim, which runs until it is killed or its input ends.
const VICTIM: &str = "LMT_FI_TEST_VICTIM";
const TIME_LIMIT: Duration = Duration::from_secs(20);

fn open() -> Side {
    let info = getinfo(|_| {}).expect("an offer");
    let (_, domain) = open_domain(info);
    let side = open_side(domain, info, 0);
    free(info);
    side
}

/// The other process: says its name, and sends one message to whom it is told.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let mut side = open();
    let name: String = side.name().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("name {name}");
    std::io::stdout().flush().expect("a pipe");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a pipe");
    let bytes: Vec<u8> = (0..line.trim().len() / 2)
        .map(|at| u8::from_str_radix(&line[2 * at..][..2], 16).expect("digits"))
        .collect();
    side.peer = side.insert(&bytes);
    // SAFETY: an endpoint, and bytes for the call.
    let sent = unsafe { ((*(*side.ep).tagged).inject)(side.ep, b"x".as_ptr().cast(), 1, side.peer, 1) };
    assert_eq!(sent, 0);
    let start = Instant::now();
    while start.elapsed() < TIME_LIMIT {
        let _progress = side.read();
    }
}

/// Ends the victim whatever becomes of the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn operations_with_a_killed_peer_end_within_a_second() {
    let mut side = open();
    let child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["death::victim", "--exact", "--nocapture"])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut victim = Killed(child.expect("a process"));
    let lines = BufReader::new(victim.0.stdout.take().expect("a pipe")).lines();
    let name = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("name ").map(|(_, name)| name.to_owned()))
        .expect("the victim says its name");
    let bytes: Vec<u8> =
        (0..name.len() / 2).map(|at| u8::from_str_radix(&name[2 * at..][..2], 16).expect("digits")).collect();
    side.peer = side.insert(&bytes);
    let own: String = side.name().iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(victim.0.stdin.take().expect("a pipe"), "{own}").expect("a pipe");
    // One message tells that both are connected.
    let mut into = [0_u8; 1];
    let receive = |into: &mut [u8], number| {
        let (address, bytes) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: an endpoint, and memory that is kept until it is received.
        unsafe {
            let tagged = &*(*side.ep).tagged;
            (tagged.recv)(side.ep, address, bytes, ptr::null_mut(), side.peer, 1, 0, context(number))
        }
    };
    assert_eq!(receive(&mut into, 1), 0);
    assert_eq!(poll(&side, TIME_LIMIT), Ok(context(1)));
    // Two that never end: a receive, and a send that nobody receives.
    let long = vec![0_u8; 4 << 20];
    assert_eq!(receive(&mut into, 2), 0);
    // SAFETY: an endpoint, and memory that is kept until it is sent.
    let sent = unsafe {
        let tagged = &*(*side.ep).tagged;
        (tagged.send)(side.ep, long.as_ptr().cast(), long.len(), ptr::null_mut(), side.peer, 9, context(3))
    };
    assert_eq!(sent, 0);
    victim.0.kill().expect("it lives");
    let mut ended = [poll(&side, Duration::from_secs(1)), poll(&side, Duration::from_secs(1))];
    ended.sort_unstable_by_key(|end| format!("{end:?}"));
    let reset = |number, flags| Err(Some((context(number), Errno::CONNRESET.0, flags)));
    assert!(ended.contains(&reset(2, flags::TAGGED | flags::RECV)), "{ended:?}");
    assert!(ended.contains(&reset(3, flags::TAGGED | flags::SEND)), "{ended:?}");
}

type Failed = Option<(*mut std::ffi::c_void, i32, u64)>;

/// The next completion's context, or its failure, or nothing in time.
fn poll(side: &Side, limit: Duration) -> Result<*mut std::ffi::c_void, Failed> {
    let start = Instant::now();
    while start.elapsed() < limit {
        match side.read() {
            Ok((entry, _)) => return Ok(entry.op_context),
            Err(error) if error == Errno::AVAIL.returned() => {
                let entry = side.read_error();
                return Err(Some((entry.op_context, entry.err, entry.flags)));
            }
            Err(_) => {}
        }
    }
    Err(None)
}
