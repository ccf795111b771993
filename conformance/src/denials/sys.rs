//! What a child does to itself between fork and exec.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Pid, Uid, getegid, geteuid, getpid, getppid, setgroups, setresgid, setresuid};

use super::{Call, Confinement, UNPRIVILEGED};

/// Uid 0 of a namespace gets no capabilities by exec (capabilities(7)).
const SECBIT_NOROOT: libc::c_ulong = 1;

/// A confinement, worked out beforehand: the child of a program with threads
/// must not allocate.
pub(super) struct Steps {
    /// Whom the superuser becomes.
    becomes: Option<u32>,
    parent: Pid,
    user_namespace: bool,
    /// For the files uid_map and gid_map, if they are to be written.
    maps: Option<(String, String)>,
    pid_namespace: bool,
    /// The mount options of the new /dev/shm.
    dev_shm: Option<CString>,
    locked_memory_bytes: Option<u64>,
    filter: Option<Vec<libc::sock_filter>>,
}

impl Steps {
    pub fn of(confinement: &Confinement) -> Self {
        let becomes = geteuid().is_root().then(|| confinement.user.unwrap_or(UNPRIVILEGED));
        let (uid, gid) = becomes.map_or((geteuid().as_raw(), getegid().as_raw()), |id| (id, id));
        let known_as = confinement.user_namespace.flatten();
        Self {
            becomes,
            parent: getpid(),
            user_namespace: confinement.user_namespace.is_some(),
            maps: known_as.map(|inner| (format!("{inner} {uid} 1"), format!("{inner} {gid} 1"))),
            pid_namespace: confinement.pid_namespace,
            dev_shm: confinement.dev_shm_bytes.and_then(|bytes| CString::new(format!("size={bytes}")).ok()),
            locked_memory_bytes: confinement.locked_memory_bytes,
            filter: (!confinement.refused.is_empty()).then(|| filter_refusing(&confinement.refused)),
        }
    }

    fn take(&self) -> io::Result<()> {
        let mounts_as_root = self.becomes.is_some() && (self.pid_namespace || self.dev_shm.is_some());
        if mounts_as_root {
            self.mount()?;
        }
        if let Some(bytes) = self.locked_memory_bytes {
            setrlimit(Resource::RLIMIT_MEMLOCK, bytes, bytes)?;
        }
        if let Some(id) = self.becomes {
            let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
            setgroups(&[])?;
            setresgid(gid, gid, gid)?;
            setresuid(uid, uid, uid)?;
        }
        if self.user_namespace {
            self.enter_user_namespace()?;
        }
        if self.dev_shm.is_some() && !mounts_as_root {
            self.mount()?;
        }
        if self.user_namespace {
            forbid_capabilities_of_root()?;
        }
        prctl::set_no_new_privs()?;
        if let Some(filter) = &self.filter {
            install(filter)?;
        }
        // Whoever changes its user loses this; so it comes last.
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if !self.pid_namespace && getppid() != self.parent {
            // The parent has died before.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    }

    fn enter_user_namespace(&self) -> io::Result<()> {
        // A change of the user has made the files below root's (proc(5)).
        prctl::set_dumpable(true)?;
        unshare(CloneFlags::CLONE_NEWUSER)?;
        let Some((uid_map, gid_map)) = &self.maps else { return Ok(()) };
        // Without it an unprivileged process may not map its group.
        write_file("/proc/self/setgroups", "deny")?;
        write_file("/proc/self/uid_map", uid_map)?;
        write_file("/proc/self/gid_map", gid_map)
    }

    /// A mount namespace whose changes nobody else sees, and what is new in it.
    fn mount(&self) -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
        if self.pid_namespace {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            mount(c"proc", c"/proc", Some(c"proc"), flags, None)?;
        }
        if let Some(options) = &self.dev_shm {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            mount(c"shm", c"/dev/shm", Some(c"tmpfs"), flags, Some(options))?;
        }
        Ok(())
    }
}

/// Lets the child of `command` take the steps before it runs its program.
pub(super) fn prepare(command: &mut Command, steps: Steps) {
    // SAFETY: the closure makes system calls only, in a process that the fork
    // has left with one thread. It allocates nothing and takes no lock: the
    // texts and the filter were made before, errors hold an errno, and nix
    // copies the short paths that it is given onto its stack.
    unsafe { command.pre_exec(move || steps.take()) };
}

/// mount(2).
fn mount(
    what: &std::ffi::CStr,
    at: &std::ffi::CStr,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
    options: Option<&CString>,
) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
    let options = options.map_or(std::ptr::null(), |text| text.as_ptr().cast());
    // SAFETY: every pointer is null or leads to text that ends with a zero
    // byte and outlives the call, which writes to none of them.
    let mounted = unsafe { libc::mount(what.as_ptr(), at.as_ptr(), kind, flags, options) };
    if mounted == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn write_file(path: &str, text: &str) -> io::Result<()> {
    let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    let written = nix::unistd::write(&file, text.as_bytes())?;
    if written == text.len() { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EIO)) }
}

fn forbid_capabilities_of_root() -> io::Result<()> {
    let unused: libc::c_ulong = 0;
    // SAFETY: this option takes integers only and touches no memory of ours.
    let set = unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECBIT_NOROOT, unused, unused, unused) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A program that answers each of these calls with its errno and allows all else
/// (seccomp(2)). It looks at no architecture: what it runs has one.
fn filter_refusing(calls: &[(Call, i32)]) -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // Where it is another value, so many statements are left out.
    let is = |value: u32, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf,
        k: value,
    };
    let load = |offset: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32);
    let mut program = Vec::new();
    for (call, errno) in calls {
        program.push(load(std::mem::offset_of!(libc::seccomp_data, nr)));
        program.push(is(call.number as u32, if call.argument.is_some() { 3 } else { 1 }));
        if let Some((which, value)) = call.argument {
            program.push(load(std::mem::offset_of!(libc::seccomp_data, args) + 8 * which as usize));
            program.push(is(value, 1));
        }
        let answer = libc::SECCOMP_RET_ERRNO | (*errno as u32 & libc::SECCOMP_RET_DATA);
        program.push(statement(libc::BPF_RET | libc::BPF_K, answer));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    program
}

fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: `program` says where the filter stands and how long it is, both
    // outlive the call, and the kernel only reads them.
    let set = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as libc::c_ulong, &raw const program)
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
