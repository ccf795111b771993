//! The trait behind which every copy engine stands.

use lmt_core::config_key::{Key, Value};
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::doorbell::Doorbell;
use lmt_core::mechanism::{Fault, Needs, Unavailable};

use crate::places::{CopyList, Place};

/// What an engine's copies may name. Each end of a copy is looked at alone,
/// and at most one of the two may be a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    /// Memory of this process.
    pub mapped: bool,
    /// A peer's memory, to read.
    pub peer_read: bool,
    /// A peer's memory, to write.
    pub peer_write: bool,
    /// KNEM regions.
    pub regions: bool,
}

impl Reach {
    /// Whether every copy of `list` has ends that this reach holds.
    pub fn holds(self, list: &CopyList) -> bool {
        let peer = list.peer().is_some();
        list.copies().iter().all(|copy| match (copy.from(), copy.to()) {
            (Place::Peer(_), Place::Peer(_)) => false,
            (from, to) => {
                self.holds_place(from, self.peer_read && peer)
                    && self.holds_place(to, self.peer_write && peer)
            }
        })
    }

    const fn holds_place(self, place: Place, peer: bool) -> bool {
        match place {
            Place::Mapped(_) => self.mapped,
            Place::Peer(_) => peer,
            Place::Region { .. } => self.regions,
        }
    }
}

/// Why a list was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The engine does not work here (any more).
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The list names a place that the engine cannot reach.
    #[error("the engine cannot reach a place that the list names; ask its reach() first")]
    OutOfReach,
}

/// Why a list ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyFailure {
    /// The kernel or the device refused a copy.
    #[error("the copy was refused: {}", nix::errno::Errno::from_raw(*.errno))]
    Refused {
        /// Why, as an errno.
        errno: i32,
    },
    /// The peer whose memory the list names is dead.
    #[error("the peer has died")]
    PeerDead,
    /// It was cancelled.
    #[error("the copy was cancelled")]
    Cancelled,
    /// The engine itself has ended; nothing more will come from it.
    #[error("the copy engine has ended; make another endpoint, or use another mechanism")]
    EngineGone,
}

impl CopyFailure {
    /// What it means for a transfer by the engine of this name.
    pub fn to_fault(self, engine: &str) -> Fault {
        let (errno, for_good) = match self {
            Self::PeerDead => return Fault::PeerDead,
            Self::Refused { errno } => (errno, errno == libc::EPERM || errno == libc::ENOSYS),
            Self::EngineGone => (0, true),
            Self::Cancelled => (0, false),
        };
        Fault::Demote { errno, for_good, sentence: format!("{engine}: {self}") }
    }
}

/// Whether a list is still worked on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is waiting or being copied.
    Running,
    /// Every byte is where it was to go.
    Done,
    /// It ended early.
    Failed(CopyFailure),
}

/// How far a list is.
///
/// Once the state is not [`State::Running`], the engine is quiet about the
/// list: it will never again touch memory that the list names, and all that it
/// has written is visible to the thread that was told so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes copied for good, from the beginning of the list on: they are
    /// where they were to go, and visible to the thread that was told so. Some
    /// behind them may have been copied too. It never decreases.
    pub bytes: u64,
    /// Whether that is all.
    pub state: State,
}

/// Something that copies in the background, in order.
///
/// **What is lent.** From `submit` on the engine may touch the memory that the
/// list names, until [`Progress`] says that the list has ended, or `quiesce`
/// has returned, or the job has been dropped, which does what `quiesce` does.
/// An implementation must keep this also on its own drop and on every error,
/// for the memory is given back to its owner then. A job that outlives its
/// engine ends with [`CopyFailure::EngineGone`].
///
/// **Forked children.** In a child nothing of the engine works: `submit` says
/// unavailable, jobs end with [`CopyFailure::EngineGone`], and dropping either
/// neither waits nor locks nor touches what the parent still uses.
pub trait CopyEngine: Send + 'static {
    /// What is kept for a list; dropping it does what [`Self::quiesce`] does.
    type Job: Send + 'static;

    /// The name under which users know it: lower case.
    fn name(&self) -> &'static str;

    /// What it needs of the machine; by default what every kernel has.
    fn needs(&self) -> Needs {
        Needs::Kernel
    }

    /// What there is to look at when it does not work: nothing by default.
    fn diagnostics(&self, _host: &Host) -> Vec<Finding> {
        Vec::new()
    }

    /// Whether it works on this machine, by a real try where one is cheap.
    ///
    /// # Errors
    /// [`Unavailable`] with a sentence on what is missing.
    fn available(&mut self) -> Result<(), Unavailable>;

    /// What its copies may name.
    fn reach(&self) -> Reach;

    /// Takes the endpoint's doorbell, before anything is submitted: it is rung
    /// whenever a list has ended. An engine that learns of its ends only when it
    /// is polled drops it.
    fn take_doorbell(&mut self, _doorbell: &Doorbell) {}

    /// What can be set of it. Nothing by default.
    fn keys(&self) -> &'static [Key] {
        &[]
    }

    /// The value of one of [`Self::keys`]; `None` when it has no such key.
    fn get(&self, _key: &str) -> Option<Value> {
        None
    }

    /// Sets one of [`Self::keys`], before anything is copied.
    ///
    /// # Errors
    /// One sentence that says why it cannot be.
    fn set(&mut self, key: &str, _value: Value) -> Result<(), String> {
        Err(format!("the engine {} has no key `{key}`", self.name()))
    }

    /// Takes a list to copy and returns at once: what does not fit the device
    /// yet waits in the engine. Copies of one list are done in order, so that
    /// the last one tells of all; lists may overtake each other.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing of the list is touched then.
    fn submit(&mut self, list: CopyList) -> Result<Self::Job, SubmitError>;

    /// How far a list is; never waits. An engine that needs the CPU for
    /// something (to feed a queue, to finish what met a page fault) does it
    /// here, a little at a time.
    fn poll(&mut self, job: &mut Self::Job) -> Progress;

    /// Asks the engine to stop working on a list; never waits. The list ends
    /// with [`CopyFailure::Cancelled`], or otherwise if that was earlier.
    fn cancel(&mut self, job: &mut Self::Job);

    /// Cancels what is left of a list and waits until the engine is quiet
    /// about it; returns how it ended. How long that takes is the engine's to
    /// document: a thread has one chunk to end ([`crate::chunks`]), a device all
    /// that it was asked for, and there is no limit where a device does not
    /// answer, for the memory is not its owner's before it has. An engine that
    /// waits by looking does so without a pause for a moment only, then asleep.
    fn quiesce(&mut self, job: Self::Job) -> Progress;
}
