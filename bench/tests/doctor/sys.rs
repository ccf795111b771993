//! Starting a command with rights taken away, which takes code between fork and
//! exec.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_dumpable, set_no_new_privs};
use nix::unistd::geteuid;

/// Refuses these system calls with EPERM to the command and all that it starts,
/// by a seccomp filter (seccomp(2)). Only for calls of this machine's own
/// architecture, which is all that the command makes.
pub fn refuse_calls(command: &mut Command, calls: &[libc::c_long]) {
    let program = filter(calls);
    let install = move || {
        set_no_new_privs()?;
        let program =
            libc::sock_fprog { len: program.len() as libc::c_ushort, filter: program.as_ptr().cast_mut() };
        // SAFETY: `program` points at as many instructions as it says, which
        // live across the call; the kernel copies them and writes nothing.
        let answer =
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls and
    // allocates nothing; what it refers to was made before.
    unsafe { command.pre_exec(install) };
}

/// One instruction for each call, one that loads the call's number before them,
/// and the two answers.
fn filter(calls: &[libc::c_long]) -> Vec<libc::sock_filter> {
    let instruction = |code: u32, jt: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    // The number is the first field of struct seccomp_data.
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (index, call) in calls.iter().enumerate() {
        let behind_all = (calls.len() - index) as u8;
        program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, behind_all, *call as u32));
    }
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    program
}

/// Puts the command into a user namespace of its own, in which nobody is mapped.
pub fn in_own_user_namespace(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one system call and
    // allocates nothing.
    unsafe { command.pre_exec(|| Ok(unshare(CloneFlags::CLONE_NEWUSER)?)) };
}

/// Puts what the command starts, but not itself, into a pid namespace of its
/// own; a user namespace allows that to everybody. The command's user keeps its
/// number there, since one without a number cannot be told from others.
pub fn with_children_in_own_pid_namespace(command: &mut Command) {
    let enter = || {
        let user = geteuid();
        // Whoever has just become another user may not write its own files in
        // /proc otherwise (PR_SET_DUMPABLE in prctl(2)).
        set_dumpable(true)?;
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
        let mut map = [0; 32];
        let unused = {
            let mut rest = &mut map[..];
            write!(rest, "{user} {user} 1")?;
            rest.len()
        };
        let used = map.len() - unused;
        OpenOptions::new().write(true).open("/proc/self/uid_map")?.write_all(&map[..used])
    };
    // SAFETY: between fork and exec the closure makes system calls; it allocates
    // nothing, since the path is short and the text stands on the stack.
    unsafe { command.pre_exec(enter) };
}
