//! The inbox between real processes: floods, and senders killed at random
//! instants. The sending processes are this test program, started again.
#![cfg(not(loom))]

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lmt_core::queue::{Envelope, Geometry, InboxReceiver, InboxSender, Payload, SendError};

const CHILD: &str = "LMT_TEST_INBOX_SENDER";
/// Long against what a machine needs on which every core has other work too.
const TIME_LIMIT: Duration = Duration::from_secs(150);
/// The longest message with random content; where cells are longer, every
/// second message fills one with one byte.
const RANDOM_BYTES: usize = 1024;

/// A generator that both sides run (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Message `number` of sender `me`: its bytes depend on both.
fn content(me: u16, number: u64, cell_bytes: usize, target: &mut Vec<u8>) {
    target.clear();
    if cell_bytes > RANDOM_BYTES && number % 2 == 1 {
        target.resize(cell_bytes, number as u8);
        return;
    }
    let mut random = Random((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(me) << 7 | 1);
    let bytes = match random.next() % 4 {
        0 => random.next() as usize % (RANDOM_BYTES + 1),
        1 => random.next() as usize % 64,
        _ => random.next() as usize % 16,
    };
    while target.len() < bytes {
        target.extend_from_slice(&random.next().to_le_bytes());
    }
    target.truncate(bytes);
}

/// The sending process; in an ordinary run of the tests it has nothing to do.
#[test]
fn sending_process() {
    let Ok(arguments) = std::env::var(CHILD) else {
        return;
    };
    let parts: Vec<&str> = arguments.split(',').collect();
    let [path, me, count] = parts[..] else { panic!("arguments {arguments:?}") };
    let (me, count): (u16, u64) = (me.parse().unwrap(), count.parse().unwrap());
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut sender = InboxSender::attach(file.into(), me).unwrap();
    let mut bytes = Vec::new();
    for number in 0..count {
        content(me, number, sender.geometry().cell_bytes(), &mut bytes);
        let cut = bytes.len() / 2;
        let payload = || match number % 2 {
            0 => Payload::Bytes(&bytes),
            _ => Payload::Two(&bytes[..cut], &bytes[cut..]),
        };
        while let Err(error) = sender.send(Envelope { kind: 1, aux: me.into(), tag: number }, payload()) {
            assert!(matches!(error, SendError::Full { .. }));
            std::thread::yield_now();
        }
    }
}

/// Sending processes, killed when the test ends however it does.
struct Senders(Vec<Child>);

impl Drop for Senders {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill(); // It may have ended by itself.
            let _ = child.wait();
        }
    }
}

