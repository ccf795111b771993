//! The loop that copies block by block, whatever a block is: the portable
//! routine, and with wider blocks the others'.
#![allow(unsafe_code)] // Follows the addresses that its caller vouches for.

/// 16 bytes: what a register takes on every machine of 64 bits with vectors.
#[cfg(target_arch = "x86_64")]
pub(crate) type Block = std::arch::x86_64::__m128i;
/// 16 bytes: what a register takes on every machine of 64 bits with vectors.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) type Block = u128;

/// Blocks that are copied in one round.
const ROUND: usize = 4;

/// The shortest copy in blocks of type `B`, in bytes.
pub(crate) const fn least_bytes<B>() -> usize {
    ROUND * size_of::<B>()
}

/// Blocks of 16 bytes, which each CPU with vectors moves by one instruction.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, at
/// least 64, and the two do not overlap.
pub(crate) unsafe fn portable(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; four blocks are 64 bytes.
    unsafe { copy::<Block>(target, source, bytes) }
}

/// Copies `bytes` bytes in blocks of type `B`: the first block wherever it
/// stands, then rounds of four whose target is aligned to a block, then the last
/// four, which may overlap those before.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and the
/// two do not overlap. `bytes` is at least [`least_bytes`] of `B`; any bits are
/// a `B`, which has no padding and whose size is a power of two. The CPU has the
/// instructions that the caller is compiled with.
#[inline(always)]
pub(crate) unsafe fn copy<B: Copy>(target: *mut u8, source: *const u8, bytes: usize) {
    let (block_bytes, round_bytes) = (size_of::<B>(), least_bytes::<B>());
    // SAFETY: at least a round is there.
    unsafe { blocks::<B, 1>(target, source) };
    // From one block's bytes down to 1: the first block reaches at least there.
    let mut at = block_bytes - (target.addr() & (block_bytes - 1));
    while bytes - at > round_bytes {
        // SAFETY: more than a round's bytes are left from `at` on.
        unsafe { blocks::<B, ROUND>(target.wrapping_add(at), source.wrapping_add(at)) };
        at += round_bytes;
    }
    let last = bytes - round_bytes;
    // SAFETY: `bytes` is at least a round, so the last one begins within. It
    // leaves out nothing: no more than a round was left from `at` on.
    unsafe { blocks::<B, ROUND>(target.wrapping_add(last), source.wrapping_add(last)) };
}

/// Copies `N` blocks; all are read before one is written.
///
/// # Safety
/// `N` blocks can be read at `source` and written at `target`; see [`copy`].
#[inline(always)]
unsafe fn blocks<B: Copy, const N: usize>(target: *mut u8, source: *const u8) {
    // SAFETY: the caller's promise: `N` blocks of any bits are an array of them.
    let values = unsafe { source.cast::<[B; N]>().read_unaligned() };
    // SAFETY: the caller's promise.
    unsafe { target.cast::<[B; N]>().write_unaligned(values) };
}
