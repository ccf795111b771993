//! Registered memory as its own process sees it: what is done there for peers that
//! ask for it by message.

use std::collections::HashMap;

use lmt::Protection;

use crate::abi::Errno;
use crate::atomic::Action;
use crate::atomic::value::{combine, from_memory, to_memory};
use crate::lend::Lent;
use crate::touch::{FaultSafeCopy, check};

/// A domain's memory that peers may use, by its key.
#[derive(Debug, Default)]
pub struct Exposed(HashMap<u64, (Lent, Protection)>);

impl Exposed {
    /// Takes memory in.
    pub fn insert(&mut self, key: u64, lent: Lent, protection: Protection) {
        self.0.insert(key, (lent, protection));
    }

    /// Takes memory out; nothing is done there from now on.
    pub fn remove(&mut self, key: u64) {
        self.0.remove(&key);
    }

    /// Memory in which a peer may do what it `needs`.
    fn reach(&self, key: u64, offset: u64, bytes: u64, needs: Protection) -> Result<&Lent, Errno> {
        let (lent, has) = self.0.get(&key).ok_or(Errno::NOKEY)?;
        if (needs.read && !has.read) || (needs.write && !has.write) {
            return Err(Errno::ACCES);
        }
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= lent.segment().bytes as u64);
        if fits { Ok(lent) } else { Err(Errno::INVAL) }
    }

    /// Writes there the first bytes of a write of `whole_bytes` bytes.
    ///
    /// # Errors
    /// [`Errno::NOKEY`], [`Errno::ACCES`], [`Errno::INVAL`] past the end, or [`Errno::FAULT`]
    /// where the memory is not what was registered.
    pub fn write(
        &self,
        touch: &mut FaultSafeCopy,
        (key, offset): (u64, u64),
        whole_bytes: u64,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let whole_bytes = whole_bytes.max(bytes.len() as u64);
        let lent = self.reach(key, offset, whole_bytes, Protection::WRITE)?;
        lent.write(touch, offset as usize, bytes)
    }

    /// Appends the first `bytes` bytes of a read of `whole_bytes` bytes to `into`.
    ///
    /// # Errors
    /// As [`Exposed::write`].
    pub fn read(
        &self,
        touch: &mut FaultSafeCopy,
        (key, offset): (u64, u64),
        whole_bytes: u64,
        bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let lent = self.reach(key, offset, whole_bytes.max(bytes as u64), Protection::READ)?;
        let start = into.len();
        into.resize(start + bytes, 0);
        lent.read(touch, offset as usize, &mut into[start..])
    }

    /// Does an atomic operation on `count` elements, whose operands are side by side,
    /// and those that are compared behind them. Appends what was there to `into` if
    /// it fetches that.
    ///
    /// # Errors
    /// As [`Exposed::write`]; [`Errno::INVAL`] also of operands that are too few or
    /// too many.
    pub fn atomic(
        &self,
        (action, count): (Action, usize),
        (key, offset): (u64, u64),
        operands: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let element_bytes = action.datatype.bytes();
        if count == 0 || count > action.most() || operands.len() != count * element_bytes * action.operands()
        {
            return Err(Errno::INVAL);
        }
        let bytes = (count * element_bytes) as u64;
        let needs = Protection { read: action.fetches(), write: action.writes() };
        let lent = self.reach(key, offset, bytes, needs)?;
        check(lent.part(offset as usize, bytes as usize), needs.write)?;
        let target = lent.elements(offset, bytes).ok_or(Errno::INVAL)?;
        let operand = |at: usize| {
            let start = at * element_bytes;
            operands.get(start..start + element_bytes).map_or(0, from_memory)
        };
        for at in 0..count {
            let (new, compare) = (operand(at), operand(count + at));
            let old = target.update(at, element_bytes, |old| combine(action, old, new, compare));
            if action.fetches() {
                into.extend_from_slice(&to_memory(old)[..element_bytes]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "exposed_tests.rs"]
mod tests;
