//! The thread that makes asynchronous copies, and the array in which it tells
//! of their end (knem-jpdc2013, section 4.3).

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use lmt_core::buffer::Buffer;
use lmt_core::errno_advice::thread_advice;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::{Pid, gettid};

use super::copying::{Between, Inline, Regions};
use super::met::lock;
use crate::error::KnemError;
use crate::types::{Binding, Copied, CopyId};

/// Copies that may be in flight, or ended and not asked for, at a time.
pub const STATUS_SLOTS: u32 = 4096;

/// What a status says, with KNEM's numbers.
const PENDING: u8 = 0;
const SUCCESS: u8 = 1;
const FAILED: u8 = 2;

/// What the copies of all slots have come to.
#[derive(Debug)]
struct Board {
    /// Written once for each copy, when it has ended.
    statuses: Box<[AtomicU8]>,
    ends: Mutex<Vec<Option<End>>>,
}

type End = Result<Copied, KnemError>;

impl Board {
    fn new() -> Self {
        let slots = 0..STATUS_SLOTS as usize;
        Self { statuses: slots.map(|_| AtomicU8::new(PENDING)).collect(), ends: Mutex::new(Vec::new()) }
    }

    fn tell(&self, slot: u32, end: End) {
        let status = if end.is_ok() { SUCCESS } else { FAILED };
        let slot = slot as usize;
        {
            let mut ends = lock(&self.ends);
            if ends.len() <= slot {
                ends.resize_with(slot + 1, || None);
            }
            ends[slot] = Some(end);
        }
        if let Some(told) = self.statuses.get(slot) {
            // Release pairs with the Acquire in `ended`: the end, and the
            // bytes copied, are there.
            told.store(status, Ordering::Release);
        }
    }

    /// The end of a slot's copy, if it has come. One load while it has not.
    fn ended(&self, slot: u32) -> Option<End> {
        let status = self.statuses.get(slot as usize)?;
        // Acquire: as above.
        if status.load(Ordering::Acquire) == PENDING {
            return None;
        }
        // Relaxed: the slot is given to its next copy by this thread.
        status.store(PENDING, Ordering::Relaxed);
        lock(&self.ends).get_mut(slot as usize).and_then(Option::take)
    }
}

/// A copy that has begun.
#[derive(Debug)]
pub(super) enum Work {
    Inline(Inline, Buffer),
    Between(Between),
}

impl Work {
    pub fn run(self, regions: &Regions) -> End {
        match self {
            Self::Inline(copy, mut local) => {
                let bytes = regions.run_inline(&mut local, copy)?;
                Ok(Copied { bytes, local: Some(local) })
            }
            Self::Between(copy) => Ok(Copied { bytes: regions.run_between(copy)?, local: None }),
        }
    }
}

/// Does the work of one copy; one that panics has failed, and the next go on.
fn end_of(work: impl FnOnce() -> End) -> End {
    // What the work has left behind is in order: its locks guard nothing that is
    // half done, and its own state is gone with it. The hook has reported the
    // panic.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(KnemError::CopyFailed))
}

/// The thread, with what it is told by.
#[derive(Debug)]
struct Helper {
    jobs: Sender<(u32, Work)>,
    id: Pid,
    thread: JoinHandle<()>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    generation: NonZeroU32,
    is_taken: bool,
}

/// All asynchronous copies of one driver. Dropping it waits for those that go
/// on.
#[derive(Debug)]
pub(super) struct Offload {
    regions: Arc<Regions>,
    board: Arc<Board>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    helper: Option<Helper>,
}

impl Offload {
    pub fn new(regions: Arc<Regions>) -> Self {
        Self { regions, board: Arc::new(Board::new()), slots: Vec::new(), free: Vec::new(), helper: None }
    }

    /// Refuses where no slot is left; to be asked before a copy begins.
    pub fn check_room(&self) -> Result<(), KnemError> {
        if self.free.is_empty() && self.slots.len() >= STATUS_SLOTS as usize {
            return Err(KnemError::TooMany { what: "copies in flight", most: STATUS_SLOTS });
        }
        Ok(())
    }

