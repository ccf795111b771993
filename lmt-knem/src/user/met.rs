//! Those whose regions can be reached: their table, and the ways into their
//! memory.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lmt_cma::vm::{self, CopyError};
use lmt_core::buffer::{Buffer, Segment};
use lmt_core::errno_advice::advice;
use lmt_core::mechanism::{Fault, Hello, RegisteredCopy};
use lmt_core::process::PeerProcess;
use lmt_core::region::{
    Direction, Entry, OwnerMemory, Place, RegionAccess, RegionError, RegionKey, RemoteTable, attach_shared,
};
use lmt_core::shared_memory::SharedMemory;
use nix::errno::Errno;

use super::name::Name;
use super::sys;
use crate::driver::DYING;
use crate::error::KnemError;

/// Mappings kept for each owner.
const MAX_MAPPED: usize = 32;

/// An owner of regions.
#[derive(Debug)]
pub(super) struct RegionOwner {
    pub table: RemoteTable,
    process: Arc<PeerProcess>,
    /// Allocated regions that are mapped, by handle; the one used last is at
    /// the back.
    mapped: Mutex<VecDeque<(u64, Arc<SharedMemory>)>>,
    /// The list of pieces that was fetched last, and of which region.
    list: Mutex<Option<(u64, Arc<[Segment]>)>>,
    /// Since when the kernel does not find the process, which does not come
    /// back.
    vanished: Mutex<Option<Instant>>,
}

/// Locks; what another thread left when it panicked is still in order.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(why: &str) -> KnemError {
    KnemError::Introduction(why.to_owned())
}

impl RegionOwner {
    /// Takes an introduction, which is untrusted: with the table's descriptor,
    /// and `process` where it came from; or without, and then the process is
    /// the one that the name says, if it shows itself to be it.
    pub fn new(process: Arc<PeerProcess>, introduction: Hello) -> Result<Self, KnemError> {
        let name = Name::parse(&introduction.bytes)
            .ok_or_else(|| refused("its bytes are not what this version writes"))?;
        let mut descriptors = introduction.descriptors.into_iter();
        match (descriptors.next(), descriptors.next()) {
            (Some(table), None) => Ok(Self::with(RemoteTable::attach(table, name.owner())?, process)),
            (None, _) => Self::by_name(&name),
            _ => Err(refused("it has more than one descriptor")),
        }
    }

    fn with(table: RemoteTable, process: Arc<PeerProcess>) -> Self {
        Self { table, process, mapped: Mutex::default(), list: Mutex::default(), vanished: Mutex::default() }
    }

    /// Finds the process and fetches the table from it.
    ///
    /// A pid may be another's by now, and a descriptor's number something else.
    /// So the pidfd comes first; what is fetched by it must be the table of the
    /// very id; and the process must have that table mapped where the name
    /// says, while its pidfd says that the pid still is its own.
    fn by_name(name: &Name) -> Result<Self, KnemError> {
        let pid = name.pid().ok_or_else(|| refused("it has no pid"))?;
        let pidfd = sys::pidfd_open(pid).map_err(|errno| match errno {
            Errno::ESRCH => KnemError::OwnerDead,
            _ => of_system("pidfd_open", errno),
        })?;
        let table = sys::pidfd_getfd(pidfd.as_fd(), name.descriptor()).map_err(|errno| match errno {
            // It had the pid a moment ago.
            Errno::ESRCH => KnemError::OwnerDead,
            _ => of_getfd(errno),
        })?;
        let table = RemoteTable::attach(table, name.owner())?;
        let process = PeerProcess::new(pid, Some(pidfd));
        let expected = table.head_bytes();
        let mut seen = expected.map(|_| 0);
        let read = vm::read_bytes(&process, name.address(), &mut seen);
        read.map_err(|error| match error {
            // As above.
            CopyError::Refused(Errno::ESRCH) => KnemError::OwnerDead,
            _ => of_copy(error, &process),
        })?;
        if seen != expected {
            return Err(refused("the process that it names does not have that table"));
        }
        Ok(Self::with(table, Arc::new(process)))
    }

    /// Whether the owner runs.
    pub fn check_alive(&self) -> Result<(), KnemError> {
        if self.process.is_alive() { Ok(()) } else { Err(KnemError::OwnerDead) }
    }

    /// Begins a copy with what is known of the region's pieces from before.
    pub fn begin(
        &self,
        key: &RegionKey,
        direction: Direction,
        offset: u64,
        bytes: u64,
    ) -> Result<RegionAccess, KnemError> {
        let mut access = RegionAccess::begin(&self.table, key, direction, offset, bytes)?;
        if bytes == 0 {
            self.check_alive()?;
        }
        if let Some((handle, list)) = &*lock(&self.list)
            && *handle == key.handle()
        {
            access.set_list(Arc::clone(list));
        }
        Ok(access)
    }

    /// Remembers what a copy has found out of the region's pieces.
    pub fn end(&self, key: &RegionKey, access: &RegionAccess) {
        if let Some(list) = access.list() {
            *lock(&self.list) = Some((key.handle(), Arc::clone(list)));
        }
    }

