//! Copies of few bytes, inlined where they are called.
#![allow(unsafe_code)] // Follows the addresses that its caller vouches for.

use crate::blocks::Block;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::x86;

/// The longest copy that is made inline, in bytes, where the CPU has moves of 32
/// bytes; without them it is the half.
pub const SHORT_MAX_BYTES: usize = 256;

const BLOCK_BYTES: usize = size_of::<Block>();

/// Copies `bytes` bytes, at most [`SHORT_MAX_BYTES`].
///
/// Of each class of lengths the first and the last blocks are copied, which
/// overlap where the length is no multiple of them: so a length takes one way
/// through a few comparisons, and no loop.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and
/// the two do not overlap. `bytes` is at most [`SHORT_MAX_BYTES`].
#[inline(always)]
pub(crate) unsafe fn copy(target: *mut u8, source: *const u8, bytes: usize) {
    debug_assert!(bytes <= SHORT_MAX_BYTES, "{bytes} bytes are no short copy");
    if bytes < BLOCK_BYTES {
        // SAFETY: as this function's caller has promised; below 16.
        unsafe { below_16(target, source, bytes) }
    } else if bytes <= 2 * BLOCK_BYTES {
        // SAFETY: from 16 to 32 bytes.
        unsafe { ends::<Block>(target, source, bytes) }
    } else {
        // SAFETY: from 33 to 256 bytes.
        unsafe { above_32(target, source, bytes) }
    }
}

/// # Safety
/// As for [`copy`], with `bytes` above 32.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn above_32(target: *mut u8, source: *const u8, bytes: usize) {
    if !x86::is_wide() {
        // SAFETY: the caller's promise.
        unsafe { without_wide_moves(target, source, bytes) }
    } else if bytes <= 64 {
        // SAFETY: from 33 to 64 bytes; the CPU has the moves.
        unsafe { x86::first_and_last_32(target, source, bytes) }
    } else if bytes <= 128 {
        // SAFETY: from 65 to 128 bytes; the CPU has the moves.
        unsafe { x86::first_and_last_64(target, source, bytes) }
    } else {
        // SAFETY: from 129 to 256 bytes; the CPU has the moves.
        unsafe { x86::first_and_last_128(target, source, bytes) }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use blocks_above_32 as above_32;

/// On a CPU of x86-64 without AVX; or this is the first such copy, which finds
/// out. Its caller keeps nothing across it, as across a call of `memcpy`.
///
/// # Safety
/// As for [`copy`], with `bytes` above 32.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[cold]
#[inline(never)]
unsafe fn without_wide_moves(target: *mut u8, source: *const u8, bytes: usize) {
    x86::find_width();
    // SAFETY: the caller's promise.
    unsafe { blocks_above_32(target, source, bytes) }
}

/// # Safety
/// As for [`copy`], with `bytes` above 32.
#[inline(always)]
unsafe fn blocks_above_32(target: *mut u8, source: *const u8, bytes: usize) {
    if bytes <= 4 * BLOCK_BYTES {
        // SAFETY: from 33 to 64 bytes, and two blocks are 32.
        unsafe { ends::<[Block; 2]>(target, source, bytes) }
    } else if bytes <= 8 * BLOCK_BYTES {
        // SAFETY: from 65 to 128 bytes, and four blocks are 64.
        unsafe { ends::<[Block; 4]>(target, source, bytes) }
    } else {
        // SAFETY: the caller's promise. Becomes a call of `memcpy`.
        unsafe { std::ptr::copy_nonoverlapping(source, target, bytes) }
    }
}

/// # Safety
/// As for [`copy`], with `bytes` below 16.
#[inline(always)]
unsafe fn below_16(target: *mut u8, source: *const u8, bytes: usize) {
    if bytes >= 8 {
        // SAFETY: from 8 to 15 bytes.
        unsafe { ends::<u64>(target, source, bytes) }
    } else if bytes >= 4 {
        // SAFETY: from 4 to 7 bytes.
        unsafe { ends::<u32>(target, source, bytes) }
    } else if bytes >= 2 {
        // SAFETY: 2 or 3 bytes.
        unsafe { ends::<u16>(target, source, bytes) }
    } else if bytes == 1 {
        // SAFETY: one byte of each.
        unsafe { block::<u8>(target, source) };
    }
}

/// Copies the first and the last block of type `B`; all that there is where
/// `bytes` is from one block to two.
///
/// # Safety
/// As for [`copy`]; `bytes` is at least the size of `B`, of which any bytes are a
/// value, all of them initialised.
#[inline(always)]
unsafe fn ends<B: Copy>(target: *mut u8, source: *const u8, bytes: usize) {
    let last = bytes - size_of::<B>();
    // SAFETY: at least one block is there.
    unsafe { block::<B>(target, source) };
    // SAFETY: `last` is `bytes` less one block: the block that ends with them.
    unsafe { block::<B>(target.wrapping_add(last), source.wrapping_add(last)) };
}

/// Copies one block.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of a `B`, of
/// which any bytes are a value.
#[inline(always)]
unsafe fn block<B: Copy>(target: *mut u8, source: *const u8) {
    // SAFETY: the caller's promise; any bytes are a `B`, wherever they are.
    let value = unsafe { source.cast::<B>().read_unaligned() };
    // SAFETY: likewise.
    unsafe { target.cast::<B>().write_unaligned(value) };
}
