//! Copies that go on when the call is over, and the slots of the status array
//! in which the driver tells of their end.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use lmt_core::buffer::Buffer;
use lmt_core::mechanism::Direction;

use super::abi;
use super::errors;
use super::slot::Seen;
use super::sys::{Device, STATUS_SLOTS, StatusArray};
use crate::error::KnemError;
use crate::types::{CopyId, RegionCookie};

/// A region as a copy found it, to be looked at again when the copy has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub cookie: RegionCookie,
    pub seen: Seen,
    pub direction: Direction,
}

/// A copy's end, as far as the driver has a say.
#[derive(Debug)]
pub(super) struct Ended {
    pub bytes: u64,
    pub local: Option<Buffer>,
    /// None for a copy that ended in the call, and was looked at then.
    pub used: [Option<Used>; 2],
}

#[derive(Debug)]
enum State {
    Free,
    /// Taken by a request that is being made.
    Taken,
    Pending(Ended),
    Ended(Ended),
}

#[derive(Debug)]
struct Slot {
    generation: NonZeroU32,
    state: State,
}

/// All asynchronous copies of one device.
#[derive(Debug)]
pub(super) struct Copies {
    array: Option<StatusArray>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The limit of a wait for a copy of no bytes; see [`Copies::wait`].
    pub backoff: Duration,
}

impl Default for Copies {
    fn default() -> Self {
        Self { array: None, slots: Vec::new(), free: Vec::new(), backoff: Duration::from_secs(30) }
    }
}

/// The slowest that copies in flight are taken to be, all together.
const SLOWEST_BYTES_PER_SECOND: u64 = 16 << 20;

/// Looks so often before it sleeps between two looks.
const LOOKS_AT_ONCE: u32 = 64;
const MAX_SLEEP: Duration = Duration::from_millis(1);

/// Lets others run between two looks, the longer the more there were.
fn pause(looks: u32) {
    match looks.checked_sub(LOOKS_AT_ONCE) {
        None => std::thread::yield_now(),
        Some(more) => std::thread::sleep(MAX_SLEEP.min(Duration::from_micros(20) * (more + 1))),
    }
}

impl Copies {
    /// Refuses where no slot is left.
    pub fn check_room(&self) -> Result<(), KnemError> {
        if self.free.is_empty() && self.slots.len() >= STATUS_SLOTS as usize {
            return Err(KnemError::TooMany { what: "copies in flight", most: STATUS_SLOTS });
        }
        Ok(())
    }

