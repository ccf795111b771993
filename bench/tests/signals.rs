//! Signals that ask a command or one of its ranks to end.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{children, lives, read, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long anything may take to begin, on a machine with other work.
const BEGINNING: Duration = Duration::from_secs(60);
/// How long it may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// Commands that go on until they are stopped, whose ranks listen.
const ENDLESS: [&[&str]; 3] = [
    &["bench", "bcast", "--sizes", "64KiB", "--repetitions", "10000"],
    &["bench", "pingpong", "--sizes", "64KiB", "--repetitions", "10000"],
    &["app", "is", "--class", "S", "-n", "2", "--repetitions", "10000"],
];

/// A command with two ranks that are at work, and the folder of its sockets.
struct Work {
    command: Child,
    ranks: Vec<u32>,
    folder: PathBuf,
}

impl Work {
    /// `None` where the kernel does not list children.
    fn start(arguments: &[&str], name: &str) -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("lmt-signals-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_lmt"))
            .args(arguments)
            .env("LMT_SOCKET_DIR", &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut work = Self { command, ranks: Vec::new(), folder };
        if !Path::new("/proc/self/task").join(std::process::id().to_string()).join("children").exists() {
            lmt_conformance::require::skipped("signals to ranks", "this kernel does not list children");
            return None;
        }
        let deadline = Instant::now() + BEGINNING;
        while work.ranks.len() < 2 || work.sockets() < 2 {
            assert!(Instant::now() < deadline, "{arguments:?} does not begin");
            std::thread::sleep(Duration::from_millis(10));
            work.ranks = children(work.command.id());
        }
        // Into the measuring.
        std::thread::sleep(Duration::from_millis(300));
        Some(work)
    }

    fn sockets(&self) -> usize {
        std::fs::read_dir(&self.folder).unwrap().count()
    }

    /// The exit status and what was said, once all have ended.
    fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + ENDING;
        while self.command.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the command goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!self.ranks.iter().any(|&rank| lives(rank)), "a rank outlives the command");
        assert_eq!(self.sockets(), 0, "sockets are left");
        let said = read(self.command.stderr.as_mut().unwrap());
        (self.command.wait().unwrap().code(), text(&said).to_owned())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.command.kill();
        let _ = self.command.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_rank_ends_at_a_signal_and_the_command_says_so() {
    for (number, arguments) in ENDLESS.iter().enumerate() {
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let Some(work) = Work::start(arguments, &format!("rank-{number}-{signal}")) else { return };
            kill(Pid::from_raw(work.ranks[1] as i32), signal).unwrap();
            let (status, said) = work.end();
            assert_eq!(status, Some(1), "{said}");
            let sentence =
                format!("rank 1 ended unexpectedly: signal: {} ({})", signal as i32, signal.as_str());
            assert!(said.contains(&sentence), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_command_that_is_asked_to_end_leaves_nothing() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let Some(work) = Work::start(ENDLESS[0], &format!("command-{signal}")) else { return };
        kill(Pid::from_raw(work.command.id() as i32), signal).unwrap();
        let (status, said) = work.end();
        assert_eq!(status, Some(128 + signal as i32), "{said}");
        assert!(said.contains("interrupted"), "{said}");
    }
}
