//! The mechanism as the rendezvous protocol sees it.

use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lmt_core::buffer::Buffer;
use lmt_core::config_key::{Key, Kind, Value};
use lmt_core::cursor::Cursor;
use lmt_core::diagnostic::{Finding, Host};
use lmt_core::mechanism::{
    Abilities, Cookie, Description, Diagnosis, Fault, Hello, Interval, Lmt, Model, OobMessages, PeerFacts,
    Plan, Probed, Role, Settings, Step, Unavailable,
};
use lmt_core::process::PeerProcess;
use nix::errno::Errno;
use zerocopy::{FromBytes, IntoBytes};

use crate::faults::{READING, WRITING, fault_of, garbage, no_pipe, refused, short_buffer};
use crate::incoming::{Incoming, PipeError};
use crate::outgoing::Outgoing;
use crate::sys::Way;
use crate::wire::{Greeting, Header, Name, VERSION};
use crate::{pipe, sys, trial};

/// After so many steps in a row for which the pipe was full, the sender looks
/// whether the receiver's process still lives. The connection tells of its end
/// as well; this is for those who have none.
const STEPS_BETWEEN_CHECKS: u32 = 256;
/// How long a receiver whose pipe was closed in the middle waits for the word
/// that the sender has failed or died. One of them comes from every sender that
/// keeps the rules; a process that ends closes its pipes a little before its
/// pidfd tells of its end, which on a busy machine may be long.
const CUT_PATIENCE: Duration = Duration::from_secs(1);

/// What can be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The largest pipe to ask for, in bytes; the system's own limit
    /// (/proc/sys/fs/pipe-max-size) holds as well. A larger pipe means fewer
    /// turns of the two processes; by default it is as large as is allowed.
    pub max_pipe_bytes: usize,
    /// The most bytes that one system call gives or takes. Each call holds the
    /// pipe's lock in the kernel, for which the other side waits: in smaller
    /// parts the two sides' work overlaps.
    pub call_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_pipe_bytes: pipe::LARGEST_PIPE_BYTES, call_bytes: 1 << 17 }
    }
}

/// What can be set: the fields of [`Config`].
pub const KEYS: &[Key] = &[
    Key {
        name: "max_pipe_bytes",
        kind: Kind::Bytes { least: 4096, most: pipe::LARGEST_PIPE_BYTES as u64, multiple_of: 1 },
        variable: None,
        meaning: "the largest pipe to ask for; the system's own limit (/proc/sys/fs/pipe-max-size) holds as well",
        reason: "as large as is allowed: a larger pipe means fewer turns of the two processes",
    },
    Key {
        name: "call_bytes",
        kind: Kind::Bytes { least: 4096, most: 1 << 30, multiple_of: 1 },
        variable: None,
        meaning: "the most bytes that one system call gives or takes",
        reason: "each call holds the pipe's lock, for which the other side waits: in smaller parts the two sides' work overlaps",
    },
];

pub(crate) mod sealed {
    /// How the sender gives, and the mechanism's name.
    pub trait Sealed: Send + 'static {
        const NAME: &'static str;
        const WAY: super::Way;
    }
}

/// How the sender's bytes get into the pipe.
pub trait PipeWrite: sealed::Sealed {}

/// By vmsplice(2): the pipe refers to the sender's pages.
#[derive(Debug)]
pub enum ByVmsplice {}

/// By writev(2): the kernel copies them.
#[derive(Debug)]
pub enum ByWritev {}

impl sealed::Sealed for ByVmsplice {
    const NAME: &'static str = "vmsplice";
    const WAY: Way = Way::Vmsplice;
}

impl sealed::Sealed for ByWritev {
    const NAME: &'static str = "writev";
    const WAY: Way = Way::Writev;
}

impl PipeWrite for ByVmsplice {}
impl PipeWrite for ByWritev {}

/// A mechanism over pipes; [`Vmsplice`] and [`Writev`] are the two.
#[derive(Debug)]
pub struct Pipes<G> {
    config: Config,
    /// What a trial has said for good, and how large pipes may be.
    trial: Option<Result<usize, Unavailable>>,
    giving: PhantomData<G>,
}

