//! What is special about pipes, between real processes.
#![cfg(not(loom))]
#![allow(missing_docs)]

use std::fs::File;
use std::time::{Duration, Instant};

use lmt::Endpoint;
use lmt_conformance::group::{Group, Test};
use lmt_conformance::{require, test_name};
use lmt_core::config::Config;
use lmt_core::endpoint::{Engine, OperationError, PeerId, Source, TagMatch};
use lmt_core::error::PeerError;
use lmt_core::mechanism::Mechanisms;
use lmt_vmsplice::{Vmsplice, Writev};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Tag of the messages without bytes.
const WORD: u64 = u64::MAX;

/// One rank's endpoint, connected with rank 0, or rank 0's with all others.
struct Link {
    endpoint: Endpoint,
    peers: Vec<PeerId>,
    rank: u32,
}

impl Link {
    fn open(group: &Group, names: &[&str]) -> Self {
        let mut mechanisms = Mechanisms::new();
        mechanisms.register(Vmsplice::new());
        mechanisms.register(Writev::new());
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        mechanisms.restrict(&names);
        // Steps so small that a message takes many.
        let config = Config {
            eager_max_bytes: 0,
            quota_bytes: 1 << 16,
            socket_dir: group.launch().socket_dir().map(Into::into),
            ..Config::default()
        };
        let engine = Engine::new(group.id().member(group.rank()), config, mechanisms).expect("an endpoint");
        let endpoint = Endpoint::from_engine(engine);
        let insert = |rank| endpoint.insert_peer(&group.address(rank)).expect("there is room");
        let link = Self { peers: (0..group.size()).map(insert).collect(), endpoint, rank: group.rank() };
        for rank in if link.rank == 0 { 1..group.size() } else { 0..1 } {
            link.meet(rank);
        }
        link
    }

    fn peer(&self, rank: u32) -> PeerId {
        self.peers[rank as usize]
    }

    /// Waits, making progress, until rank `other` is here too.
    fn meet(&self, other: u32) {
        self.endpoint.send(self.peer(other), WORD, &[]).expect("the peer is there");
        let source = Source::Peer(self.peer(other));
        self.endpoint.receive(source, TagMatch::exactly(WORD), &mut []).expect("the peer is there");
    }

    fn receive(&self, from: u32, tag: u64, into: &mut [u8]) -> Result<u64, OperationError> {
        let source = Source::Peer(self.peer(from));
        self.endpoint.receive(source, TagMatch::exactly(tag), into).map(|status| status.bytes)
    }

    fn send(&self, to: u32, tag: u64, bytes: &[u8]) -> Result<u64, OperationError> {
        self.endpoint.send(self.peer(to), tag, bytes).map(|status| status.bytes)
    }

    /// Rank 0 sends one message to rank 1, which checks it.
    fn deliver(&self, tag: u64, bytes: usize) {
        if self.rank == 0 {
            assert_eq!(self.send(1, tag, &pattern(tag, bytes)), Ok(bytes as u64));
        } else {
            let mut found = vec![0; bytes];
            assert_eq!(self.receive(0, tag, &mut found), Ok(bytes as u64));
            assert!(found == pattern(tag, bytes), "message {tag} is not as it was sent");
        }
    }

    /// Messages that mechanism `name` has carried with rank `other`.
    fn carried(&self, other: u32, name: &str) -> u64 {
        let counters = self.endpoint.counters(self.peer(other));
        counters.into_iter().find(|(of, _)| *of == name).map_or(0, |(_, counters)| counters.messages)
    }
}

