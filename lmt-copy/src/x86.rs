//! What needs instructions of x86-64 that not every CPU has: the routines, which
//! copy at least 256 bytes, and the short copies' wide moves.
#![allow(unsafe_code)] // Such instructions, and assembly.

use std::arch::asm;
use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_stream_si256};
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Blocks of 64 bytes, in assembly: the compiler's AVX-512 is younger than the oldest
/// compiler that builds lmt.
///
/// # Safety
/// As for [`blocks::copy`], with at least 256 bytes; the CPU has AVX-512F, and
/// the kernel saves its registers.
pub(crate) unsafe fn avx512(target: *mut u8, source: *const u8, bytes: usize) {
    // As `blocks::copy` does it: the first block and the last four are read at
    // the beginning, which lie within at least 256 bytes. Rounds of four go from
    // the first aligned target behind `target` on while it is below the last four
    // (`last`), so each ends at most 255 bytes behind where those begin, that is
    // within the copy, and its stores are aligned to 64 as `at` is. At the end the
    // last four are written. `source` becomes the distance from target to source,
    // modulo 2^64, so `source + at` is where `at`'s bytes come from.
    //
    // SAFETY: all loads and stores are within what the caller vouches for, and aligned
    // where the instruction asks for it. Registers 0 to 7 and the flags are declared as
    // changed; so is what `vzeroupper` changes, the upper halves of 0 to 15; the stack is not
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
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        )
    }
}

/// Stores past the caches, two whole lines a round, which the write-combining
/// buffers take as such. (Intel SDM volume 1, 10.4.6.2.)
///
/// What stands before the first whole line and behind the last goes through the caches, and
/// nothing else: a line that was stored so and then past them, or the other way round, has to
/// be thrown out or read again (by the ring, in parts of 4 KiB and more, out of memory: 64, 128,
/// 256 KiB and 1 MiB take 0.93 to 0.96 of the time without, 512 KiB 1.03 and 1.05, 2 MiB 0.97 and
/// 1.04).
///
/// # Safety
/// As for [`blocks::copy`], with at least 256 bytes; the CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn non_temporal(target: *mut u8, source: *const u8, bytes: usize) {
    const LINE_BYTES: usize = 64;
    const STORE_BYTES: usize = size_of::<__m256i>();
    const ROUND_BYTES: usize = 4 * STORE_BYTES;
    let mut at = target.addr().wrapping_neg() & (LINE_BYTES - 1);
    // SAFETY: less than a line's bytes, of which there are more.
    unsafe { target.copy_from_nonoverlapping(source, at) };
    while bytes - at >= ROUND_BYTES {
        let from = source.wrapping_add(at).cast::<[__m256i; 4]>();
        // SAFETY: a round's bytes are left from `at` on.
        let values = unsafe { from.read_unaligned() };
        for (index, value) in values.into_iter().enumerate() {
            let to = target.wrapping_add(at + index * STORE_BYTES).cast();
            // SAFETY: within the round, and aligned to 32 bytes: the target plus
            // `at` is a multiple of a line.
            unsafe { _mm256_stream_si256(to, value) };
        }
        at += ROUND_BYTES;
    }
    // Non-temporal stores are ordered by nothing else, not even by a Release.
    _mm_sfence();
    let (to, from) = (target.wrapping_add(at), source.wrapping_add(at));
    // SAFETY: what is left of the bytes, less than a round's.
    unsafe { to.copy_from_nonoverlapping(from, bytes - at) };
}

/// Whether the CPU is known to have moves of 32 bytes.
static WIDE: Wide = Wide(AtomicBool::new(false));

/// In a cache line of its own: copies of some tens of bytes read it, and nobody
/// writes it but once.
#[repr(align(64))]
struct Wide(AtomicBool);

/// Whether the functions of [`first_and_last_32`]'s kind can be called: known
/// since [`find_width`].
#[inline(always)]
pub(crate) fn is_wide() -> bool {
    // Relaxed, as is the store: it says something of the CPU, and of no memory.
    WIDE.0.load(Ordering::Relaxed)
}

/// Finds out what [`is_wide`] says from now on.
pub(crate) fn find_width() {
    if std::arch::is_x86_feature_detected!("avx") {
        WIDE.0.store(true, Ordering::Relaxed);
    }
}

/// Defines a function that copies the first and the last so many blocks of 32
/// bytes: all loads go before all stores. In assembly, since a function with a
/// target feature is not inlined into one without.
macro_rules! first_and_last {
    ($name:ident, $bytes:literal, [$($first:literal at $first_at:literal),+], [$($last:literal at $last_at:literal),+]) => {
        #[doc = concat!("Copies the first and the last ", $bytes, " bytes, which may overlap.")]
        ///
        /// # Safety
        /// `source` is valid for reads and `target` for writes of `bytes` bytes,
        #[doc = concat!("at least ", $bytes, ", and the two do not overlap. The CPU has AVX: [`is_wide`].")]
        #[inline(always)]
        pub(crate) unsafe fn $name(target: *mut u8, source: *const u8, bytes: usize) {
            // SAFETY: reads and writes the first and the last of the bytes that
            // the caller vouches for, which are at least as many; the blocks
            // before the end are those behind it with their distance taken off.
            // The registers that are written are declared, and with them all
            // whose upper halves `vzeroupper` clears; flags and stack are left.
            unsafe {
                asm!(
                    $(concat!("vmovdqu ymm", $first, ", [{source} + ", $first_at, "]"),)+
                    $(concat!("vmovdqu ymm", $last, ", [{source} + {bytes} - ", $last_at, "]"),)+
                    $(concat!("vmovdqu [{target} + ", $first_at, "], ymm", $first),)+
                    $(concat!("vmovdqu [{target} + {bytes} - ", $last_at, "], ymm", $last),)+
                    "vzeroupper",
                    source = in(reg) source,
                    target = in(reg) target,
                    bytes = in(reg) bytes,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

first_and_last!(first_and_last_32, 32, [0 at 0], [1 at 32]);
first_and_last!(first_and_last_64, 64, [0 at 0, 1 at 32], [2 at 64, 3 at 32]);
first_and_last!(
    first_and_last_128, 128,
    [0 at 0, 1 at 32, 2 at 64, 3 at 96],
    [4 at 128, 5 at 96, 6 at 64, 7 at 32]
);
