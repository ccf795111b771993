//! What the tests of several processes share.
#![allow(dead_code)] // Each test uses a part.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lmt::{Config, Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::require;

/// The time limit of most tests; they take far less on an idle machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Variables by which the user of this machine may have set something.
pub const OF_THE_USER: [&str; 8] = [
    "LMT_CONFIG",
    "LMT_MECHANISM",
    "LMT_EAGER_MAX",
    "LMT_INBOX_EAGER_MAX",
    "LMT_MAX_READERS",
    "LMT_DMA_MIN",
    "LMT_SINGLE_COPY",
    "LMT_STATS",
];

/// A group that sees no configuration but this folder's: neither the files nor
/// the variables of whoever runs the tests.
pub fn configured_by(folder: &Path, test: Test) -> Test {
    // An empty variable is as one that is not set.
    let test = OF_THE_USER.iter().fold(test, |test, variable| test.env(variable, ""));
    // The built-in order of one kind of machine, whichever this is.
    let test = test.env("LMT_SINGLE_COPY", "slow");
    test.env("XDG_CONFIG_HOME", folder.to_str().expect("a plain path"))
}

/// A folder of this test's own.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("configured").join(test.replace("::", "-"));
    std::fs::create_dir_all(&folder).expect("the folder of the tests can be written");
    folder
}

/// Writes a file, unless that is what it holds. The parent does and so does every
/// rank, one of which may be denied it; it is put in its place in one step.
pub fn write(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return;
    }
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    let part = path.with_extension(format!("part-{}", std::process::id()));
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path)).expect("it can be written");
}

/// An endpoint under this rank's address, and its peers by rank (itself among
/// them).
pub fn join(group: &Group, change: impl FnOnce(&mut Config) + 'static) -> (Endpoint, Vec<PeerId>) {
    let builder = Endpoint::builder().id(group.id().member(group.rank())).configure(change);
    let endpoint = builder.build().expect("an endpoint can be made");
    let peers = (0..group.size()).map(|r| endpoint.insert_peer(&group.address(r)).expect("a peer")).collect();
    (endpoint, peers)
}

pub fn join_plain(group: &Group) -> (Endpoint, Vec<PeerId>) {
    join(group, |_| {})
}

/// The byte at `index` of message `seed`: depends on both.
pub fn byte(seed: u64, index: usize) -> u8 {
    let mixed =
        (seed ^ (index as u64 / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> (8 * (index % 8))) as u8 ^ (mixed >> 59) as u8
}

pub fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| byte(seed, i)).collect()
}

/// # Panics
/// With the first byte that differs.
pub fn check(seed: u64, data: &[u8]) {
    if let Some(at) = data.iter().enumerate().position(|(i, b)| *b != byte(seed, i)) {
        panic!(
            "byte {at} of {} of message {seed} is {:#x} instead of {:#x}",
            data.len(),
            data[at],
            byte(seed, at)
        );
    }
}

/// Receives a message of just this length from a rank and checks it.
pub fn receive_and_check(endpoint: &Endpoint, from: PeerId, tag: u64, seed: u64, bytes: usize) {
    let mut into = vec![0xa5; bytes];
    let status = endpoint.receive(Source::Peer(from), TagMatch::exactly(tag), &mut into).expect("a message");
    assert_eq!((status.bytes, status.tag, status.peer), (bytes as u64, tag, from));
    check(seed, &into);
}

/// Says that a test was skipped, for want of `what`, if a rank has reported `skip: ` and why.
pub fn skip_if_told(what: &str, reports: &[Vec<String>]) {
    if let Some(why) = reports.iter().flatten().find_map(|line| line.strip_prefix("skip: ")) {
        require::skipped(what, why);
    }
}

/// What one of two ranks has found, which the other is to know, too: who has none waits
/// for the other's.
pub fn verdict(endpoint: &Endpoint, peer: PeerId, found: Option<bool>) -> bool {
    // Messages without bytes, whose tags' last bit it is.
    const VERDICT: TagMatch = TagMatch { tag: 1 << 20, ignore: 1 };
    match found {
        Some(found) => {
            endpoint.send(peer, VERDICT.tag + u64::from(found), &[]).expect("the peer is there");
            found
        }
        None => {
            let status = endpoint.receive(Source::Peer(peer), VERDICT, &mut []);
            status.expect("the peer is there").tag != VERDICT.tag
        }
    }
}

/// Makes progress for a while.
pub fn idle(endpoint: &Endpoint, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        endpoint.progress().expect("no fork here");
        std::thread::yield_now();
    }
}

/// Makes progress until `done`.
///
/// # Panics
/// After 20 s.
pub fn until(endpoint: &Endpoint, what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        endpoint.progress().expect("no fork here");
        assert!(Instant::now() < end, "{what} did not happen within 20 s");
        std::thread::yield_now();
    }
}

/// A small generator (xorshift64*), so that a failure can be repeated.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Lines and cells of a fast box, and the cells that a pair shares.
pub const FAST_BOX_KIB: u64 = 2056 + 64 * 32;

/// Memory of this process that is there, in KiB.
#[derive(Clone, Copy)]
pub struct Resident {
    pub private_kib: u64,
    pub shared_kib: u64,
}

impl Resident {
    pub fn now() -> Self {
        Self { private_kib: status_kib("RssAnon"), shared_kib: status_kib("RssShmem") }
    }

    pub fn max(self, other: Self) -> Self {
        Self {
            private_kib: self.private_kib.max(other.private_kib),
            shared_kib: self.shared_kib.max(other.shared_kib),
        }
    }
}

/// A value of /proc/self/status in KiB.
pub fn status_kib(key: &str) -> u64 {
    kib_of("/proc/self/status", key)
}

/// A value of a file of `key: number kB` lines.
pub fn kib_of(path: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(path).expect("procfs");
    let line = text.lines().find(|l| l.split(':').next() == Some(key)).expect("the key is there");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

/// The CPU time that this process has used.
pub fn cpu_time() -> Duration {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("getrusage");
    let of = |t: nix::sys::time::TimeVal| Duration::new(t.tv_sec() as u64, t.tv_usec() as u32 * 1000);
    of(usage.user_time()) + of(usage.system_time())
}