    fn map(&self, key: &RegionKey, entry: &Entry) -> Result<Arc<SharedMemory>, KnemError> {
        let Place::Shared { descriptor } = entry.place else { return Err(KnemError::NotRegistered) };
        let descriptor = i32::try_from(descriptor).map_err(|_| KnemError::NotRegistered)?;
        let fetch = |pidfd: &dyn AsFd| sys::pidfd_getfd(pidfd.as_fd(), descriptor);
        let fetched: Result<OwnedFd, Errno> = match (self.process.pidfd(), self.process.pid()) {
            (Some(pidfd), _) => fetch(&pidfd),
            (None, Some(pid)) => sys::pidfd_open(pid).and_then(|pidfd| fetch(&pidfd)),
            (None, None) => Err(Errno::ESRCH),
        };
        let fetched = fetched.map_err(|errno| match errno {
            // The number was the region's when the entry was read.
            Errno::EBADF => KnemError::NotRegistered,
            Errno::ESRCH => self.not_found(of_getfd(errno)),
            _ => of_getfd(errno),
        })?;
        let memory = attach_shared(fetched, key);
        // Only of a region that is still there was that its descriptor.
        self.table.revalidate(key, entry)?;
        Ok(Arc::new(memory?))
    }

    /// Why the kernel does not find the process: it is dead, or dying, or the
    /// reason is `otherwise`. Waits for nothing; who asks again knows at last.
    fn not_found(&self, otherwise: KnemError) -> KnemError {
        if !self.process.is_alive() {
            return KnemError::OwnerDead;
        }
        // Without a number here (another pid namespace) it is found by none, and
        // that says nothing of its end.
        if self.process.pid().is_none() || self.process.pidfd().is_none() {
            return otherwise;
        }
        let since = *lock(&self.vanished).get_or_insert_with(Instant::now);
        if since.elapsed() < DYING { KnemError::OwnerDying } else { otherwise }
    }

    /// Whether `process` is the very process behind this owner.
    fn is_of(&self, process: &Arc<PeerProcess>) -> bool {
        // One of a number while the other, of the same number, runs is the same.
        Arc::ptr_eq(&self.process, process)
            || (process.pid().is_some() && process.pid() == self.process.pid())
    }

    /// Whether `newer`, which has the same owner's id, may take this one's
    /// place: it is the same process, or this one is dead.
    pub fn may_be_replaced_by(&self, newer: &Self) -> bool {
        !self.process.is_alive() || self.is_of(&newer.process)
    }
}

/// Calls `work` until its answer is another than that an owner is dying, which
/// is within [`DYING`]. To be called with no lock held.
pub(super) fn wait_for_death<T>(mut work: impl FnMut() -> Result<T, KnemError>) -> Result<T, KnemError> {
    loop {
        match work() {
            Err(KnemError::OwnerDying) => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    }
}

/// The ways into an owner's memory.
#[derive(Debug)]
pub(super) struct OwnerAccess<'a>(pub &'a RegionOwner);

impl OwnerMemory for OwnerAccess<'_> {
    type Error = KnemError;

    fn copy(&mut self, local: &mut Buffer, copy: &RegisteredCopy<'_>) -> Result<u64, KnemError> {
        let copied = vm::copy_registered(&self.0.process, local, copy);
        let Some(error) = copied.error else { return Ok(copied.bytes) };
        let told = of_copy(error, &self.0.process);
        Err(if matches!(error, CopyError::Refused(Errno::ESRCH)) { self.0.not_found(told) } else { told })
    }

    fn mapping(&mut self, key: &RegionKey, entry: &Entry) -> Result<Option<Arc<SharedMemory>>, KnemError> {
        // Mapped memory outlives its owner, whose end nobody writes into the
        // table when it is killed.
        self.0.check_alive()?;
        let mut mapped = lock(&self.0.mapped);
        let known = mapped.iter().position(|(handle, _)| *handle == key.handle());
        let found = match known.and_then(|at| mapped.remove(at)) {
            Some((_, memory)) => memory,
            None => {
                let table = &self.0.table;
                // One that is used up may still be in use here.
                mapped
                    .retain(|(handle, _)| !matches!(table.key_of(*handle), Err(RegionError::NotRegistered)));
                self.0.map(key, entry)?
            }
        };
        if mapped.len() >= MAX_MAPPED {
            mapped.pop_front();
        }
        mapped.push_back((key.handle(), Arc::clone(&found)));
        Ok(Some(found))
    }
}

/// What an error of a copy by the kernel means.
fn of_copy(error: CopyError, process: &PeerProcess) -> KnemError {
    match vm::fault_of(error, process) {
        Fault::Demote { errno, .. } if errno == Errno::EFAULT as i32 => {
            KnemError::BadMemory("local side or of the region")
        }
        Fault::Demote { errno, for_good: true, sentence } => {
            KnemError::Unavailable { errno: Some(Errno::from_raw(errno)), sentence }
        }
        // Another copy may go well: the kernel was short of memory.
        Fault::Demote { errno, for_good: false, sentence } => {
            KnemError::Refused { errno: Errno::from_raw(errno), sentence }
        }
        _ => KnemError::OwnerDead,
    }
}

fn of_getfd(errno: Errno) -> KnemError {
    let sentence = match errno {
        Errno::EBADF => return refused("the process that it names has no such descriptor (any more)"),
        Errno::ESRCH => "the process is not found here; both must share one pid namespace",
        Errno::EPERM => {
            "the kernel does not let this process take the other's table of regions (pidfd_getfd); both must run as \
             the same user in one user namespace, the other dumpable, no seccomp filter may forbid the call, and where \
             /proc/sys/kernel/yama/ptrace_scope is 1 (Yama) it must name this process, or an ancestor of this \
             one, by PR_SET_PTRACER"
        }
        Errno::ENOSYS => "the kernel lacks pidfd_getfd; it needs Linux 5.6",
        _ => return of_system("pidfd_getfd", errno),
    };
    KnemError::Unavailable { errno: Some(errno), sentence: format!("{sentence} ({errno})") }
}

pub(super) fn of_system(call: &'static str, errno: Errno) -> KnemError {
    KnemError::System { call, errno, hint: advice(call, errno) }
}

#[cfg(test)]
#[path = "met_tests.rs"]
mod tests;
