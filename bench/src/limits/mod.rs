//! What the machine allows: bare ping-pongs of two processes, with flags only.
//!
//! Nothing is matched, connected or scheduled here. Both processes know every
//! size and every order, so what is left is the copying itself and the flags
//! without which it cannot be done. A library cannot be faster by the same
//! method; how near it comes is a ratio of two measurements of one run.
//!
//! The buffers, their rotation and their touching are those of the benchmarks.

mod pair;
mod sys;

pub use pair::{LimitError, Pair};

/// One bare method: data.
#[derive(Debug)]
pub struct Method {
    /// Its name in tables.
    pub name: &'static str,
    /// What it does.
    pub text: &'static str,
    /// How it is done.
    pub work: Work,
}

/// How a bare method moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A flag goes to and fro.
    Hop,
    /// The shortest system call, by one process alone.
    SystemCall,
    /// One process copies from its one buffer to its other.
    Copy,
    /// The receiver reads the sender's memory.
    Read,
    /// The sender writes the receiver's memory.
    Write,
    /// The receiver reads the front half while the sender writes the back.
    BothHalves,
    /// Two copies through a ring of shared buffers.
    Pipeline {
        /// Buffers in the ring.
        buffers: usize,
        /// Bytes of each.
        chunk_bytes: usize,
    },
}

impl Work {
    /// Whether a message is moved at all.
    pub fn moves_bytes(self) -> bool {
        !matches!(self, Self::Hop | Self::SystemCall)
    }

    /// Whether a time is half of a round trip.
    pub fn is_round_trip(self) -> bool {
        !matches!(self, Self::SystemCall | Self::Copy)
    }

    fn needs_reading(self) -> bool {
        matches!(self, Self::Read | Self::BothHalves)
    }

    fn needs_writing(self) -> bool {
        matches!(self, Self::Write | Self::BothHalves)
    }
}

/// Every bare method, in the order in which they take turns.
pub const METHODS: &[Method] = &[
    Method { name: "hop", text: "a cache line goes from one core to the other", work: Work::Hop },
    Method { name: "syscall", text: "one system call (getppid)", work: Work::SystemCall },
    Method { name: "memcpy", text: "one process copies between its own buffers", work: Work::Copy },
    Method { name: "vm-readv", text: "the receiver calls process_vm_readv", work: Work::Read },
    Method { name: "vm-writev", text: "the sender calls process_vm_writev", work: Work::Write },
    Method {
        name: "both",
        text: "the receiver reads the front half while the sender writes the back half",
        work: Work::BothHalves,
    },
    pipeline("pipe-2x64k", 2, 65536),
    pipeline("pipe-8x32k", 8, 32768),
    pipeline("pipe-8x16k", 8, 16384),
    pipeline("pipe-16x8k", 16, 8192),
];

const fn pipeline(name: &'static str, buffers: usize, chunk_bytes: usize) -> Method {
    assert!(buffers * chunk_bytes <= sys::RING_BYTES);
    let text = "two copies through this many shared buffers of this size";
    Method { name, text, work: Work::Pipeline { buffers, chunk_bytes } }
}
