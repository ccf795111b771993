//! The process between the launcher and its ranks, which ends what they leave.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CpuSet;
use nix::sys::signal::Signal;

use super::sys::{self, RankSetup, Reaped};
use super::wire::{self, Event, Job, Order};

/// Variable that makes a run of this executable the supervisor: the number of
/// the descriptor on which it talks with the launcher.
pub(super) const ENV_SUPERVISOR: &str = "LMT_SUPERVISOR_FD";

/// How often adopted children that have ended are reaped while ranks run.
const REAP_INTERVAL_MS: u16 = 1000;
/// How often children are looked for while they are being ended, and while
/// ranks run on a kernel without pidfds.
const END_INTERVAL_MS: u16 = 5;
/// How long children may survive SIGKILL before the supervisor gives them up:
/// those of another user, or stuck in the kernel.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

static HOOKED: AtomicBool = AtomicBool::new(false);

/// Makes this process the supervisor, and never returns, if a launcher started
/// it as one; otherwise returns at once. A program that launches ranks calls
/// this first in `main`, before it has threads or has read its arguments.
pub fn hook() {
    if std::env::var_os(ENV_SUPERVISOR).is_some() {
        supervisor_main();
    }
    // Relaxed: the flag carries no data with it.
    HOOKED.store(true, Ordering::Relaxed);
}

pub(super) fn is_hooked() -> bool {
    // Relaxed: a thread that launches was started after `hook`, or called it.
    HOOKED.load(Ordering::Relaxed)
}

/// What a supervisor does, to the end of the process. Status 0 unless the
/// environment does not name the launcher's descriptor, which is status 2.
pub fn supervisor_main() -> ! {
    let text = std::env::var(ENV_SUPERVISOR).unwrap_or_default();
    let control = text
        .parse()
        .map_err(|_| io::Error::from_raw_os_error(libc::EBADF))
        .and_then(sys::take_inherited_fd)
        .map(UnixStream::from);
    match control {
        // Any failure from here on ends the connection, which the launcher sees.
        Ok(control) => std::process::exit(i32::from(supervise(control).is_err())),
        Err(error) => {
            super::error::complain(&format_args!(
                "{ENV_SUPERVISOR} is `{text}` ({error}); it is for lmt's own use, unset it"
            ));
            std::process::exit(2)
        }
    }
}

fn supervise(control: UnixStream) -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let default_signals = sys::ignore_ending_signals();
    wire::send(&control, &Event::Hello)?;
    let mut orders = BufReader::new(control.try_clone()?);
    let Some(job) = wire::receive::<Job>(&mut orders)? else {
        return Ok(());
    };
    // Without a pidfd the end of the connection tells of the launcher's death,
    // unless a forked child of it still has the other end.
    let launcher = sys::pidfd_open(job.launcher_pid).ok();
    if nix::unistd::getppid().as_raw() != job.launcher_pid {
        return Ok(());
    }
    let mut supervisor = Supervisor {
        control,
        launcher,
        ranks: Vec::new(),
        phase: Phase::Running,
        grace: Duration::from_millis(job.grace_ms),
    };
    supervisor.start(job, &default_signals);
    while !supervisor.turn(&mut orders) {}
    Ok(())
}

struct Rank {
    pid: i32,
    pidfd: Option<OwnedFd>,
    running: bool,
    may_die: bool,
}

enum Phase {
    Running,
    /// SIGTERM was sent to `asked`; SIGKILL follows.
    Ending {
        deadline: Instant,
        asked: HashSet<i32>,
    },
    Killing {
        since: Instant,
    },
}

struct Supervisor {
    control: UnixStream,
    launcher: Option<OwnedFd>,
    ranks: Vec<Rank>,
    phase: Phase,
    grace: Duration,
}

