//! The seccomp filter: which system calls go to the supervisor.
//!
//! Opens, since a filter cannot read a path; the requests of KNEM's magic; the
//! mappings of files; and what takes memory away, since the driver's pages stay
//! where they were pinned.

use libc::{c_long, sock_filter};

/// The type byte of KNEM's requests, 'K', in place.
const MAGIC: u32 = 0x4b << 8;
const MAGIC_MASK: u32 = 0xff << 8;

/// Offsets in the kernel's `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The lower half of argument `index`.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const X86_64: u32 = 0xc000_003e;
/// Numbers from here on are those of the x32 interface.
const X32: u32 = 0x4000_0000;

/// Calls of which all are told.
const ALWAYS: [c_long; 6] = [
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_exit_group,
];

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn step(code: u16, operand: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k: operand }
}

/// Goes on behind the next `skipped` instructions if the test does not hold.
const fn unless(code: u16, operand: u32, skipped: u8) -> sock_filter {
    sock_filter { code, jt: 0, jf: skipped, k: operand }
}

/// The same, if it does.
const fn when(code: u16, operand: u32, skipped: u8) -> sock_filter {
    sock_filter { code, jt: skipped, jf: 0, k: operand }
}

/// The filter's instructions.
pub fn program() -> Vec<sock_filter> {
    let allow = || step(RETURN, libc::SECCOMP_RET_ALLOW);
    let tell = || step(RETURN, libc::SECCOMP_RET_USER_NOTIF);
    let mut program = vec![
        step(LOAD, ARCHITECTURE),
        when(EQUAL, X86_64, 1),
        allow(),
        step(LOAD, NUMBER),
        unless(AT_LEAST, X32, 1),
        allow(),
    ];
    for number in ALWAYS {
        program.extend([unless(EQUAL, number as u32, 1), tell()]);
    }
    program.extend([
        unless(EQUAL, libc::SYS_ioctl as u32, 5),
        step(LOAD, argument(1)),
        step(AND, MAGIC_MASK),
        unless(EQUAL, MAGIC, 1),
        tell(),
        allow(),
        // Mappings of files, and those that replace another.
        unless(EQUAL, libc::SYS_mmap as u32, 5),
        step(LOAD, argument(3)),
        step(AND, (libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u32),
        when(EQUAL, libc::MAP_ANONYMOUS as u32, 1),
        tell(),
        allow(),
        unless(EQUAL, libc::SYS_madvise as u32, 4),
        step(LOAD, argument(2)),
        unless(EQUAL, libc::MADV_DONTNEED as u32, 1),
        tell(),
        allow(),
        allow(),
    ]);
    program
}