/// One copy, by the receiver, out of the sender's pages.
///
/// ```
/// use lmt_core::mechanism::Lmt;
/// assert_eq!(lmt_vmsplice::Vmsplice::new().description().name, "vmsplice");
/// ```
pub type Vmsplice = Pipes<ByVmsplice>;

/// Two copies, into the pipe and out of it.
pub type Writev = Pipes<ByWritev>;

impl<G: PipeWrite> Pipes<G> {
    /// A new instance; it makes no pipe before it is used.
    pub fn new() -> Self {
        Self::with_config(Config::default())
    }

    /// As [`Self::new`], with other numbers.
    pub fn with_config(config: Config) -> Self {
        Self { config, trial: None, giving: PhantomData }
    }

    /// Whether this process can do it at all, and how large a pipe may be.
    fn trial(&mut self) -> Result<usize, Unavailable> {
        if let Some(known) = &self.trial {
            return known.clone();
        }
        let limit = self.config.max_pipe_bytes;
        let found = trial::run(G::WAY).map(|()| pipe::system_limit_bytes().min(limit));
        self.remember(&found);
        found
    }

    /// Keeps a trial's word unless another one may say something else: that
    /// there was no descriptor or no memory passes.
    fn remember(&mut self, found: &Result<usize, Unavailable>) {
        if found.as_ref().map_or_else(trial::is_final, |_| true) {
            self.trial = Some(found.clone());
        }
    }
}

impl<G: PipeWrite> Default for Pipes<G> {
    fn default() -> Self {
        Self::new()
    }
}

/// What is kept for a peer: at most one pipe in each direction.
#[derive(Debug)]
pub struct PipePeer {
    process: Arc<PeerProcess>,
    outgoing: Outgoing,
    incoming: Incoming,
}

/// A transfer in flight.
#[derive(Debug)]
pub struct PipeTransfer {
    role: Role,
    interval: Interval,
    /// The sender's name for it; the receiver learns it from the cookie.
    name: Option<Name>,
    /// Whether its header has been given, or has been read.
    begun: bool,
    left_bytes: u64,
    at: Cursor,
    stalled_steps: u32,
    /// When the receiver has found that its pipe is gone.
    cut_since: Option<Instant>,
}

impl<G: PipeWrite> Lmt for Pipes<G> {
    type Peer = PipePeer;
    type Transfer = PipeTransfer;

    fn description(&self) -> Description {
        Description::new(G::NAME, &[Model::Cooperative])
    }

    fn hello(&mut self) -> Result<Hello, Unavailable> {
        self.trial()?;
        let greeting = Greeting { version: VERSION };
        Ok(Hello { bytes: greeting.as_bytes().to_vec(), descriptors: Vec::new() })
    }

    fn probe(&mut self, facts: &PeerFacts, hello: Hello) -> Result<Probed<PipePeer>, Unavailable> {
        self.trial()?;
        let greeting = Greeting::read_from_bytes(&hello.bytes).ok();
        if greeting != Some(Greeting { version: VERSION }) {
            let sentence = "the peer uses its pipes differently; use one version of lmt".to_owned();
            return Err(Unavailable { errno: 0, sentence });
        }
        let peer = PipePeer {
            process: Arc::clone(&facts.process),
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
        };
        Ok(Probed::new(peer, Abilities { read: false, write: false, cooperate: true }))
    }

    fn prepare(
        &mut self,
        peer: &mut PipePeer,
        plan: &Plan,
        _data: &Buffer,
    ) -> Result<(PipeTransfer, Cookie), Fault> {
        let (name, cookie) = match plan.role {
            Role::Receiver => (None, Cookie::empty()),
            Role::Sender => {
                self.ensure_pipe(peer)?;
                let name = peer.outgoing.next_name();
                (Some(name), name.cookie())
            }
        };
        let transfer = PipeTransfer {
            role: plan.role,
            interval: plan.interval,
            name,
            begun: false,
            left_bytes: 0,
            at: Cursor::default(),
            stalled_steps: 0,
            cut_since: None,
        };
        Ok((transfer, cookie))
    }