impl Supervisor {
    /// Starts every rank, or ends those that were when one cannot be.
    fn start(&mut self, job: Job, default_signals: &[Signal]) {
        let Job { command, variables, ranks, launcher_pgid, .. } = job;
        // All are taken, hence closed on exec, before the first rank starts: no
        // rank may hold another's, whose death must close them.
        let taken: Vec<io::Result<RankFds>> = ranks.iter().map(RankFds::take).collect();
        for (rank, (rank_job, fds)) in ranks.into_iter().zip(taken).enumerate() {
            let rank = rank as u32;
            let may_die = rank_job.may_die;
            let spawned = fds.and_then(|fds| {
                let setup = RankSetup {
                    keep: rank_job.keep.clone(),
                    supervisor_pid: std::process::id() as i32,
                    launcher_pgid,
                    cpu: rank_job.cpu.map(one_cpu).transpose()?,
                    default_signals: default_signals.to_vec(),
                };
                spawn_rank(&command, &variables, rank_job, fds, setup)
            });
            match spawned {
                Ok(pid) => {
                    let pidfd = sys::pidfd_open(pid).ok();
                    self.ranks.push(Rank { pid, pidfd, running: true, may_die });
                    self.tell(&Event::Started { rank, pid });
                }
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                    self.tell(&Event::NotStarted { rank, errno });
                    self.kill_all();
                    return;
                }
            }
        }
    }

    /// One round: waits for something to happen and acts. True when all is done.
    fn turn(&mut self, orders: &mut BufReader<UnixStream>) -> bool {
        if self.wait() {
            // A partial line cannot hold us up for long: the launcher writes
            // whole lines, and if it dies in the middle of one the read ends.
            match wire::receive::<Order>(orders) {
                Ok(Some(order)) => self.handle_order(order),
                Ok(None) | Err(_) => self.launcher_gone(),
            }
            while orders.buffer().contains(&b'\n') {
                if let Ok(Some(order)) = wire::receive::<Order>(orders) {
                    self.handle_order(order);
                }
            }
        }
        let children_left = self.reap();
        if matches!(self.phase, Phase::Running) && self.ranks.iter().all(|rank| !rank.running) {
            self.end();
        }
        if !children_left {
            self.tell(&Event::Done { left: Vec::new() });
            return true;
        }
        self.signal_children()
    }

    /// Waits for orders, for the end of a rank or of the launcher, or for the
    /// interval to pass. True when orders can be read.
    fn wait(&mut self) -> bool {
        let ending = !matches!(self.phase, Phase::Running);
        let blind = self.ranks.iter().any(|rank| rank.running && rank.pidfd.is_none());
        let interval_ms = if ending || blind { END_INTERVAL_MS } else { REAP_INTERVAL_MS };
        if self.launcher_is_gone() {
            // The closed connection would be readable at once, each time.
            std::thread::sleep(Duration::from_millis(END_INTERVAL_MS.into()));
            return false;
        }
        let mut fds = Vec::with_capacity(self.ranks.len() + 2);
        if let Some(launcher) = &self.launcher {
            fds.push(PollFd::new(launcher.as_fd(), PollFlags::POLLIN));
        }
        let launcher_fds = fds.len();
        fds.push(PollFd::new(self.control.as_fd(), PollFlags::POLLIN));
        let pidfds = self.ranks.iter().filter(|rank| rank.running).filter_map(|rank| rank.pidfd.as_ref());
        fds.extend(pidfds.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        let polled = poll(&mut fds, PollTimeout::from(interval_ms));
        let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        let launcher_dead = fds[..launcher_fds].iter().any(ready);
        let readable = ready(&fds[launcher_fds]);
        drop(fds);
        match polled {
            // Interrupted, or no memory just now: the next round asks again.
            Err(_) => false,
            Ok(_) if launcher_dead => {
                self.launcher_gone();
                false
            }
            Ok(_) => readable,
        }
    }

    fn launcher_is_gone(&self) -> bool {
        matches!(self.phase, Phase::Killing { .. }) && self.launcher.is_none()
    }

    fn launcher_gone(&mut self) {
        self.launcher = None;
        self.kill_all();
    }

    fn handle_order(&mut self, order: Order) {
        match order {
            Order::Kill { rank, signal } => {
                if let Some(rank) = self.ranks.get_mut(rank as usize).filter(|rank| rank.running) {
                    rank.may_die = true;
                    // Unreaped and our child, hence no stranger. It may be a
                    // zombie already: then there is nothing to do.
                    let _ = sys::signal_child(rank.pid, signal);
                }
            }
            Order::End => self.end(),
            Order::EndNow => self.kill_all(),
        }
    }

    fn end(&mut self) {
        if matches!(self.phase, Phase::Running) {
            self.phase = Phase::Ending { deadline: Instant::now() + self.grace, asked: HashSet::new() };
        }
    }

    fn kill_all(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.phase = Phase::Killing { since: Instant::now() };
        }
    }

    /// Reaps every child that has ended. True when there are others.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                Reaped::Child(pid, raw_status) => self.ended(pid, raw_status),
                Reaped::NoneYet => return true,
                Reaped::NoChildren => return false,
            }
        }
    }

    fn ended(&mut self, pid: i32, raw_status: i32) {
        if let Phase::Ending { asked, .. } = &mut self.phase {
            asked.remove(&pid);
        }
        let found = self.ranks.iter_mut().enumerate().find(|(_, rank)| rank.running && rank.pid == pid);
        let Some((number, rank)) = found else {
            return;
        };
        rank.running = false;
        let allowed = raw_status == 0 || (rank.may_die && libc::WIFSIGNALED(raw_status));
        // What ends after the first failure was ended by us.
        let failure = !allowed && matches!(self.phase, Phase::Running);
        self.tell(&Event::Exited { rank: number as u32, raw_status, failure });
        if failure {
            self.end();
        }
    }

    /// Signals every child according to the phase. True when those left are
    /// given up.
    fn signal_children(&mut self) -> bool {
        match &mut self.phase {
            Phase::Running => {}
            Phase::Ending { deadline, .. } if Instant::now() >= *deadline => {
                self.kill_all();
                return self.signal_children();
            }
            Phase::Ending { asked, .. } => {
                for pid in children() {
                    if asked.insert(pid) {
                        let _ = sys::signal_child(pid, libc::SIGTERM);
                    }
                }
            }
            Phase::Killing { since } => {
                let left = children();
                for pid in &left {
                    let _ = sys::signal_child(*pid, libc::SIGKILL);
                }
                if since.elapsed() >= GIVE_UP_AFTER {
                    self.tell(&Event::Done { left });
                    return true;
                }
            }
        }
        false
    }

    /// The launcher may be gone; its death is noticed elsewhere.
    fn tell(&self, event: &Event) {
        let _ = wire::send(&self.control, event);
    }
}

