//! The two-copy pipeline of lmt-shm with its copies done by an engine: for
//! engines that need both ends mapped here.
#![allow(unsafe_code)] // Lends the pipeline's pieces to an engine.

use lmt_core::buffer::{Access, Segment};
use lmt_core::config_key::{Key, Value};
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::mechanism::{Fault, Needs, Unavailable};
use lmt_shm::{Config, ConfigError, Copied, Copier, Piece, Shm};

use crate::dsa::{self, DsaEngine};
use crate::engine::{CopyEngine, State};
use crate::places::{CopyList, Mapped, Place};

/// The pipeline over the DSA of this machine, with the defaults; it opens
/// nothing and takes no memory before it is used.
///
/// # Errors
/// None with the defaults; [`ConfigError`] is the pipeline's.
///
/// ```
/// use lmt_core::mechanism::Lmt;
/// let mut dsa = lmt_ioat::pipeline::ioat_dsa()?;
/// assert_eq!(dsa.description().name, "ioat-dsa");
/// if let Err(why) = dsa.hello() {
///     println!("no DSA here: {why}");
/// }
/// # Ok::<(), lmt_shm::ConfigError>(())
/// ```
pub fn ioat_dsa() -> Result<crate::IoatDsa, ConfigError> {
    let copier = EngineCopier::new("ioat-dsa", DsaEngine::new(dsa::Config::default()));
    Shm::with_copier(engine_config(), copier.with_keys(&DSA_KEYS))
}

/// What suits a device: more buffers than two, so that it always has something
/// to do while the processes look away. (Not measured, for want of a device; a
/// DSA is said to be at its full speed from descriptors of 16 KiB on.)
pub fn engine_config() -> Config {
    Config { buffers: 4, kept_transfers: 4, ..Config::default() }
}

/// The pipeline's keys, with the reasons of [`engine_config`], and the DSA's.
const DSA_KEYS: [Key; lmt_shm::KEYS.len() + dsa::KEYS.len()] = {
    let mut all = [lmt_shm::KEYS[0]; lmt_shm::KEYS.len() + dsa::KEYS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] =
            if at < lmt_shm::KEYS.len() { lmt_shm::KEYS[at] } else { dsa::KEYS[at - lmt_shm::KEYS.len()] };
        at += 1;
    }
    // The second of the pipeline's keys is `buffers`; a test looks.
    all[1].reason =
        "more than two, so that the device always has something to do while the processes do not poll";
    all
};

/// Has an engine do the pipeline's copies.
#[derive(Debug)]
pub struct EngineCopier<E> {
    name: &'static str,
    engine: E,
    keys: &'static [Key],
}

impl<E: CopyEngine> EngineCopier<E> {
    /// A copier for the mechanism of this name; the engine must reach mapped
    /// memory.
    pub const fn new(name: &'static str, engine: E) -> Self {
        Self { name, engine, keys: lmt_shm::KEYS }
    }

    /// The same with these keys: the pipeline's and the engine's.
    fn with_keys(self, keys: &'static [Key]) -> Self {
        Self { keys, ..self }
    }

    fn fault(&self, sentence: &str) -> Fault {
        Fault::Demote { errno: 0, for_good: true, sentence: format!("{}: {sentence}", self.name) }
    }
}

/// A copy in flight. Its drop is the job's, which waits until the engine is
/// quiet.
pub struct Ticket<J>(J);

impl<J> std::fmt::Debug for Ticket<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

/// A piece as the two places that an engine copies between.
fn places_of(piece: &Piece<'_>) -> (Place, Place) {
    let of = |address| Segment { address, bytes: piece.bytes() };
    // SAFETY: a `Piece` names valid memory of this process, its addresses are
    // exposed, and the pipeline keeps it so until the ticket that holds the job
    // that holds this value has been dropped or has told its end. The source is
    // the pool's or lent for reading; a peer may write the pool, which the
    // promise allows.
    let from = unsafe { Mapped::new(of(piece.from_address()), Access::Read) };
    // SAFETY: the same; the target is the pool's or lent for writing.
    let to = unsafe { Mapped::new(of(piece.to_address()), Access::Write) };
    (Place::Mapped(from), Place::Mapped(to))
}

impl<E: CopyEngine> Copier for EngineCopier<E> {
    type Ticket = Ticket<E::Job>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn needs(&self) -> Needs {
        self.engine.needs()
    }

    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        self.engine.diagnostics(host)
    }

    fn keys(&self) -> &'static [Key] {
        self.keys
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.engine.get(key)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        self.engine.set(key, value)
    }

    fn available(&mut self) -> Result<(), Unavailable> {
        self.engine.available()
    }

    fn start<'a>(&mut self, pieces: impl Iterator<Item = Piece<'a>>) -> Result<Option<Self::Ticket>, Fault> {
        let mut list = CopyList::new();
        for piece in pieces {
            let (from, to) = places_of(&piece);
            // The two places have the same length, and the target is writable.
            list.push(from, to, piece.bytes() as u64).map_err(|error| self.fault(&error.to_string()))?;
        }
        if list.copies().is_empty() {
            return Ok(None);
        }
        let job = self.engine.submit(list).map_err(|error| self.fault(&error.to_string()))?;
        Ok(Some(Ticket(job)))
    }

    fn poll(&mut self, ticket: &mut Self::Ticket) -> Copied {
        match self.engine.poll(&mut ticket.0).state {
            State::Running => Copied::No,
            State::Done => Copied::Yes,
            State::Failed(failure) => Copied::Failed(failure.to_fault(self.name)),
        }
    }
}
