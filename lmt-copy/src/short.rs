//! Copies of few bytes, inlined where they are called.
#![allow(unsafe_code)] // Follows the addresses that its caller vouches for.

use crate::blocks::Block;

/// The longest copy that is made inline, in bytes.
///
/// What the C library gains from wider registers outweighs its call from 64
/// bytes on; `docs/copy.md` has the figures.
pub const SHORT_MOST_BYTES: usize = 48;

const BLOCK_BYTES: usize = size_of::<Block>();

/// Copies `bytes` bytes, at most [`SHORT_MOST_BYTES`].
///
/// Of each class of lengths the first and the last blocks are copied, which
/// overlap where the length is no multiple of them: so a length takes one way
/// through at most four comparisons, and no loop.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `bytes` bytes, and
/// the two do not overlap. `bytes` is at most [`SHORT_MOST_BYTES`].
#[inline(always)]
pub(crate) unsafe fn copy(target: *mut u8, source: *const u8, bytes: usize) {
    debug_assert!(bytes <= SHORT_MOST_BYTES, "{bytes} bytes are no short copy");
    if bytes < BLOCK_BYTES {
        // SAFETY: as this function's caller has promised; below 16.
        unsafe { below_16(target, source, bytes) }
        return;
    }
    if bytes > 2 * BLOCK_BYTES {
        let (to, from) = (target.wrapping_add(BLOCK_BYTES), source.wrapping_add(BLOCK_BYTES));
        // SAFETY: more than 32 bytes are there, so a block from byte 16 on is.
        unsafe { block::<Block>(to, from) };
    }
    // SAFETY: from 16 to 48 bytes: with the middle block above, the first and
    // the last cover all.
    unsafe { ends::<Block>(target, source, bytes) };
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