/// What the launcher has passed for one rank.
struct RankFds {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    kept: Vec<OwnedFd>,
}

impl RankFds {
    fn take(rank: &wire::RankJob) -> io::Result<Self> {
        Ok(Self {
            stdout: rank.stdout.map(sys::take_inherited_fd).transpose()?,
            stderr: rank.stderr.map(sys::take_inherited_fd).transpose()?,
            kept: rank.keep.iter().map(|fd| sys::take_inherited_fd(*fd)).collect::<io::Result<_>>()?,
        })
    }
}

fn spawn_rank(
    command: &[Vec<u8>],
    variables: &[(Vec<u8>, Vec<u8>)],
    rank: wire::RankJob,
    fds: RankFds,
    setup: RankSetup,
) -> io::Result<i32> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut process = Command::new(OsStr::from_bytes(program));
    process.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    process.env_remove(ENV_SUPERVISOR);
    process.envs(variables.iter().map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))));
    process.envs(rank.variables.iter().map(|(name, value)| (name, value)));
    process.env(super::ENV_LAUNCHER_PID, std::process::id().to_string());
    process.stdin(if rank.inherit_stdin { Stdio::inherit() } else { Stdio::null() });
    if let Some(stdout) = fds.stdout {
        process.stdout(stdout);
    }
    if let Some(stderr) = fds.stderr {
        process.stderr(stderr);
    }
    sys::prepare_rank(&mut process, setup);
    let child = process.spawn()?;
    // Closed here now that the rank has its copies, so that its death ends them.
    drop(fds.kept);
    Ok(child.id() as i32)
}

fn one_cpu(cpu: usize) -> io::Result<CpuSet> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu)?;
    Ok(cpus)
}

/// The children of this process, own and adopted. Some may be missing, which
/// the next round finds; none is a stranger, since only this process reaps.
fn children() -> Vec<i32> {
    let from_tasks = children_from_tasks().unwrap_or_default();
    // The kernel may lack the file (CONFIG_PROC_CHILDREN), or skip a child.
    if from_tasks.is_empty() { children_from_stat().unwrap_or_default() } else { from_tasks }
}

fn children_from_tasks() -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task")? {
        let list = std::fs::read_to_string(task?.path().join("children"))?;
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(found)
}

fn children_from_stat() -> io::Result<Vec<i32>> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name: OsString = entry?.file_name();
        let Some(pid) = String::from_utf8(name.into_vec()).ok().and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else {
            continue;
        };
        // pid (name) state ppid ...: the name may hold spaces and parentheses.
        let after_name = stat.iter().rposition(|byte| *byte == b')').map_or(0, |at| at + 1);
        let fields = String::from_utf8_lossy(&stat[after_name..]);
        if fields.split_ascii_whitespace().nth(1) == Some(own.as_str()) {
            found.push(pid);
        }
    }
    Ok(found)
}
