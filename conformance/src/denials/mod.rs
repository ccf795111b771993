//! Processes to which things are denied for real: another user without
//! capabilities, namespaces of their own, a seccomp filter, tiny limits.
//!
//! A [`Confinement`] says what is taken from a process. The ranks of a group
//! get theirs by [`crate::group::Test::confine`]; [`inside`] puts a whole test
//! with all its ranks into one. Whatever else it says, a confined process is
//! nobody special: the superuser, who is exempt from much, becomes the user
//! [`UNPRIVILEGED`] without groups and capabilities, anybody else stays who he
//! is, and neither can gain privileges by running a program.
//!
//! Namespaces end with their processes, and those with whoever started them.

mod sys;

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;

use crate::require;

/// The user and the group that the superuser becomes: of no account, and not
/// 65534, which stands for every user that a user namespace does not know.
pub const UNPRIVILEGED: u32 = 47_110;

/// Set in a process whose [`Confinement`] is in force.
const ENV_CONFINED: &str = "LMT_TEST_CONFINED";
/// Set in the copy that [`inside`] starts, and in all of its ranks.
const ENV_INSIDE: &str = "LMT_TEST_INSIDE";

/// A system call, or that call with one value of one argument only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number (`SYS_...`).
    pub number: libc::c_long,
    /// Which argument, from 0 on, and the lower half of its value.
    pub argument: Option<(u32, u32)>,
}

/// What is taken from a process.
///
/// ```
/// use lmt_conformance::denials::Confinement;
///
/// let tiny = Confinement::new().locked_memory(64 << 10);
/// assert_eq!(tiny, Confinement::new().locked_memory(65_536));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    user: Option<u32>,
    user_namespace: Option<Option<u32>>,
    pid_namespace: bool,
    dev_shm_bytes: Option<u64>,
    locked_memory_bytes: Option<u64>,
    refused: Vec<(Call, i32)>,
}

impl Confinement {
    /// Only the privileges are gone.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another user than [`UNPRIVILEGED`]; only the superuser becomes anybody.
    #[must_use]
    pub fn user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// A user namespace of its own (user_namespaces(7)) that knows one user
    /// and one group, this process's, as number `known_as`.
    #[must_use]
    pub fn user_namespace(mut self, known_as: u32) -> Self {
        self.user_namespace = Some(Some(known_as));
        self
    }

    /// A user namespace of its own that knows no user, so that all of them look
    /// alike there.
    #[must_use]
    pub fn user_namespace_without_users(mut self) -> Self {
        self.user_namespace = Some(None);
        self
    }

    /// A pid namespace of its own with its /proc (pid_namespaces(7)), without
    /// a user namespace, so that only the superuser can make it.
    #[must_use]
    pub fn pid_namespace(mut self) -> Self {
        self.pid_namespace = true;
        self
    }

    /// A /dev/shm of so many bytes, in a mount namespace of its own.
    #[must_use]
    pub fn dev_shm(mut self, bytes: u64) -> Self {
        self.dev_shm_bytes = Some(bytes);
        self
    }

    /// So many bytes may be locked (RLIMIT_MEMLOCK).
    #[must_use]
    pub fn locked_memory(mut self, bytes: u64) -> Self {
        self.locked_memory_bytes = Some(bytes);
        self
    }

    /// A seccomp filter that answers process_vm_readv and process_vm_writev
    /// with this errno, as a container's may.
    #[must_use]
    pub fn copies_refused(mut self, errno: i32) -> Self {
        for number in [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev] {
            self.refused.push((Call { number, argument: None }, errno));
        }
        self
    }

    /// A seccomp filter that answers a system call with this errno.
    #[must_use]
    pub fn call_refused(mut self, call: Call, errno: i32) -> Self {
        self.refused.push((call, errno));
        self
    }