fn start(fd: &OwnedFd, me: u16, count: u64) -> Child {
    let path = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sending_process", "--nocapture"])
        .env(CHILD, format!("{path},{me},{count}"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn inbox(cells: u32, cell_bytes: usize, max_peers: u32) -> (InboxReceiver, OwnedFd) {
    InboxReceiver::create(Geometry::new(cells, cell_bytes as u32, max_peers).unwrap()).unwrap()
}

/// Takes a message and checks it against what its sender must have sent next.
fn take(receiver: &mut InboxReceiver, next: &mut [u64], expected: &mut Vec<u8>) -> Option<u16> {
    let cell_bytes = receiver.geometry().cell_bytes();
    let message = receiver.poll()?;
    let me = message.sender();
    let number = &mut next[usize::from(me)];
    assert_eq!((message.kind(), message.aux(), message.tag()), (1, me.into(), *number), "of sender {me}");
    if message.bytes() > RANDOM_BYTES {
        // A sample, so that the receiver is faster than its senders.
        let mut got = [0; 64];
        message.copy_to(&mut got);
        assert_eq!(got, [*number as u8; 64], "message {number} of sender {me}");
        assert_eq!((message.bytes(), *number % 2), (cell_bytes, 1));
    } else {
        content(me, *number, cell_bytes, expected);
        let mut got = [0; RANDOM_BYTES];
        let bytes = message.copy_to(&mut got);
        assert_eq!(&got[..bytes], &expected[..], "message {number} of sender {me}");
    }
    *number += 1;
    Some(me)
}

#[test]
fn four_processes_flood_one() {
    const COUNT: u64 = 200_000;
    let (mut receiver, fd) = inbox(32, RANDOM_BYTES, 4);
    let mut senders = Senders((0..4).map(|me| start(&fd, me, COUNT)).collect());
    let (mut next, mut expected) = (vec![0; 4], Vec::new());
    let deadline = Instant::now() + TIME_LIMIT;
    while next.iter().sum::<u64>() < 4 * COUNT {
        if take(&mut receiver, &mut next, &mut expected).is_none() {
            assert!(Instant::now() < deadline, "only {next:?} arrived");
            std::thread::yield_now();
        }
    }
    assert!(senders.0.iter_mut().all(|child| child.wait().unwrap().success()));
    assert!(receiver.poll().is_none());
    assert_eq!(receiver.malformed_messages(), 0);
}

/// Kills and buries a sender: what it had published arrives, and its number
/// is free again.
fn fail_peer(receiver: &mut InboxReceiver, child: &mut Child, me: u16, next: &mut [u64]) -> usize {
    child.kill().unwrap();
    child.wait().unwrap();
    let freed = receiver.release_dead(me);
    let mut expected = Vec::new();
    for _ in 0..10_000 {
        if !receiver.holds_messages_of(me) {
            next[usize::from(me)] = 0;
            return freed;
        }
        take(receiver, next, &mut expected);
    }
    panic!("a dead sender's messages never end");
}

#[test]
fn killed_senders_stop_nobody_and_leave_no_slot_behind() {
    const VICTIMS: u16 = 3;
    const KILLS: usize = 150;
    // Where many programs want the cores, this many do after this long.
    const MIN_KILLS: usize = 40;
    const LONG_ENOUGH: Duration = Duration::from_secs(60);
    const CELLS: u32 = 16;
    // Two laps: past whatever a victim has left in the ring. Not more, since
    // on a busy machine each turn of the processes moves a ring's worth.
    const BETWEEN_KILLS: u64 = 2 * CELLS as u64;
    // Long copies between claim and publish, so that many die there, also
    // where they mostly wait for a core.
    const CELL_BYTES: usize = 1 << 20;
    let (mut receiver, fd) = inbox(CELLS, CELL_BYTES, u32::from(VICTIMS) + 1);
    let survivor = usize::from(VICTIMS);
    let mut senders = Senders((0..=VICTIMS).map(|me| start(&fd, me, u64::MAX)).collect());
    let (mut next, mut expected) = (vec![0; survivor + 1], Vec::new());
    let mut random = Random(0xC0FFEE);
    let mut freed = 0;
    let begun = Instant::now();
    let deadline = begun + TIME_LIMIT;
    let mut kills = 0;
    while kills < KILLS && !(kills >= MIN_KILLS && begun.elapsed() > LONG_ENOUGH) {
        kills += 1;
        let kill_at = Instant::now() + Duration::from_micros(random.next() % 30_000);
        let survivor_goal = next[survivor] + BETWEEN_KILLS;
        while Instant::now() < kill_at || next[survivor] < survivor_goal {
            if take(&mut receiver, &mut next, &mut expected).is_none() {
                assert!(Instant::now() < deadline, "the survivor is blocked: {next:?} arrived");
                std::thread::yield_now();
            }
        }
        // With room in the ring senders copy; without, they only wait for it.
        for _ in 0..CELLS {
            take(&mut receiver, &mut next, &mut expected);
        }
        std::thread::sleep(Duration::from_micros(random.next() % 1000));
        let victim = (random.next() % u64::from(VICTIMS)) as u16;
        let child = &mut senders.0[usize::from(victim)];
        freed += fail_peer(&mut receiver, child, victim, &mut next);
        *child = start(&fd, victim, u64::MAX);
    }
    if freed == 0 {
        assert!(begun.elapsed() > LONG_ENOUGH, "no sender died between claim and publish in {kills} kills");
        eprintln!("SKIPPED slots left behind: on this busy machine no sender died while it copied");
    }
    eprintln!("{kills} kills left {freed} claimed slots behind; the survivor sent {}", next[survivor]);
    for me in 0..=VICTIMS {
        fail_peer(&mut receiver, &mut senders.0[usize::from(me)], me, &mut next);
    }
    while take(&mut receiver, &mut next, &mut expected).is_some() {}
    assert_eq!(receiver.malformed_messages(), 0);
    check_whole_ring(&mut receiver, &fd, CELLS);
}

/// Every slot takes a message: after one lap in which stuck slots come back.
fn check_whole_ring(receiver: &mut InboxReceiver, fd: &OwnedFd, cells: u32) {
    let mut sender = InboxSender::attach(fd.try_clone().unwrap(), 0).unwrap();
    let mut send = || sender.send(Envelope::default(), Payload::Bytes(&[])).is_ok();
    for _ in 0..cells {
        assert!(send());
        assert!(!receiver.prepare_sleep() && receiver.poll().is_some());
    }
    assert!(receiver.prepare_sleep(), "nothing is left");
    assert_eq!((0..=cells).take_while(|_| send()).count(), cells as usize);
}
