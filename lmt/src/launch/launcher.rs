//! Describing a group and starting it.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lmt_core::identity::EndpointId;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::output::{self, Reader};
use super::running::Running;
use super::signals::CaughtSignals;
use super::supervisor::{ENV_SUPERVISOR, is_hooked};
use super::wire::{self, Event, Job, RankJob};
use super::{ENV_GROUP, ENV_RANK, ENV_SIZE, Group, LaunchError, sys};

/// What happens to the output of the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// The ranks write where the launching process writes.
    #[default]
    Inherit,
    /// The launching process writes each line with `[rank] ` before it.
    Prefix,
    /// It is kept and handed out with the outcome.
    Capture,
}

/// How long the supervisor may take to start and to start the ranks.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A group to be started: what [`std::process::Command`] is for one process.
///
/// ```no_run
/// # fn main() -> Result<(), lmt::launch::LaunchError> {
/// lmt::launch::hook();
/// let outcome = lmt::launch::Launcher::new(4).command("./solver", ["--fast"]).spawn()?.wait();
/// assert!(outcome.success(), "{outcome}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Launcher {
    size: u32,
    program: Option<OsString>,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    cpus: Vec<usize>,
    output: Output,
    grace: Duration,
    group: Option<EndpointId>,
    may_die: Vec<u32>,
    inherited: Vec<(u32, String, OwnedFd)>,
    handle_signals: bool,
    null_stdin: bool,
    supervisor_arguments: Vec<OsString>,
}

impl Launcher {
    /// A group of `size` ranks, whose program is still to be named.
    pub fn new(size: u32) -> Self {
        Self {
            size,
            program: None,
            arguments: Vec::new(),
            variables: Vec::new(),
            cpus: Vec::new(),
            output: Output::Inherit,
            grace: Duration::from_secs(2),
            group: None,
            may_die: Vec::new(),
            inherited: Vec::new(),
            handle_signals: false,
            null_stdin: false,
            supervisor_arguments: Vec::new(),
        }
    }

    /// The program that every rank runs, looked for in PATH as execvp(3) does,
    /// and its arguments. It starts with SIGTERM not blocked.
    pub fn command<I>(mut self, program: impl AsRef<OsStr>, arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        self.program = Some(program.as_ref().to_owned());
        self.arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        self
    }

