//! A stand-in for the KNEM kernel driver, for machines without the module.
//!
//! Under it, a program's own system calls on `/dev/knem` are answered as the
//! driver would: a seccomp filter sends them to a supervisor thread
//! (seccomp_unotify(2)), which reads the requests from the program's memory,
//! copies between processes, and answers with a value or an error. The filter
//! is inherited by what is forked and executed, so that groups of processes
//! talk to one driver.
//!
//! ```no_run
//! use knem_stand_in::{Options, StandIn};
//!
//! let stand_in = StandIn::start(Options::default().dma(true))?;
//! stand_in.enter()?;
//! let device = std::fs::OpenOptions::new().read(true).write(true).open("/dev/knem").unwrap();
//! # Ok::<(), knem_stand_in::Unavailable>(())
//! ```
//!
//! It is written from a table of the driver's numbers, structs and behaviours
//! as observed, and from no client's definitions. It can be given a fault on
//! purpose ([`Mutant`]), to see whether a client's tests notice.
//!
//! # Where it differs from the driver
//!
//! - Pages are not pinned. Instead, munmap, mremap, mmap with `MAP_FIXED`,
//!   madvise with `MADV_DONTNEED` and exit_group reach the supervisor first,
//!   which copies the pages that regions hold; the regions go on with the
//!   copies. Untouched memory declared for reading is zeros for good, as with
//!   the driver. Not reproduced: what is lost by brk, by SIGKILL (the region is
//!   then `EINVAL` at once), by other ways to discard pages, and the pages that
//!   part after a fork and a write (peers see the owner's new page). Memory
//!   moved by mremap, and shared memory that one of its mappers unmaps, is the
//!   region's own copy from then on.
//! - One thread answers all calls, one copy at a time: no time measured under
//!   it says anything about KNEM.
//! - The descriptor is a memory file and not a character device. What read(2) of
//!   it before the mapping of the status array does to the driver is not known,
//!   only that it must not be; here it finds zeros, and that mapping is then
//!   refused (`EINVAL`), and said on standard error. Only open(2), openat(2) and
//!   openat2(2) of exactly `/dev/knem` are seen (and of `/dev/knem-stand-in`, by
//!   which a process can tell that it is under one).
//! - Of the module's parameters there is `dmamin` alone, at its place under
//!   /sys, which any user may write.
//! - Asynchronous copies are made by a thread after a delay; those of 1 to 64
//!   bytes at once, without a word in their slot, as the driver may.
//! - A status array of more than 4096 slots, which can corrupt the kernel's
//!   memory, is refused, and said on standard error.
//! - Where the table leaves open what happens, this does something, and a
//!   client must not depend on it: the thread flag for DMA without an engine is
//!   `EINVAL`, a descriptor opened for reading only fails every request.
#![deny(unsafe_code)]

mod abi;
mod client;
mod driver;
mod filter;
mod maps;
mod memory;
mod options;
mod supervisor;
mod sys;
mod worker;

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;

pub use options::{Mutant, Options, UnknownMutant};

/// Why the stand-in does not work here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The kernel has no filters with a listener.
    #[error("seccomp user notification is not available ({0}); Linux 5.14 or later, built with it, has it")]
    Unknown(Errno),
    /// The filter cannot be installed.
    #[error("a seccomp filter cannot be installed: {0}; it needs a process without another listener")]
    Refused(Errno),
    /// The supervisor thread cannot be started.
    #[error("the supervisor's thread cannot be started ({0}); it needs a thread and a descriptor table")]
    Thread(std::io::Error),
    /// The stand-in was installed and does not answer.
    #[error(
        "the stand-in does not answer: {0}; it needs Linux 5.14 or later and the right to read its children's memory"
    )]
    Silent(std::io::Error),
}

/// A driver of its own, to be used by the threads that enter it, and by what
/// they start. It works for as long as any of those live.
#[derive(Debug)]
pub struct StandIn {
    supervisor: UnixStream,
    entered: Cell<bool>,
}

impl StandIn {
    /// Starts the supervisor's thread.
    ///
    /// # Errors
    /// [`Unavailable`], when the kernel lacks what is needed.
    pub fn start(options: Options) -> Result<Self, Unavailable> {
        sys::notification_is_known().map_err(Unavailable::Unknown)?;
        let (mut ours, theirs) = UnixStream::pair().map_err(Unavailable::Thread)?;
        let thread = std::thread::Builder::new().name("knem-stand-in".to_owned());
        thread.spawn(move || supervisor::run(theirs, options)).map_err(Unavailable::Thread)?;
        let mut word = [0];
        ours.read_exact(&mut word).map_err(Unavailable::Thread)?;
        Ok(Self { supervisor: ours, entered: Cell::new(false) })
    }

    /// Puts the calling thread, and all that it starts from now on, under the
    /// stand-in, for good: a filter cannot be removed. Once a process; the
    /// thread can no longer gain privileges by execve(2) (`PR_SET_NO_NEW_PRIVS`).
    ///
    /// # Errors
    /// [`Unavailable`]: above all when there is another listener already.
    pub fn enter(&self) -> Result<(), Unavailable> {
        if self.entered.get() {
            return Err(Unavailable::Refused(Errno::EBUSY));
        }
        nix::sys::prctl::set_no_new_privs().map_err(Unavailable::Refused)?;
        let program = filter::program();
        let listener = sys::install(&program).map_err(Unavailable::Refused)?;
        // From here to the supervisor's word nothing may allocate: the memory
        // calls of malloc might wait for a supervisor that is not there yet.
        let mut word = [0];
        let told = (&self.supervisor)
            .write_all(&listener.to_ne_bytes())
            .and_then(|()| (&self.supervisor).read_exact(&mut word));
        sys::close(listener);
        told.map_err(Unavailable::Silent)?;
        self.entered.set(true);
        File::open(driver::MARK).map_err(Unavailable::Silent)?;
        Ok(())
    }
}

/// Whether the calling thread is under a stand-in, by its own doing or its
/// parent's.
pub fn inside() -> bool {
    File::open(driver::MARK).is_ok()
}

/// Has the calling thread be under a stand-in: under the one that it is under
/// already, as a rank of a test whose parent has made one, and otherwise under
/// a new one of this kind.
///
/// # Errors
/// As [`StandIn::start`] and [`StandIn::enter`].
pub fn ensure(options: Options) -> Result<(), Unavailable> {
    if inside() {
        return Ok(());
    }
    StandIn::start(options)?.enter()
}

/// The variable that has [`for_test`] leave tests to the machine's own driver.
pub const ENV_REAL: &str = "LMT_REAL_KNEM";

/// Has a test, and the processes that it starts, find a driver: a stand-in, as
/// [`ensure`] does, or the machine's own where [`ENV_REAL`] is set. Where there
/// can be none, opening it tells so. Returns whether it is a stand-in.
pub fn for_test(options: Options) -> bool {
    if std::env::var_os(ENV_REAL).is_some() {
        return false;
    }
    let ensured = ensure(options);
    if let Err(why) = &ensured {
        println!("no stand-in: {why}");
    }
    ensured.is_ok()
}
