//! What the tests of the user driver between processes have in common.
#![allow(unsafe_code)] // Lends the tests' own memory.
#![allow(dead_code)] // Each of them uses a part.

use std::time::Duration;

use lmt_conformance::require;
use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::mechanism::Direction;
use lmt_core::region::Protection;
use lmt_knem::user::UserDriver;
use lmt_knem::{CopyFlags, Driver, InlineCopy, KnemError, Length, RegionCookie, Uses};

use crate::line::Line;

pub const LIMIT: Duration = Duration::from_secs(40);
/// Where an error is promised soon, the test allows a loaded machine some more.
pub const SOON: Duration = Duration::from_secs(5);

pub fn open() -> UserDriver {
    UserDriver::open().expect("address space")
}

pub fn lend(memory: &mut [u8]) -> Buffer {
    // SAFETY: the tests keep the memory longer than the buffer, and look at it
    // only when nothing copies.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], Access::Write) }.expect("a slice")
}

pub fn lend_pieces(memory: &mut [u8], piece_bytes: usize) -> Buffer {
    let pieces: Vec<Segment> = memory.chunks_mut(piece_bytes).map(Segment::of_mut).collect();
    // SAFETY: as in `lend`.
    unsafe { Buffer::new(&pieces, Access::Write) }.expect("slices")
}

pub fn filled(seed: u64, bytes: usize) -> Vec<u8> {
    let byte = |at: u64| ((at ^ seed << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    (0..bytes as u64).map(byte).collect()
}

pub fn inline(direction: Direction, region: RegionCookie, region_offset: u64, length: Length) -> InlineCopy {
    InlineCopy { direction, region, region_offset, local_offset: 0, length }
}

pub fn get(
    driver: &mut UserDriver,
    region: RegionCookie,
    offset: u64,
    into: &mut [u8],
) -> Result<u64, KnemError> {
    let copy = inline(Direction::Get, region, offset, Length::Bounded(into.len() as u64));
    driver.inline_copy(&mut lend(into), &copy, CopyFlags::NONE)
}

pub fn put(
    driver: &mut UserDriver,
    region: RegionCookie,
    offset: u64,
    from: &[u8],
) -> Result<u64, KnemError> {
    let copy = inline(Direction::Put, region, offset, Length::Bounded(from.len() as u64));
    driver.inline_copy(&mut lend(&mut from.to_vec()), &copy, CopyFlags::NONE)
}

pub fn send_cookie(line: &mut Line, cookie: RegionCookie) {
    line.send(&cookie.to_bytes());
}

pub fn receive_cookie(line: &mut Line) -> RegionCookie {
    RegionCookie::from_bytes(line.receive().try_into().expect("a cookie"))
}

/// Introduces this process to rank 0.
pub fn introduce(driver: &mut UserDriver, line: &mut Line) {
    line.send(&driver.introduce().expect("a descriptor").bytes);
}

/// Takes the introduction of the process at the other end; says why where the
/// kernel does not allow it.
pub fn meet(driver: &mut UserDriver, line: &mut Line) -> bool {
    match driver.add_process_by_name(&line.receive()) {
        Ok(_) => true,
        Err(error) => {
            require::skipped("cma", &error.to_string());
            false
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    Whole,
    Pieces,
    Allocated,
}

pub const MEMORIES: [Memory; 3] = [Memory::Whole, Memory::Pieces, Memory::Allocated];
pub const BYTES: usize = (3 << 20) + 5;

/// Declares `memory`, or allocates as much with the same content.
pub fn declare(
    driver: &mut UserDriver,
    kind: Memory,
    memory: &mut [u8],
    protection: Protection,
) -> RegionCookie {
    let lent = match kind {
        Memory::Whole => lend(memory),
        Memory::Pieces => lend_pieces(memory, 701),
        Memory::Allocated => {
            let region = driver.allocate_region(memory.len(), protection, Uses::Many).expect("memory");
            if protection.write {
                assert_eq!(put(driver, region, 0, memory).expect("its own"), memory.len() as u64);
            }
            return region;
        }
    };
    driver.create_region(lent, protection, Uses::Many).expect("room")
}