    fn start(
        &mut self,
        peer: &mut PipePeer,
        transfer: &mut PipeTransfer,
        remote: &Cookie,
        interval: Interval,
    ) -> Result<(), Fault> {
        transfer.interval = interval;
        transfer.left_bytes = interval.bytes();
        if interval.bytes() == 0 {
            return Ok(());
        }
        match (transfer.role, transfer.name) {
            (Role::Sender, Some(name)) => peer.outgoing.enqueue(name.message),
            (Role::Sender, None) => return Err(garbage()),
            (Role::Receiver, _) => {
                let name = Name::parse(remote).ok_or_else(garbage)?;
                if !peer.incoming.begin(name.message) {
                    return Err(garbage());
                }
                transfer.name = Some(name);
            }
        }
        Ok(())
    }

    /// The sender's front is what it has given, the receiver's what it has read.
    fn step(
        &mut self,
        peer: &mut PipePeer,
        transfer: &mut PipeTransfer,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<Step, Fault> {
        let (Some(name), 1..) = (transfer.name, transfer.left_bytes) else {
            return Ok(Step { bytes: 0, done: transfer.left_bytes == 0 });
        };
        let max_bytes = max_bytes.max(1).min(transfer.left_bytes);
        let bytes = match transfer.role {
            Role::Sender => self.send(peer, transfer, name.message, data, max_bytes)?,
            Role::Receiver => self.receive(peer, transfer, name, data, max_bytes)?,
        };
        Ok(Step { bytes, done: transfer.left_bytes == 0 })
    }

    fn finish(&mut self, peer: &mut PipePeer, transfer: PipeTransfer) {
        let Some(Name { message, .. }) = transfer.name else { return };
        match transfer.role {
            Role::Sender => peer.outgoing.leave(message, transfer.begun && transfer.left_bytes == 0),
            Role::Receiver => peer.incoming.leave(message),
        }
    }

    fn oob_messages(&mut self) -> Option<&mut dyn OobMessages<PipePeer>> {
        Some(self)
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnosis> {
        Some(self)
    }
}

impl<G: PipeWrite> OobMessages<PipePeer> for Pipes<G> {
    fn oob_message(&mut self, peer: &mut PipePeer) -> Option<Hello> {
        peer.outgoing.take_note()
    }

    fn take_oob_message(&mut self, peer: &mut PipePeer, oob_message: Hello) {
        peer.incoming.take_note(oob_message);
    }
}

impl<G: PipeWrite> Settings for Pipes<G> {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn get(&self, key: &str) -> Option<Value> {
        match key {
            "max_pipe_bytes" => Some(Value::Number(self.config.max_pipe_bytes as u64)),
            "call_bytes" => Some(Value::Number(self.config.call_bytes)),
            _ => None,
        }
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match (key, value) {
            ("max_pipe_bytes", Value::Number(bytes)) => {
                self.config.max_pipe_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                // What a trial has found holds for the other limit.
                self.trial = None;
            }
            ("call_bytes", Value::Number(bytes)) => self.config.call_bytes = bytes,
            ("max_pipe_bytes" | "call_bytes", _) => return Err(format!("{key} must be a number of bytes")),
            _ => return Err(format!("{} has no key `{key}`", G::NAME)),
        }
        Ok(())
    }
}

impl<G: PipeWrite> Diagnosis for Pipes<G> {
    fn diagnostics(&self, host: &Host) -> Vec<Finding> {
        crate::diagnostics::diagnostics(host, G::WAY, G::NAME)
    }
}

impl<G: PipeWrite> Pipes<G> {
    fn ensure_pipe(&mut self, peer: &mut PipePeer) -> Result<(), Fault> {
        let wanted_bytes = self.trial().unwrap_or(0);
        peer.outgoing.ensure_pipe(wanted_bytes).map_err(no_pipe)
    }

    /// Gives as much as the pipe takes, if it is this message's turn.
    fn send(
        &mut self,
        peer: &mut PipePeer,
        transfer: &mut PipeTransfer,
        message: u64,
        data: &Buffer,
        max_bytes: u64,
    ) -> Result<u64, Fault> {
        if !peer.outgoing.is_turn_of(message) {
            return Ok(0);
        }
        self.ensure_pipe(peer)?;
        let Some(pipe) = peer.outgoing.pipe() else { return Ok(0) };
        if !transfer.begun {
            match pipe.announce(&Header { message, bytes: transfer.left_bytes }) {
                Ok(()) => transfer.begun = true,
                Err(Errno::EAGAIN) => return Ok(0),
                Err(errno) => return Err(fault_of(errno, &peer.process, WRITING)),
            }
            transfer.at = Cursor::at(data.segments(), transfer.interval.start);
        }
        let mut moved = 0;
        while moved < max_bytes {
            let want = (max_bytes - moved).min(self.config.call_bytes.max(1));
            match sys::give(G::WAY, pipe.inlet(), data, &mut transfer.at, want) {
                Ok(0) if moved == 0 => return Err(short_buffer()),
                Ok(0) | Err(Errno::EAGAIN) => break,
                Ok(bytes) => moved += bytes,
                // It comes again in the next call, after the bytes of this one
                // have been counted.
                Err(_) if moved > 0 => break,
                Err(errno) => return Err(fault_of(errno, &peer.process, WRITING)),
            }
        }
        transfer.left_bytes -= moved;
        if moved > 0 {
            transfer.stalled_steps = 0;
            return Ok(moved);
        }
        transfer.stalled_steps += 1;
        if transfer.stalled_steps == STEPS_BETWEEN_CHECKS {
            transfer.stalled_steps = 0;
            if !peer.process.is_alive() {
                return Err(Fault::PeerDead);
            }
        }
        Ok(0)
    }

    /// Reads as much as is there, if the bytes that come next are this
    /// message's.
    fn receive(
        &mut self,
        peer: &mut PipePeer,
        transfer: &mut PipeTransfer,
        name: Name,
        data: &mut Buffer,
        max_bytes: u64,
    ) -> Result<u64, Fault> {
        let PipePeer { process, incoming, .. } = peer;
        if transfer.begun && !incoming.is_current(name.message) {
            return cut_short(transfer, process);
        }
        let outlet = incoming
            .outlet_for(name, transfer.interval.bytes())
            .map_err(|refusal| refused(refusal, process))?;
        let Some(outlet) = outlet else { return Ok(0) };
        if !transfer.begun {
            transfer.begun = true;
            transfer.at = Cursor::at(data.segments(), transfer.interval.start);
        }
        let (mut moved, mut at_end) = (0, false);
        while moved < max_bytes {
            let want = (max_bytes - moved).min(self.config.call_bytes.max(1));
            match sys::take(outlet.as_fd(), data, &mut transfer.at, want) {
                Ok(None) => {
                    at_end = true;
                    break;
                }
                Ok(Some(0)) if moved == 0 => return Err(short_buffer()),
                Ok(Some(0)) | Err(Errno::EAGAIN) => break,
                Ok(Some(bytes)) => moved += bytes,
                // As the sender's.
                Err(_) if moved > 0 => break,
                Err(errno) => return Err(fault_of(errno, process, READING)),
            }
        }
        transfer.left_bytes -= moved;
        if transfer.left_bytes == 0 {
            incoming.complete();
        } else if at_end {
            incoming.at_end();
            transfer.cut_since = Some(Instant::now());
        }
        Ok(moved)
    }
}

/// The sender has closed the pipe, or replaced it, in the middle.
fn cut_short(transfer: &mut PipeTransfer, process: &PeerProcess) -> Result<u64, Fault> {
    let since = *transfer.cut_since.get_or_insert_with(Instant::now);
    if process.is_alive() && since.elapsed() < CUT_PATIENCE {
        return Ok(0);
    }
    Err(refused(PipeError::CutShort, process))
}

#[cfg(test)]
#[path = "mechanism_tests.rs"]
mod tests;
