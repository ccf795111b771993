//! Elements in memory that peers may use.
//!
//! Every operation of a domain is done under its lock, so they are atomic with each
//! other. Elements that a processor can change as one are changed so, and hence
//! atomic also with what the owner's own code does by atomic instructions, which
//! fi_atomic(3) does not promise. Others (of 16 bytes, or not at a multiple of their
//! length) are so with the domain's operations only.
#![allow(unsafe_code)] // Elements are reached by their addresses.

use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::value::{Bits, from_memory, to_memory};

/// Memory that holds elements, for the length of a call.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    address: usize,
    bytes: usize,
}

impl Target {
    /// The bytes from `address` on.
    ///
    /// # Safety
    /// They are valid for reading, and for writing if [`Target::update`] is to write
    /// them, while the value is used; nobody makes references to them meanwhile.
    /// Others may read and write them.
    pub const unsafe fn new(address: usize, bytes: usize) -> Self {
        Self { address, bytes }
    }

    /// Has `next` say what is to be in element number `index` of `element_bytes`
    /// bytes each, given what is there; none leaves it. Gives what was there. An
    /// element that is not there is 0, and nothing is asked.
    pub fn update(
        &self,
        index: usize,
        element_bytes: usize,
        mut next: impl FnMut(Bits) -> Option<Bits>,
    ) -> Bits {
        let place = index.checked_mul(element_bytes).and_then(|start| {
            let end = start.checked_add(element_bytes)?;
            (end <= self.bytes).then_some(self.address + start)
        });
        let Some(place) = place else { return 0 };
        let is_aligned = place.is_multiple_of(element_bytes);
        // Acquire and Release, so that who synchronizes by such an element (a lock,
        // say) sees what was written before it.
        macro_rules! as_one {
            ($atomic:ty, $word:ty) => {{
                let element = ptr::with_exposed_provenance_mut::<$word>(place);
                // SAFETY: within the target, whose bytes are valid; aligned, as was
                // checked; no reference to them but atomic ones.
                let element = unsafe { <$atomic>::from_ptr(element) };
                let updated = element.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                    next(old.into()).map(|new| new as $word)
                });
                updated.unwrap_or_else(|old| old).into()
            }};
        }
        match (element_bytes, is_aligned) {
            (1, _) => as_one!(AtomicU8, u8),
            (2, true) => as_one!(AtomicU16, u16),
            (4, true) => as_one!(AtomicU32, u32),
            (8, true) => as_one!(AtomicU64, u64),
            _ => by_bytes(place, element_bytes, next),
        }
    }
}

/// An element that no instruction changes as one.
fn by_bytes(place: usize, element_bytes: usize, next: impl FnOnce(Bits) -> Option<Bits>) -> Bits {
    let byte = |at: usize| {
        let byte = ptr::with_exposed_provenance_mut::<u8>(place + at);
        // SAFETY: within the target, as the caller has checked; a byte is aligned.
        unsafe { AtomicU8::from_ptr(byte) }
    };
    let mut bytes = [0; size_of::<Bits>()];
    let bytes = &mut bytes[..element_bytes.min(size_of::<Bits>())];
    // Relaxed: the domain's lock orders its operations, and nobody else is promised
    // anything of such an element.
    bytes.iter_mut().enumerate().for_each(|(at, one)| *one = byte(at).load(Ordering::Relaxed));
    let old = from_memory(bytes);
    if let Some(new) = next(old) {
        let new = to_memory(new);
        for (at, one) in new.iter().enumerate().take(bytes.len()) {
            byte(at).store(*one, Ordering::Relaxed);
        }
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds 1 to each element of memory that holds 1, 2, 3, ...
    fn incremented(element_bytes: usize, from: usize) -> Vec<u8> {
        let mut memory = [0_u64; 8];
        let address = memory.as_mut_ptr().expose_provenance() + from;
        // SAFETY: of the array, which nobody else uses.
        let target = unsafe { Target::new(address, 32) };
        for (index, element) in (0..32 / element_bytes).enumerate() {
            assert_eq!(target.update(index, element_bytes, |_| Some(element as Bits)), 0);
            assert_eq!(target.update(index, element_bytes, |old| Some(old + 1)), element as Bits);
        }
        assert_eq!(target.update(32 / element_bytes, element_bytes, |_| panic!("past the end")), 0);
        assert_eq!(target.update(usize::MAX, element_bytes, |_| panic!("past the end")), 0);
        (0..32).map(|at| target.update(at, 1, |_| None) as u8).collect()
    }

    #[test]
    fn elements_of_every_length_are_updated_wherever_they_are() {
        for element_bytes in [1, 2, 4, 8, 16] {
            for from in [0, 1, 8] {
                let bytes = incremented(element_bytes, from);
                for (at, element) in bytes.chunks(element_bytes).enumerate() {
                    assert_eq!(from_memory(element), at as Bits + 1, "{element_bytes} from {from} on");
                }
            }
        }
    }
}