    /// One more variable of every rank's environment, which otherwise is the
    /// launching process's own.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Rank `r` runs on CPU `cpus[r % cpus.len()]` only. Empty: not pinned.
    pub fn pin(mut self, cpus: &[usize]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// What happens to the ranks' output. Default: [`Output::Inherit`].
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// The time between SIGTERM and SIGKILL when the group is ended.
    /// Default: 2 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The group's id. Default: a random one.
    pub fn group(mut self, id: EndpointId) -> Self {
        self.group = Some(id);
        self
    }

    /// The others go on when a signal kills this rank. An exit status other
    /// than 0 still is a failure.
    pub fn may_die(mut self, rank: u32) -> Self {
        self.may_die.push(rank);
        self
    }

    /// Rank `rank` inherits this descriptor; the variable `name` of its
    /// environment says under which number.
    pub fn inherit_fd(mut self, rank: u32, name: impl Into<String>, fd: OwnedFd) -> Self {
        self.inherited.push((rank, name.into(), fd));
        self
    }

    /// SIGHUP, SIGINT and SIGTERM to the launching process end the ranks first,
    /// from [`Self::spawn`] to the end of [`Running::wait`]. Ignored ones stay
    /// ignored. One group of a process can ask for it at a time. Default: no.
    pub fn handle_signals(mut self, yes: bool) -> Self {
        self.handle_signals = yes;
        self
    }

    /// No rank reads the launching process's standard input. By default rank 0
    /// does; the others always read an empty one.
    pub fn no_stdin(mut self) -> Self {
        self.null_stdin = true;
        self
    }

    /// Arguments with which this executable reaches [`super::hook`]. Needed only
    /// where `main` is not one's own, as in a test's.
    pub fn supervisor_arguments<I>(mut self, arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        self.supervisor_arguments =
            arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        self
    }

    /// Starts the ranks; returns when all run or one could not be started.
    ///
    /// # Errors
    /// [`LaunchError`]; nothing is left running then.
    pub fn spawn(self) -> Result<Running, LaunchError> {
        let program = self.check()?;
        let id = match self.group {
            Some(id) => id,
            None => lmt_core::random::bytes()
                .map(EndpointId::from_bytes)
                .map_err(|errno| supervisor("has no id", errno.into()))?,
        };
        let failed = |source| supervisor("could not be started", source);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let signals = self.handle_signals.then(CaughtSignals::catch).transpose().map_err(failed)?;
        let mut passed = Passed::default();
        let job = self.job(id, &mut passed).map_err(failed)?;
        let Passed { fds, readers } = passed;
        let theirs: OwnedFd = theirs.into();
        let keep = fds.iter().chain([&theirs]).map(AsRawFd::as_raw_fd).collect();
        let child = self.supervisor_command(keep, theirs.as_raw_fd()).spawn().map_err(failed)?;
        drop((fds, theirs));
        let mut running = Running::new(child, ours, id, self.size, readers, signals);
        let pids = start(running.control(), &job, &program).inspect_err(|_| running.abandon())?;
        running.watch(pids).map_err(|source| supervisor("cannot be watched", source))?;
        Ok(running)
    }

    fn check(&self) -> Result<PathBuf, LaunchError> {
        if self.size == 0 || self.size > Group::MAX_SIZE {
            return Err(LaunchError::Size { size: self.size, max: Group::MAX_SIZE });
        }
        let program =
            self.program.as_ref().filter(|program| !program.is_empty()).ok_or(LaunchError::NoProgram)?;
        let known = |rank: u32| if rank < self.size { Ok(()) } else { Err(rank) };
        let mut named = self.may_die.iter().copied().chain(self.inherited.iter().map(|(rank, ..)| *rank));
        named.try_for_each(known).map_err(|rank| LaunchError::NoSuchRank { rank, size: self.size })?;
        if !self.cpus.is_empty() {
            let allowed = allowed_cpus();
            if let Some(cpu) = self.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
                return Err(LaunchError::Cpu { cpu: *cpu, allowed: describe_cpus(&allowed) });
            }
        }
        if !is_hooked() {
            return Err(LaunchError::NotHooked);
        }
        Ok(PathBuf::from(program))
    }

    fn job(&self, id: EndpointId, passed: &mut Passed) -> io::Result<Job> {
        let program = self.program.iter().chain(&self.arguments);
        let bytes = |text: &OsString| text.as_bytes().to_vec();
        let mut ranks = Vec::with_capacity(self.size as usize);
        for rank in 0..self.size {
            let mut job = RankJob {
                variables: vec![
                    (ENV_RANK.to_owned(), rank.to_string()),
                    (ENV_SIZE.to_owned(), self.size.to_string()),
                    (ENV_GROUP.to_owned(), id.to_string()),
                ],
                cpu: (!self.cpus.is_empty()).then(|| self.cpus[rank as usize % self.cpus.len()]),
                inherit_stdin: rank == 0 && !self.null_stdin,
                may_die: self.may_die.contains(&rank),
                ..RankJob::default()
            };
            if self.output != Output::Inherit {
                job.stdout = Some(passed.stream(self.output, rank, false)?);
                job.stderr = Some(passed.stream(self.output, rank, true)?);
            }
            for (_, name, fd) in self.inherited.iter().filter(|(of, ..)| *of == rank) {
                let raw = passed.hand_over(fd.try_clone()?);
                job.variables.push((name.clone(), raw.to_string()));
                job.keep.push(raw);
            }
            ranks.push(job);
        }
        Ok(Job {
            launcher_pid: std::process::id() as i32,
            launcher_pgid: nix::unistd::getpgrp().as_raw(),
            grace_ms: u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX).min(3_600_000),
            command: program.map(bytes).collect(),
            variables: self.variables.iter().map(|(name, value)| (bytes(name), bytes(value))).collect(),
            ranks,
        })
    }

    fn supervisor_command(&self, keep: Vec<RawFd>, control: RawFd) -> Command {
        // The link leads to the running file even if it was replaced meanwhile.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("lmt-supervisor").args(&self.supervisor_arguments);
        command.env(ENV_SUPERVISOR, control.to_string());
        if self.null_stdin {
            command.stdin(Stdio::null());
        }
        if self.output != Output::Inherit {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        sys::prepare_supervisor(&mut command, keep);
        command
    }
}

