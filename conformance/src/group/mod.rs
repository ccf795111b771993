//! Tests whose ranks are real processes.
//!
//! ```no_run
//! use std::time::Duration;
//! use lmt_conformance::{group, test_name};
//!
//! #[test]
//! fn ranks_meet() {
//!     group::run(test_name!(), 2, Duration::from_secs(10), |group| {
//!         assert!(group.rank() < 2);
//!         group.barrier();
//!     });
//! }
//! ```
//!
//! The test's process, the *parent*, executes the test binary once more for each
//! rank, with the test's name as the filter. There the same function reaches the
//! same call again, sees from its environment that it is a rank, runs the
//! closure and ends the process: with 0, or with 1 when the closure panics. So
//! whatever a test function does before the call, every rank does too; the call
//! best comes first. What comes after it only the parent does. The supervisor of
//! the ranks (see [`lmt::launch`]) is a run of the test binary as well.
//!
//! When a rank fails or the time limit passes, all ranks and everything that
//! they have started are killed, and the parent panics with the rank, how it
//! ended, and what the ranks wrote.

mod channel;
mod parent;

use std::io::{BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use lmt_core::identity::{Address, EndpointId};

pub use lmt::launch::allowed_cpus;
pub use parent::{Parent, Results};

use crate::denials::Confinement;
use crate::started::ENV_TEST;
use channel::{FromRank, ToRank};

/// The name under which the test harness knows the function that this is
/// written in, for its `--exact` filter.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::group::name_of(here)
    }};
}

/// The path of the function around `inner`, without the crate's name. For
/// [`test_name!`].
#[doc(hidden)]
pub fn name_of<F>(_inner: F) -> &'static str {
    // crate::module::test::{{closure}}::here
    let path = std::any::type_name::<F>();
    let path = path.strip_suffix("::here").unwrap_or(path).trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_, rest)| rest)
}

/// Runs `body` in `ranks` processes and waits for them.
///
/// # Panics
/// In the parent when a rank fails or `time_limit` passes.
pub fn run(test_name: &str, ranks: u32, time_limit: Duration, body: impl FnOnce(&Group)) -> Results {
    Test::new(test_name, ranks).time_limit(time_limit).run(body)
}

/// A test of several processes, with more to say than [`run`] takes.
#[derive(Clone, Debug)]
pub struct Test {
    name: String,
    ranks: u32,
    time_limit: Duration,
    cpus: Vec<usize>,
    may_die: Vec<u32>,
    variables: Vec<(String, String)>,
    confined: Vec<(u32, Confinement)>,
}

impl Test {
    /// A test of `ranks` processes with a time limit of 60 s.
    /// `name` comes from [`test_name!`].
    pub fn new(name: &str, ranks: u32) -> Self {
        Self {
            name: name.to_owned(),
            ranks,
            time_limit: Duration::from_secs(60),
            cpus: Vec::new(),
            may_die: Vec::new(),
            variables: Vec::new(),
            confined: Vec::new(),
        }
    }