    fn take_slot(&mut self) -> CopyId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: NonZeroU32::MIN, is_taken: false });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.is_taken = true;
        CopyId::new(index, slot.generation)
    }

    /// Makes a copy at once and keeps its end to be asked for. One that fails
    /// is told of here and now.
    pub fn run(&mut self, work: Work) -> Result<CopyId, KnemError> {
        let end = work.run(&self.regions)?;
        let id = self.take_slot();
        self.board.tell(id.slot(), Ok(end));
        Ok(id)
    }

    /// Gives a copy to the thread, which is there ([`Offload::wake`]).
    pub fn hand_over(&mut self, work: Work) -> CopyId {
        let id = self.take_slot();
        let left = match &self.helper {
            Some(helper) => helper.jobs.send((id.slot(), work)).map_err(|lost| lost.0.1).err(),
            None => Some(work),
        };
        // The thread has ended, which it never does by itself.
        if let Some(work) = left {
            self.board.tell(id.slot(), work.run(&self.regions));
        }
        id
    }

    /// Makes the thread, if it is not there.
    pub fn wake(&mut self) -> Result<(), KnemError> {
        if self.helper.is_some() {
            return Ok(());
        }
        let (jobs, todo) = channel::<(u32, Work)>();
        let (tell, told): (SyncSender<Pid>, _) = sync_channel(1);
        let (regions, board) = (Arc::clone(&self.regions), Arc::clone(&self.board));
        // Signals are the application's threads' business. The thread inherits
        // the mask, so that it is there from the thread's first moment. The
        // masks are valid, so neither call can fail.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let spawned = std::thread::Builder::new().name("lmt-knem".to_owned()).spawn(move || {
            let _heard = tell.send(gettid());
            for (slot, work) in todo {
                board.tell(slot, end_of(|| work.run(&regions)));
            }
        });
        if let Ok(before) = before {
            let _restored = before.thread_set_mask();
        }
        let failed = |errno| KnemError::System {
            call: "making the thread for copies",
            errno,
            hint: thread_advice(errno),
        };
        let thread = spawned.map_err(|e| failed(Errno::from_raw(e.raw_os_error().unwrap_or(0))))?;
        let id = told.recv().map_err(|_| failed(Errno::ESRCH))?;
        self.helper = Some(Helper { jobs, id, thread });
        Ok(())
    }

    /// The end of a copy, once; `None` while it goes on.
    pub fn poll(&mut self, id: CopyId) -> Result<Option<Copied>, KnemError> {
        let slot = self.slots.get_mut(id.slot() as usize);
        let slot = slot.filter(|slot| slot.is_taken && slot.generation == id.generation());
        let slot = slot.ok_or(KnemError::NoSuchCopy)?;
        let has_ended = self.helper.as_ref().is_some_and(|helper| helper.thread.is_finished());
        let Some(end) = self.board.ended(id.slot()).or_else(|| {
            // Nobody makes it any more: what was not told before never will be.
            has_ended.then_some(Err(KnemError::CopyFailed))
        }) else {
            return Ok(None);
        };
        slot.is_taken = false;
        slot.generation = slot.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.free.push(id.slot());
        end.map(Some)
    }

    /// Binds the thread to CPUs, as seen by the caller now.
    pub fn bind(&mut self, binding: &Binding) -> Result<(), KnemError> {
        let refused = |errno| KnemError::System {
            call: "binding the thread for copies",
            errno,
            hint: "name CPUs that are online and that this process may use (sched_setaffinity)".to_owned(),
        };
        let cpus = cpus_of(binding).map_err(refused)?;
        self.wake()?;
        let Some(helper) = &self.helper else { return Ok(()) };
        sched_setaffinity(helper.id, &cpus).map_err(refused)
    }
}

/// The CPUs that a binding means.
fn cpus_of(binding: &Binding) -> Result<CpuSet, Errno> {
    let own = || sched_getaffinity(Pid::from_raw(0));
    match binding {
        Binding::Current => own(),
        Binding::CurrentReversed => {
            let (own, mut others) = (own()?, CpuSet::new());
            for cpu in 0..CpuSet::count() {
                if !own.is_set(cpu)? {
                    others.set(cpu)?;
                }
            }
            Ok(others)
        }
        Binding::Custom(mask) => {
            let mut cpus = CpuSet::new();
            let bits = mask.iter().enumerate().flat_map(|(word, bits)| {
                (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
            });
            for cpu in bits {
                cpus.set(cpu)?;
            }
            Ok(cpus)
        }
    }
}

impl Drop for Offload {
    fn drop(&mut self) {
        if let Some(Helper { jobs, thread, .. }) = self.helper.take() {
            // It makes what was handed over, and ends.
            drop(jobs);
            // A panic in it has been reported by the panic hook.
            let _joined = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "offload_tests.rs"]
mod tests;