    /// Takes a slot, with the array mapped if the driver is to write there.
    pub fn take(&mut self, device: &Device, by_driver: bool) -> Result<u32, KnemError> {
        if by_driver && self.array.is_none() {
            let map = StatusArray::map(device);
            self.array = Some(map.map_err(|errno| errors::of_any("mapping the status array", errno))?);
        }
        self.check_room()?;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: NonZeroU32::MIN, state: State::Free });
            self.slots.len() as u32 - 1
        });
        self.slots[index as usize].state = State::Taken;
        if let Some(array) = &self.array {
            array.clear(index);
        }
        Ok(index)
    }

    /// Gives a slot back; its number is void.
    pub fn give_back(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.generation = slot.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
            slot.state = State::Free;
            self.free.push(index);
        }
    }

    /// What the driver says of the copy of a slot now.
    pub fn status(&self, index: u32) -> u8 {
        self.array.as_ref().map_or(abi::STATUS_FAILED, |array| array.load(index))
    }

    /// Waits for the driver to end the copy of a slot; returns its status, or
    /// nothing when it has taken so long that the slot will hardly be written
    /// any more. The driver has no way to be waited for but looking
    /// (knem-jpdc2013, 4.3).
    fn wait(&self, index: u32) -> Option<u8> {
        let pending = self.slots.iter().map(|slot| match &slot.state {
            State::Pending(copy) => copy.bytes,
            _ => 0,
        });
        // One thread may make all of them, one after the other.
        let seconds = pending.fold(0_u64, u64::saturating_add) / SLOWEST_BYTES_PER_SECOND;
        let limit = self.backoff.saturating_add(Duration::from_secs(seconds));
        let begun = Instant::now();
        (0..).find_map(|looks| match self.status(index) {
            abi::STATUS_PENDING if begun.elapsed() >= limit => Some(None),
            abi::STATUS_PENDING => {
                pause(looks);
                None
            }
            status => Some(Some(status)),
        })?
    }

    /// Waits for a copy that nobody polls, whose number is void afterwards;
    /// returns its status.
    ///
    /// # Errors
    /// [`KnemError::CopyLost`]; the copy counts as going on for ever.
    pub fn wait_and_give_back(&mut self, index: u32, copy: Ended) -> Result<u8, KnemError> {
        self.enter(index, copy, true);
        let status = self.wait(index).ok_or(KnemError::CopyLost)?;
        self.give_back(index);
        Ok(status)
    }

    /// Waits for the copies that go on from or into a region; returns those that
    /// have ended well, by slot.
    ///
    /// # Errors
    /// [`KnemError::CopyInFlight`] where one does not end.
    pub fn wait_for_region(&self, cookie: &RegionCookie) -> Result<Vec<u32>, KnemError> {
        let mut well = Vec::new();
        if self.free.len() == self.slots.len() {
            return Ok(well);
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let State::Pending(copy) = &slot.state else { continue };
            if copy.used.iter().flatten().any(|used| used.cookie == *cookie) {
                let status = self.wait(index as u32).ok_or(KnemError::CopyInFlight)?;
                if status == abi::STATUS_SUCCESS {
                    well.push(index as u32);
                }
            }
        }
        Ok(well)
    }

    /// The regions of a copy that goes on.
    pub fn used(&self, index: u32) -> [Option<Used>; 2] {
        match self.slots.get(index as usize).map(|slot| &slot.state) {
            Some(State::Pending(copy)) => copy.used,
            _ => [None, None],
        }
    }

    /// Remembers that a copy has ended well and that its regions were looked at
    /// then.
    pub fn set_ended(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        slot.state = match std::mem::replace(&mut slot.state, State::Free) {
            State::Pending(copy) => State::Ended(Ended { used: [None, None], ..copy }),
            other => other,
        };
    }

    /// Remembers what a slot's copy is, whether it goes on or has ended.
    pub fn enter(&mut self, index: u32, copy: Ended, goes_on: bool) -> CopyId {
        let slot = &mut self.slots[index as usize];
        slot.state = if goes_on { State::Pending(copy) } else { State::Ended(copy) };
        CopyId::new(index, slot.generation)
    }

    /// Keeps the memory that is lent to a copy until its end is told.
    pub fn lend(&mut self, id: CopyId, memory: Buffer) {
        if let Some(Slot { state: State::Pending(copy) | State::Ended(copy), .. }) =
            self.slots.get_mut(id.slot() as usize)
        {
            copy.local = Some(memory);
        }
    }

    /// The end of a copy, once; `None` while it goes on.
    pub fn poll(&mut self, id: CopyId) -> Result<Option<Ended>, KnemError> {
        let status = self.status(id.slot());
        let slot = self.slots.get_mut(id.slot() as usize).ok_or(KnemError::NoSuchCopy)?;
        if slot.generation != id.generation() {
            return Err(KnemError::NoSuchCopy);
        }
        let (ended, status) = match std::mem::replace(&mut slot.state, State::Free) {
            State::Pending(copy) if status == abi::STATUS_PENDING => {
                slot.state = State::Pending(copy);
                return Ok(None);
            }
            State::Pending(copy) => (copy, status),
            State::Ended(copy) => (copy, abi::STATUS_SUCCESS),
            other => {
                slot.state = other;
                return Err(KnemError::NoSuchCopy);
            }
        };
        self.give_back(id.slot());
        if status == abi::STATUS_SUCCESS { Ok(Some(ended)) } else { Err(KnemError::CopyFailed) }
    }

    /// Waits for all that go on, as the driver writes into memory lent to them;
    /// whether they have ended.
    pub fn wait_for_all(&self) -> bool {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| matches!(slot.state, State::Pending(_)))
            .all(|(index, _)| self.wait(index as u32).is_some())
    }
}