    /// How long all of it may take.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Rank `r` runs on CPU `cpus[r % cpus.len()]` only; see [`allowed_cpus`].
    pub fn pin(mut self, cpus: &[usize]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// A signal may kill this rank, and the test goes on. Its panic still fails
    /// the test. [`Parent::kill`] implies it.
    pub fn may_die(mut self, rank: u32) -> Self {
        self.may_die.push(rank);
        self
    }

    /// A variable for the ranks' environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A rank that runs under this confinement, in a child of the process that
    /// [`Parent::pid`] names.
    pub fn confine(mut self, rank: u32, confinement: &Confinement) -> Self {
        self.confined.push((rank, confinement.clone()));
        self
    }

    /// Runs `body` in the ranks and waits for them.
    ///
    /// # Panics
    /// As [`run`].
    pub fn run(self, body: impl FnOnce(&Group)) -> Results {
        self.run_with(|_| {}, body)
    }

    /// Runs `body` in the ranks, and meanwhile `drive` in the parent, which may
    /// kill ranks and read what they report.
    ///
    /// # Panics
    /// As [`run`], and with the panic of `drive`.
    pub fn run_with(self, drive: impl FnOnce(&mut Parent), body: impl FnOnce(&Group)) -> Results {
        lmt::launch::hook();
        let this_run = parent::count_run(&self.name);
        let tag = format!("{}#{this_run}", self.name);
        match std::env::var(ENV_TEST) {
            Ok(wanted) if wanted == tag => be_rank(&self, body),
            // The rank belongs to a later run of the same function.
            Ok(wanted) if wanted.starts_with(&format!("{}#", self.name)) => Results::default(),
            _ => parent::run(self, &tag, drive),
        }
    }
}

/// A rank's view of its group.
#[derive(Debug)]
pub struct Group {
    launch: lmt::launch::Group,
    channel: Mutex<Channel>,
}

#[derive(Debug)]
struct Channel {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Group {
    /// This process's number, from 0.
    pub fn rank(&self) -> u32 {
        self.launch.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.launch.size
    }

    /// The group's id.
    pub fn id(&self) -> EndpointId {
        self.launch.id
    }

    /// Where the endpoint of `rank` listens.
    pub fn address(&self, rank: u32) -> Address {
        self.launch.address(rank)
    }

    /// The group as the library sees it.
    pub fn launch(&self) -> &lmt::launch::Group {
        &self.launch
    }

    /// Sends a line to the parent, without waiting for it to be read. Line ends
    /// within it become spaces.
    ///
    /// # Panics
    /// When the parent is gone.
    pub fn report(&self, line: impl std::fmt::Display) {
        let mut channel = self.channel.lock().expect("no report or barrier of this rank has panicked");
        let line = FromRank::Report(line.to_string().replace('\n', " ")).to_line();
        channel.to.write_all(line.as_bytes()).expect("the parent reads reports");
    }

    /// Waits until every rank that still lives is here. Does not use lmt: the
    /// parent counts the ranks.
    ///
    /// # Panics
    /// When the parent is gone.
    pub fn barrier(&self) {
        let mut channel = self.channel.lock().expect("no report or barrier of this rank has panicked");
        channel.to.write_all(FromRank::Barrier.to_line().as_bytes()).expect("the parent counts ranks");
        let answer = channel::read_line(&mut channel.from).and_then(|line| ToRank::from_line(&line));
        assert!(matches!(answer, Some(ToRank::Go)), "the parent has ended during a barrier");
    }
}

fn be_rank(test: &Test, body: impl FnOnce(&Group)) -> ! {
    let launch = match lmt::launch::Group::from_env() {
        Ok(Some(group)) => group,
        Ok(None) => fail("LMT_RANK is not set in a rank of a test"),
        Err(error) => fail(&error.to_string()),
    };
    if let Some((_, confinement)) = test.confined.iter().find(|(rank, _)| *rank == launch.rank) {
        crate::denials::confine_rank(&test.name, confinement);
    }
    let to = connect_parent().unwrap_or_else(|error| fail(&format!("no channel to the parent: {error}")));
    let from = to.try_clone().unwrap_or_else(|error| fail(&format!("no channel to the parent: {error}")));
    let group = Group { launch, channel: Mutex::new(Channel { to, from: BufReader::new(from) }) };
    // The process ends right after a panic, so nothing broken is seen.
    let ended = catch_unwind(AssertUnwindSafe(|| body(&group)));
    std::process::exit(i32::from(ended.is_err()))
}

fn fail(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(1)
}

fn connect_parent() -> std::io::Result<UnixStream> {
    let number = std::env::var(channel::ENV_CHANNEL).ok().and_then(|text| text.parse().ok());
    let number = number.ok_or(std::io::ErrorKind::NotFound)?;
    let fd: OwnedFd = lmt::launch::take_inherited_fd(number)?;
    Ok(UnixStream::from(fd))
}