fn pattern(tag: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| ((at ^ tag << 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

/// A sender that writes its memory in the moment in which the send completes
/// does not change what the receiver gets, however slow that is.
#[test]
fn memory_may_be_written_as_soon_as_the_send_is_complete() {
    for name in ["vmsplice", "writev"] {
        Test::new(test_name!(), 2).run(|group| {
            let link = Link::open(group, &[name]);
            for round in 0..40 {
                let bytes = 1_500_000 + 4321 * round as usize;
                if link.rank == 0 {
                    let mut memory = pattern(round, bytes);
                    link.send(1, round, &memory).expect("it arrives");
                    memory.fill(0xee);
                    continue;
                }
                let mut found = vec![0; bytes];
                link.endpoint.scope(|scope| {
                    let receive =
                        scope.receive(Source::Peer(link.peer(0)), TagMatch::exactly(round), &mut found);
                    let mut receive = receive.expect("posts");
                    while let Err(again) = receive.test() {
                        receive = again;
                        // The sender fills the pipe meanwhile.
                        std::thread::sleep(Duration::from_micros(200));
                    }
                });
                assert!(found == pattern(round, bytes), "round {round}");
            }
            assert_eq!(link.carried(1 - link.rank, name), 40);
            group.barrier();
        });
    }
}

/// Makes SIGPIPE end the process, as it does outside of Rust programs.
#[allow(unsafe_code)]
fn sigpipe_kills() {
    // SAFETY: no handler is installed that could run.
    let was = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    assert_ne!(was, libc::SIG_ERR);
}

/// The receiver is killed while the pipe is full: the send ends in an error
/// that names it, no signal comes, and others are served.
#[test]
fn a_reader_that_dies_at_a_full_pipe_is_an_error_and_no_signal() {
    for name in ["vmsplice", "writev"] {
        Test::new(test_name!(), 3).may_die(1).run(|group| {
            sigpipe_kills();
            let link = Link::open(group, &[name]);
            match link.rank {
                0 => {
                    let result = link.send(1, 1, &pattern(1, 16 << 20));
                    let dead = group.id().member(1);
                    assert!(
                        matches!(&result, Err(OperationError::Peer(PeerError::Dead { id })) if *id == dead),
                        "{result:?}"
                    );
                    assert_eq!(link.send(2, 2, &pattern(2, 5 << 20)), Ok(5 << 20));
                }
                1 => {
                    let mut found = vec![0; 16 << 20];
                    link.endpoint.scope(|scope| {
                        let source = Source::Peer(link.peer(0));
                        let mut receive =
                            scope.receive(source, TagMatch::exactly(1), &mut found).expect("posts");
                        let counted = || link.endpoint.counters(link.peer(0))[0].1.bytes;
                        while counted() < 2 << 20 {
                            receive = receive.test().expect_err("it is longer");
                        }
                        // The sender fills the pipe and finds it full.
                        std::thread::sleep(Duration::from_millis(50));
                        nix::sys::signal::raise(nix::sys::signal::SIGKILL).expect("dies");
                        let _never = receive.cancel();
                    });
                }
                _ => {
                    let mut found = vec![0; 5 << 20];
                    assert_eq!(link.receive(0, 2, &mut found), Ok(5 << 20));
                    assert!(found == pattern(2, 5 << 20));
                }
            }
            group.barrier();
        });
    }
}

/// Takes every descriptor that this process may have, and gives back the old
/// limit.
fn use_descriptors_up() -> (Vec<File>, u64) {
    let (was, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("getrlimit");
    let highest = std::fs::read_dir("/proc/self/fd").expect("proc").count() as u64;
    setrlimit(Resource::RLIMIT_NOFILE, highest + 64, hard).expect("lowering is allowed");
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    (files, was)
}

/// A receiver without a free descriptor fails the message, on both sides and
/// at once, and gets the next one when it has descriptors again.
#[test]
fn a_receiver_short_of_descriptors_fails_the_message_and_recovers() {
    Test::new(test_name!(), 2).run(|group| {
        let link = Link::open(group, &["vmsplice"]);
        let other = 1 - link.rank;
        let held = (link.rank == 1).then(use_descriptors_up);
        link.meet(other);
        let begun = Instant::now();
        let result = match link.rank {
            0 => link.send(1, 1, &pattern(1, 100_000)),
            _ => link.receive(0, 1, &mut vec![0; 100_000]),
        };
        let Err(OperationError::Peer(error @ PeerError::NoMechanism { .. })) = result else {
            panic!("without its pipe the message ended in {result:?}");
        };
        let sentence = error.to_string();
        assert!(sentence.contains("EMFILE") || sentence.contains("descriptor"), "{sentence}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        if let Some((files, was)) = held {
            drop(files);
            let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("getrlimit");
            setrlimit(Resource::RLIMIT_NOFILE, was, hard).expect("as it was");
        }
        link.meet(other);
        link.deliver(2, 3_000_000);
        assert_eq!(link.carried(other, "vmsplice"), 1);
        group.barrier();
    });
}

/// A sender without a free descriptor goes to the next mechanism, if that needs
/// none: here both need one, so the send fails and names the limit.
#[test]
fn a_sender_short_of_descriptors_says_so_and_recovers() {
    Test::new(test_name!(), 2).run(|group| {
        let link = Link::open(group, &["vmsplice", "writev"]);
        let other = 1 - link.rank;
        let held = (link.rank == 0).then(use_descriptors_up);
        link.meet(other);
        let result = match link.rank {
            0 => link.send(1, 1, &pattern(1, 100_000)),
            _ => link.receive(0, 1, &mut vec![0; 100_000]),
        };
        assert!(
            matches!(&result, Err(OperationError::Peer(PeerError::NoMechanism { .. }))),
            "without a pipe the message ended in {result:?}"
        );
        if link.rank == 0 {
            let sentence = result.expect_err("as above").to_string();
            assert!(sentence.contains("ulimit -n"), "{sentence}");
        }
        if let Some((files, was)) = held {
            drop(files);
            let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("getrlimit");
            setrlimit(Resource::RLIMIT_NOFILE, was, hard).expect("as it was");
        }
        link.meet(other);
        link.deliver(2, 3_000_000);
        group.barrier();
    });
}

/// A user of this machine that nobody else is, whose share of pipe memory can
/// be used up without harm to others.
const NOBODY_ELSE: u32 = 54_321;

/// Takes all the memory for pipes that this user may have; gives why not.
fn use_pipe_memory_up() -> Result<Vec<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)>, String> {
    let soft = std::fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").map_err(|e| e.to_string())?;
    let most_pages: usize = soft.trim().parse().map_err(|_| format!("pipe-user-pages-soft is {soft}"))?;
    if most_pages == 0 {
        return Err("pipe-user-pages-soft is 0: there is no limit".to_owned());
    }
    let size = |pipe: &std::os::fd::OwnedFd| fcntl(pipe, FcntlArg::F_GETPIPE_SZ).expect("a pipe");
    let mut pipes = Vec::new();
    for _ in 0..most_pages {
        let pipe = nix::unistd::pipe().map_err(|errno| format!("pipe: {errno}"))?;
        let born_bytes = size(&pipe.1);
        let grown = fcntl(&pipe.1, FcntlArg::F_SETPIPE_SZ(1 << 20));
        pipes.push(pipe);
        // Born with two pages: the share is used up (pipe(7)).
        if grown.is_err() && born_bytes <= 8192 {
            return Ok(pipes);
        }
    }
    Err("the limit of pipe memory is not felt".to_owned())
}

/// When the user's pipes may take no more memory, smaller ones do.
#[test]
fn pipes_of_two_pages_do_when_the_user_may_have_no_more() {
    const SKIP: &str = "skip: ";
    let results = Test::new(test_name!(), 2).run(|group| {
        let id = nix::unistd::Uid::from_raw(NOBODY_ELSE);
        if let Err(errno) = nix::unistd::setresuid(id, id, id) {
            group.report(format_args!("{SKIP}another user's pipes need root ({errno})"));
            return;
        }
        let held = if group.rank() == 0 { use_pipe_memory_up() } else { Ok(Vec::new()) };
        if let Err(why) = &held {
            group.report(format_args!("{SKIP}{why}"));
        }
        group.barrier();
        let link = Link::open(group, &["vmsplice", "writev"]);
        for (tag, bytes) in [1, 4096, 8193, 1_000_000, 3_000_001].into_iter().enumerate() {
            link.deliver(tag as u64, bytes);
        }
        assert_eq!(link.carried(1 - link.rank, "vmsplice"), 5);
        group.barrier();
    });
    if let Some(why) = results.reports.iter().flatten().find_map(|line| line.strip_prefix(SKIP)) {
        require::skipped("vmsplice", why);
    }
}

/// Makes the kernel refuse vmsplice to this thread from now on.
#[allow(unsafe_code)]
fn forbid_vmsplice() -> bool {
    let code = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_vmsplice as u32, 0, 1),
        code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: prctl with numbers only.
    let quiet = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its filter live across the call, which copies
    // them.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    quiet == 0 && set == 0
}

/// A filter that comes in the middle demotes for good; one that was there
/// before makes the mechanism unavailable, and says why.
#[test]
fn where_vmsplice_is_forbidden_the_next_mechanism_takes_over() {
    for from_the_beginning in [true, false] {
        let results = Test::new(test_name!(), 2).run(|group| {
            if from_the_beginning && !forbid_vmsplice() {
                group.report("skip");
                return;
            }
            let link = Link::open(group, &["vmsplice", "writev"]);
            let other = 1 - link.rank;
            if !from_the_beginning {
                link.deliver(1, 1_000_000);
                assert_eq!(link.carried(other, "vmsplice"), 1);
                if !forbid_vmsplice() {
                    group.report("skip");
                    return;
                }
            }
            for tag in 2..6 {
                link.deliver(tag, 1_000_000);
            }
            assert_eq!(link.carried(other, "writev"), 4);
            let mechanism_status = link.endpoint.mechanism_status(link.peer(other));
            let reason = mechanism_status
                .into_iter()
                .find(|(name, _)| *name == "vmsplice")
                .and_then(|(_, s)| s.reason);
            if from_the_beginning {
                let reason = reason.expect("it is not there");
                assert_eq!(reason.errno, libc::EPERM);
                assert!(reason.sentence.contains("seccomp"), "{reason}");
            } else if link.rank == 0 {
                assert!(reason.is_some(), "it is not tried for every message");
            }
            group.barrier();
        });
        if results.reports.iter().flatten().any(|line| line == "skip") {
            require::skipped("vmsplice", "seccomp filters cannot be set here");
        }
    }
}

/// Messages that are matched backwards, some of them taken back, come whole.
#[test]
fn messages_matched_backwards_and_taken_back_do_not_stall_the_rest() {
    for name in ["vmsplice", "writev"] {
        Test::new(test_name!(), 2).run(|group| {
            let link = Link::open(group, &[name]);
            const MESSAGES: u64 = 24;
            let bytes_of = |tag: u64| 50_000 + 60_000 * tag as usize;
            let taken_back = |tag: u64| tag % 3 == 1;
            if link.rank == 0 {
                let memory: Vec<_> = (0..MESSAGES).map(|tag| pattern(tag, bytes_of(tag))).collect();
                link.endpoint.scope(|scope| {
                    let peer = link.peer(1);
                    let mut kept = Vec::new();
                    let mut doomed = Vec::new();
                    for (tag, bytes) in (0..).zip(&memory) {
                        let send = scope.send(peer, tag, bytes).expect("sends");
                        if taken_back(tag) { doomed.push(send) } else { kept.push(send) }
                    }
                    for send in doomed {
                        assert_eq!(send.cancel(), Err(OperationError::Cancelled));
                    }
                    link.meet(1);
                    assert!(scope.wait_all(kept).iter().all(Result::is_ok));
                });
            } else {
                link.meet(0);
                for tag in (0..MESSAGES).rev().filter(|tag| !taken_back(*tag)) {
                    let mut found = vec![0; bytes_of(tag)];
                    assert_eq!(link.receive(0, tag, &mut found), Ok(found.len() as u64));
                    assert!(found == pattern(tag, found.len()), "message {tag}");
                }
            }
            group.barrier();
        });
    }
}