    /// Tries on a program that does nothing whether this machine allows it.
    ///
    /// # Errors
    /// Why not.
    pub fn try_out(&self) -> Result<(), String> {
        let mut command = Command::new("true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let confined = self.clone();
        // A new pid namespace is that of all children of the thread that asked
        // for it, so that thread is not to be used any more.
        let tried = std::thread::spawn(move || confined.start(command)?.wait()).join();
        match tried {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("true(1) ended with {status} under {self:?}")),
            Ok(Err(error)) => Err(format!("the kernel allows no {self:?}: {error}")),
            Err(_) => Err("the thread that tried has panicked".to_owned()),
        }
    }

    /// Starts a program under it. It dies with the calling thread.
    fn start(&self, mut command: Command) -> std::io::Result<Child> {
        let own = nix::unistd::geteuid();
        if self.user.is_some_and(|user| user != own.as_raw()) && !own.is_root() {
            return Err(Errno::EPERM.into());
        }
        if self.pid_namespace {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWPID)?;
        }
        sys::prepare(&mut command, sys::Steps::of(self));
        command.spawn()
    }

    /// A copy of this process, to run the test `name` under it.
    fn copy(&self, name: &str, variables: &[(&str, &str)]) -> std::io::Result<Child> {
        // The link leads to the running file even where the folders above it
        // may not be entered.
        let mut command = Command::new("/proc/self/exe");
        command.args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
        command.envs(variables.iter().copied());
        self.start(command)
    }
}

/// Whether all of these can be had here; says on standard error that a test of
/// `name` is skipped where not. For the beginning of a test function; the
/// processes that the test starts are told yes.
///
/// # Panics
/// When `LMT_REQUIRE` names `name` and they cannot be had.
pub fn possible(name: &str, confinements: &[&Confinement]) -> bool {
    if is_inside() || crate::started::is_started_by_a_test() {
        return true;
    }
    match confinements.iter().try_for_each(|confinement| confinement.try_out()) {
        Ok(()) => true,
        Err(why) => {
            require::skipped(name, &why);
            false
        }
    }
}

/// Whether this process is the copy that [`inside`] has started, or belongs to
/// it.
pub fn is_inside() -> bool {
    std::env::var_os(ENV_INSIDE).is_some()
}

/// Runs the rest of a test function in a copy of this process under
/// `confinement`, with these variables in its environment. True in the copy
/// and in all that it starts, so in its ranks; false in the original, once
/// the copy has ended well. `name` comes from [`crate::test_name!`].
///
/// # Panics
/// In the original, when the copy fails or `time_limit` passes.
pub fn inside(
    name: &str,
    confinement: &Confinement,
    variables: &[(&str, &str)],
    time_limit: Duration,
) -> bool {
    if is_inside() {
        return true;
    }
    let variables = [variables, &[(ENV_INSIDE, "1")]].concat();
    let mut child = confinement.copy(name, &variables).unwrap_or_else(|error| panic!("{name}: {error}"));
    let deadline = Instant::now() + time_limit;
    let status = loop {
        match child.try_wait().expect("it is this process's child") {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().expect("it has not been waited for");
                let _ = child.wait();
                panic!("{name}: the copy had not ended after {} ms", time_limit.as_millis());
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(status.success(), "{name}: the copy ended with {status}");
    false
}

/// Puts a rank of the test `name` under its confinement: a copy of it takes its
/// place, and this process ends as the copy does. Returns in the copy.
pub(crate) fn confine_rank(name: &str, confinement: &Confinement) {
    if std::env::var_os(ENV_CONFINED).is_some() {
        return;
    }
    let started = confinement.copy(name, &[(ENV_CONFINED, "1")]);
    let ended: std::io::Result<ExitStatus> = started.and_then(|mut child| child.wait());
    match ended {
        Ok(status) if status.success() => std::process::exit(0),
        Ok(status) => eprintln!("the confined copy of the rank ended with {status}"),
        Err(error) => eprintln!("the rank cannot be confined: {error}"),
    }
    std::process::exit(1)
}