/// Descriptors on their way to the supervisor, and the threads at our ends.
#[derive(Default)]
struct Passed {
    fds: Vec<OwnedFd>,
    readers: Vec<Reader>,
}

impl Passed {
    fn hand_over(&mut self, fd: OwnedFd) -> RawFd {
        let raw = fd.as_raw_fd();
        self.fds.push(fd);
        raw
    }

    fn stream(&mut self, output: Output, rank: u32, is_stderr: bool) -> io::Result<RawFd> {
        let (from, to) = io::pipe()?;
        self.readers.push(match output {
            Output::Prefix => output::forward(from, format!("[{rank}] "), is_stderr)?,
            Output::Inherit | Output::Capture => output::capture(from)?,
        });
        Ok(self.hand_over(to.into()))
    }
}

/// Gives the supervisor its job and waits until every rank runs.
fn start(control: &UnixStream, job: &Job, program: &Path) -> Result<Vec<i32>, LaunchError> {
    let silent = |source| supervisor("did not answer", source);
    control.set_read_timeout(Some(START_LIMIT)).map_err(silent)?;
    // Every event is read from an empty buffer's line, so a buffer of its own
    // loses nothing: `Running` goes on with the same one.
    let mut events = BufReader::with_capacity(1, control);
    let mut pids = Vec::with_capacity(job.ranks.len());
    let gone = || silent(io::Error::from(io::ErrorKind::UnexpectedEof));
    if wire::receive::<Event>(&mut events).map_err(silent)?.is_none() {
        return Err(gone());
    }
    wire::send(control, job).map_err(silent)?;
    while pids.len() < job.ranks.len() {
        match wire::receive::<Event>(&mut events).map_err(silent)?.ok_or_else(gone)? {
            Event::Started { pid, .. } => pids.push(pid),
            Event::NotStarted { rank, errno } => return Err(not_started(program, rank, errno)),
            _ => return Err(gone()),
        }
    }
    control.set_read_timeout(None).map_err(silent)?;
    Ok(pids)
}

fn supervisor(what: &'static str, source: io::Error) -> LaunchError {
    LaunchError::Supervisor { what, source }
}

fn not_started(program: &Path, rank: u32, errno: i32) -> LaunchError {
    let source = io::Error::from_raw_os_error(errno);
    let program = program.to_owned();
    match errno {
        libc::ENOENT if program.exists() && program.components().count() > 1 => {
            LaunchError::NoInterpreter { program }
        }
        libc::ENOENT | libc::ENOTDIR => LaunchError::NotFound { program },
        libc::EACCES if program.is_dir() => {
            LaunchError::NotExecutable { program, reason: "it is a folder".to_owned() }
        }
        libc::EACCES | libc::ENOEXEC | libc::EISDIR | libc::ETXTBSY => {
            LaunchError::NotExecutable { program, reason: source.to_string() }
        }
        _ => LaunchError::Rank { rank, source },
    }
}

/// The CPUs that this process may use, in ascending order (sched_getaffinity(2)).
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

fn describe_cpus(cpus: &[usize]) -> String {
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    if list.is_empty() { "none that it knows of".to_owned() } else { list.join(",") }
}
