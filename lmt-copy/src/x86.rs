//! The routines that need instructions of x86-64 which not every CPU has. All of
//! them copy at least 256 bytes.
#![allow(unsafe_code)] // Such instructions, and assembly.

use std::arch::asm;
use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_stream_si256};

use crate::blocks;

/// Blocks of 32 bytes.
///
/// # Safety
/// As for [`blocks::copy`], with at least 128 bytes; the CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn avx2(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; four blocks are 128 bytes, and the CPU has
    // the instructions that this function is compiled with.
    unsafe { blocks::copy::<__m256i>(target, source, bytes) }
}

/// The string instruction, whose microcode knows the CPU's widths. (Intel SDM
/// volume 2, REP; volume 3, 7.3.9.3, fast-string operation.)
///
/// # Safety
/// As for [`blocks::copy`], of any length.
pub(crate) unsafe fn rep_movsb(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: reads and writes just the bytes that the caller vouches for,
    // forwards: the ABI has the direction flag clear at every call. The three
    // registers are declared as changed, no flag is, and the stack is not used.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rdi") target => _,
            inout("rsi") source => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Blocks of 64 bytes, in assembly: the compiler's AVX-512 is younger than the
/// oldest compiler that builds lmt.
///
/// # Safety
/// As for [`blocks::copy`], with at least 256 bytes; the CPU has AVX-512F, and
/// the kernel saves its registers.
pub(crate) unsafe fn avx512(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: as `blocks::copy` does it: reads the first block and the last
    // four, which lie within at least 256 bytes; rounds of four go from the
    // first aligned target behind `target` on while it is below the last four
    // (`last`), so each ends at most 255 bytes behind where those begin, that is
    // within the copy; at the end the last four are written. `source` becomes
    // the distance from target to source, modulo 2^64, so `source + at` is where
    // `at`'s bytes come from. All loads and stores of rounds are thus within what
    // the caller vouches for; the stores of a round are aligned to 64 as `at`
    // is. Registers 0 to 7 and the flags are declared as changed; `vzeroupper`
    // leaves the upper halves of 0 to 15 as the ABI has them; the stack is not
    // used.
    unsafe {
        asm!(
            "vmovdqu64 zmm0, [{source}]",
            "vmovdqu64 zmm4, [{source} + {bytes} - 256]",
            "vmovdqu64 zmm5, [{source} + {bytes} - 192]",
            "vmovdqu64 zmm6, [{source} + {bytes} - 128]",
            "vmovdqu64 zmm7, [{source} + {bytes} - 64]",
            "vmovdqu64 [{target}], zmm0",
            "lea {last}, [{target} + {bytes} - 256]",
            "mov {at}, {target}",
            "and {at}, -64",
            "add {at}, 64",
            "sub {source}, {target}",
            "cmp {at}, {last}",
            "jae 3f",
            ".p2align 5",
            "2:",
            "vmovdqu64 zmm0, [{source} + {at}]",
            "vmovdqu64 zmm1, [{source} + {at} + 64]",
            "vmovdqu64 zmm2, [{source} + {at} + 128]",
            "vmovdqu64 zmm3, [{source} + {at} + 192]",
            "vmovdqa64 [{at}], zmm0",
            "vmovdqa64 [{at} + 64], zmm1",
            "vmovdqa64 [{at} + 128], zmm2",
            "vmovdqa64 [{at} + 192], zmm3",
            "add {at}, 256",
            "cmp {at}, {last}",
            "jb 2b",
            "3:",
            "vmovdqu64 [{last}], zmm4",
            "vmovdqu64 [{last} + 64], zmm5",
            "vmovdqu64 [{last} + 128], zmm6",
            "vmovdqu64 [{last} + 192], zmm7",
            "vzeroupper",
            source = inout(reg) source => _,
            target = in(reg) target,
            bytes = in(reg) bytes,
            at = out(reg) _,
            last = out(reg) _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            options(nostack),
        );
    }
}

/// Stores past the caches, two whole lines a round, which the write-combining
/// buffers take as such. (Intel SDM volume 1, 10.4.6.2.)
///
/// # Safety
/// As for [`blocks::copy`], with at least 256 bytes; the CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn non_temporal(target: *mut u8, source: *const u8, bytes: usize) {
    const LINE_BYTES: usize = 64;
    const STORE_BYTES: usize = size_of::<__m256i>();
    const ROUND_BYTES: usize = 4 * STORE_BYTES;
    // SAFETY: the first round, through the cache: up to the first whole line.
    unsafe { blocks::copy::<__m256i>(target, source, ROUND_BYTES) };
    let mut at = LINE_BYTES - (target.addr() & (LINE_BYTES - 1));
    while bytes - at > ROUND_BYTES {
        let from = source.wrapping_add(at).cast::<[__m256i; 4]>();
        // SAFETY: more than a round's bytes are left from `at` on.
        let values = unsafe { from.read_unaligned() };
        for (index, value) in values.into_iter().enumerate() {
            let to = target.wrapping_add(at + index * STORE_BYTES).cast();
            // SAFETY: within the round, and aligned to 32 bytes: the target plus
            // `at` is a multiple of a line.
            unsafe { _mm256_stream_si256(to, value) };
        }
        at += ROUND_BYTES;
    }
    // Non-temporal stores are ordered by nothing else, not even by a Release;
    // and the last round overlaps them.
    _mm_sfence();
    let last = bytes - ROUND_BYTES;
    let (to, from) = (target.wrapping_add(last), source.wrapping_add(last));
    // SAFETY: the last round's bytes: `bytes` is more than a round.
    unsafe { blocks::copy::<__m256i>(to, from, ROUND_BYTES) };
}
