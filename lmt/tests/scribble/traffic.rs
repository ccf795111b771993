//! What is exchanged while somebody scribbles: several messages each way at a time, whatever
//! becomes of them.
#![allow(unsafe_code)] // The memory is lent to the engine here.

use std::time::{Duration, Instant};

use lmt::buffer::{Access, Buffer, Segment};
use lmt::{Address, Engine, OperationError, PeerId, RequestId, SendMode, SharedBuffer, Source, TagMatch};

use super::common::Random;

/// The longest message.
const MAX_BYTES: u64 = 1 << 20;
/// How many messages are in flight each way.
const AT_ONCE: usize = 4;
/// So many messages each way go well before anything is written.
pub const BEFOREHAND: u64 = 30;
/// After so long without any that is done the peer is connected anew; and now and then besides,
/// since a mechanism that has met garbage is not used again on the same connection.
const PATIENCE: Duration = Duration::from_millis(15);

/// How long the messages are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// In a line or its line buffer.
    Short,
    /// In cells.
    Eager,
    /// By a mechanism.
    Large,
    /// Any of these.
    Mixed,
}

impl Sizes {
    fn bytes(self, random: &mut Random) -> usize {
        let (least, most) = match (self, random.below(3)) {
            (Self::Short, _) | (Self::Mixed, 0) => (0, 512),
            (Self::Eager, _) | (Self::Mixed, 1) => (513, 256 << 10),
            _ => ((256 << 10) + 1, MAX_BYTES),
        };
        (least + random.below(most - least + 1)) as usize
    }
}

/// Memory for one message.
enum Memory {
    Private(Vec<u8>),
    Shared(SharedBuffer),
}

impl Memory {
    fn new(is_shared: bool) -> Self {
        if is_shared {
            return Self::Shared(lmt::alloc(MAX_BYTES as usize).expect("a shared buffer"));
        }
        Self::Private(vec![0xa5; MAX_BYTES as usize])
    }

    fn lend(&mut self, bytes: usize, access: Access) -> Buffer {
        let memory = match self {
            Self::Private(memory) => &mut memory[..bytes],
            Self::Shared(memory) => &mut memory[..bytes],
        };
        // SAFETY: neither touched nor freed before the request is complete: an `Operation`
        // gives it out then, and leaks it when it is dropped earlier.
        unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.expect("memory of this process")
    }
}

/// An operation with its memory.
struct Operation {
    request: RequestId,
    memory: Option<Memory>,
}

impl Drop for Operation {
    fn drop(&mut self) {
        std::mem::forget(self.memory.take());
    }
}

/// The exchange of one endpoint with one peer.
pub struct Traffic {
    address: Address,
    peer: PeerId,
    sizes: Sizes,
    has_shared_memory: bool,
    random: Random,
    sends: Vec<Operation>,
    receives: Vec<Operation>,
    spare: Vec<Memory>,
    /// When something was last done.
    moved: Instant,
    pub sent: u64,
    pub received: u64,
    pub failed: u64,
    /// How often the peer was connected anew.
    pub reconnected: u64,
}

impl Traffic {
    pub fn new(
        engine: &mut Engine,
        address: Address,
        sizes: Sizes,
        has_shared_memory: bool,
        seed: u64,
    ) -> Self {
        let peer = engine.insert_peer(&address).expect("a peer");
        Self {
            address,
            peer,
            sizes,
            has_shared_memory,
            random: Random::new(seed),
            sends: Vec::new(),
            receives: Vec::new(),
            spare: Vec::new(),
            moved: Instant::now(),
            sent: 0,
            received: 0,
            failed: 0,
            reconnected: 0,
        }
    }

    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Moves on what there is and begins what there is room for.
    pub fn turn(&mut self, engine: &mut Engine) {
        self.progress(engine);
        if self.received >= BEFOREHAND && (self.moved.elapsed() > PATIENCE || self.random.below(500) == 0) {
            self.connect_anew(engine);
        }
        while self.sends.len() < AT_ONCE {
            let mode = if self.random.below(4) == 0 { SendMode::Synchronous } else { SendMode::Standard };
            let (bytes, tag) = (self.sizes.bytes(&mut self.random), self.random.below(4));
            let mut memory = self.memory();
            let buffer = memory.lend(bytes, Access::Read);
            match engine.send(self.peer, tag, buffer, mode) {
                Ok(request) => self.sends.push(Operation { request, memory: Some(memory) }),
                Err(error) => return self.is_refused(engine, memory, &error),
            }
        }
        while self.receives.len() < AT_ONCE {
            let source = if self.random.below(2) == 0 { Source::Any } else { Source::Peer(self.peer) };
            let mut memory = self.memory();
            let buffer = memory.lend(MAX_BYTES as usize, Access::Write);
            match engine.receive(source, TagMatch::any(), buffer) {
                Ok(request) => self.receives.push(Operation { request, memory: Some(memory) }),
                Err(error) => return self.is_refused(engine, memory, &error),
            }
        }
        // Now and then one is taken back that may be matched or not.
        if self.random.below(64) == 0 {
            let one = self.random.below(AT_ONCE as u64) as usize;
            engine.cancel(self.receives[one].request).expect("this is no forked child");
        }
    }

    /// Moves on what there is.
    pub fn progress(&mut self, engine: &mut Engine) {
        let limit = Instant::now() + Duration::from_micros(50);
        engine.wait_for_progress(Some(limit)).expect("this is no forked child");
        let mut take = |operations: &mut Vec<Operation>| {
            let mut done = 0;
            operations.retain_mut(|operation| {
                if !engine.is_done(operation.request) {
                    return true;
                }
                match engine.test(operation.request) {
                    Some(Ok(_)) => done += 1,
                    _ => self.failed += 1,
                }
                self.spare.extend(operation.memory.take());
                false
            });
            done
        };
        let (sent, received) = (take(&mut self.sends), take(&mut self.receives));
        self.sent += sent;
        self.received += received;
        if sent + received > 0 {
            self.moved = Instant::now();
        }
    }

    /// Gives up what is stuck, and with it all memory that only the two share.
    fn connect_anew(&mut self, engine: &mut Engine) {
        // The peer may just have been taken for dead.
        let _removed = engine.remove_peer(self.peer);
        self.peer = engine.insert_peer(&self.address).expect("a peer");
        self.moved = Instant::now();
        self.reconnected += 1;
    }

    /// Whether nothing is in flight that was sent.
    pub fn has_sent_all(&self) -> bool {
        self.sends.is_empty()
    }

    fn memory(&mut self) -> Memory {
        self.spare.pop().unwrap_or_else(|| Memory::new(self.has_shared_memory))
    }

    /// An operation was not begun: the peer is thought dead, or has no room.
    fn is_refused(&mut self, engine: &mut Engine, memory: Memory, error: &OperationError) {
        self.spare.push(memory);
        self.failed += 1;
        if !matches!(error, OperationError::WouldBlock { .. }) {
            self.peer = engine.insert_peer(&self.address).expect("a peer that was known");
        }
    }
}
