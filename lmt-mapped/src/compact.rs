//! The cookie of contiguous memory from the message's begin on, in 16 bytes: so its announcement
//! takes one cache line, where others take a cell besides, which a receiver fetches behind it.

use lmt_core::mechanism::Cookie;
use lmt_core::shared_buffer::{GENERATION_BITS, LEASES};

use crate::cookie::{Head, WirePart};

/// Where each number stands, the lowest first, and how many bits it has.
const OFFSET_BITS: u32 = 40;
const LINE_BITS: u32 = LEASES.ilog2();
const ARENA_BITS: u32 = 20;
const OPENED_BITS: u32 = 32;
const _: () = assert!(
    OFFSET_BITS + LINE_BITS + GENERATION_BITS + ARENA_BITS + OPENED_BITS == 128 && LEASES.is_power_of_two()
);

/// The cookie, if the numbers fit.
pub(crate) fn write(head: &Head, [offset, _]: WirePart) -> Option<Cookie> {
    let Head { arena, line, generation, count, start, list_arena, opened } = *head;
    let fits = |number: u64, bits: u32| number >> bits == 0;
    let is_one = count == 1 && start == 0 && list_arena == 0 && fits(offset, OFFSET_BITS);
    let is_short = fits(arena.into(), ARENA_BITS)
        && fits(generation.into(), GENERATION_BITS)
        && fits(line.into(), LINE_BITS);
    if !is_one || !is_short {
        return None;
    }
    let mut packed = u128::from(opened);
    for (number, bits) in [(arena, ARENA_BITS), (generation, GENERATION_BITS), (line, LINE_BITS)] {
        packed = packed << bits | u128::from(number);
    }
    Cookie::new(&(packed << OFFSET_BITS | u128::from(offset)).to_ne_bytes())
}

/// What stands in such a cookie (untrusted), and the offset in the arena; nothing where it is
/// another.
pub(crate) fn read(cookie: &Cookie) -> Option<(Head, u64)> {
    let mut packed = u128::from_ne_bytes(cookie.as_bytes().try_into().ok()?);
    let mut take = |bits: u32| {
        let number = (packed & ((1 << bits) - 1)) as u64;
        packed >>= bits;
        number
    };
    let offset = take(OFFSET_BITS);
    let [line, generation, arena, opened] =
        [LINE_BITS, GENERATION_BITS, ARENA_BITS, OPENED_BITS].map(|bits| take(bits) as u32);
    Some((Head { arena, line, generation, count: 1, start: 0, list_arena: 0, opened }, offset))
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
