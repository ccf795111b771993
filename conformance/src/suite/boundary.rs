//! Messages longer than 2 and 4 GiB, without the memory for them: each side's
//! buffer is one range of addresses whose pages are those of one small file,
//! again and again; and without the time for them: a mechanism that only says
//! so moves the beginning.
#![allow(unsafe_code)] // mmap(2) over a reserved range, and Buffer::new.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use lmt::Endpoint;
use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::endpoint::{Engine, OperationError, RequestId, SendMode, Source, Status, TagMatch};
use lmt_core::mechanism::{Lmt, Mechanisms};
use lmt_core::shared_buffer::{SharedBuffer, alloc_uncommitted};
use nix::libc::c_void;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::data::{byte_at, in_shared_buffers};
use super::link::Link;
use super::pretender::Pretender;
use super::wrapper::Wrapper;
use super::{Under, rendezvous};
use crate::group::Test;

const MIB: usize = 1 << 20;
/// So much of the message lies behind the boundary.
const BEHIND: usize = 5 * MIB + 4097;
/// So much of it before the boundary is moved by the mechanism under test.
const BEFORE: usize = 4 * MIB - 11;
/// The periods differ, and the first divides no power of two: bytes that went
/// to a wrong place, for instance one cut to 31 bits, are the wrong bytes. All
/// that the mechanism moves fits the second once, since its parts may come in
/// any order; that is what is checked.
const OUT_PERIOD: usize = 6 * MIB;
const INTO_PERIOD: usize = 10 * MIB;
const _: () = assert!(BEFORE + BEHIND <= INTO_PERIOD);

/// A range of addresses that shows one file over and over.
struct Repeated {
    start: NonNull<c_void>,
    /// What is mapped, and how much of it is the buffer.
    bytes: usize,
    lent_bytes: usize,
    file: File,
}

impl Repeated {
    fn new(lent_bytes: usize, period: usize) -> Self {
        let file = File::from(memfd_create(c"lmt-test", MFdFlags::MFD_CLOEXEC).expect("a memory file"));
        file.set_len(period as u64).expect("there is memory");
        let bytes = lent_bytes.next_multiple_of(period);
        let length = NonZeroUsize::new(bytes).expect("it is not empty");
        let nothing = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: at an address of the kernel's choice, so nothing is replaced.
        let start = unsafe { mmap_anonymous(None, length, ProtFlags::PROT_NONE, nothing) };
        let repeated = Self { start: start.expect("there are addresses"), bytes, lent_bytes, file };
        for at in (0..bytes).step_by(period) {
            repeated.map(at, period);
        }
        repeated
    }

    fn map(&self, at: usize, period: usize) {
        let (address, length) = (NonZeroUsize::new(self.address() + at), NonZeroUsize::new(period));
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let fixed = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED;
        // SAFETY: `at + period` is at most `bytes`, so only addresses that
        // `new` has reserved, and nobody uses yet, are replaced.
        let mapped = unsafe { mmap(address, length.expect("not empty"), both, fixed, &self.file, 0) };
        mapped.expect("a memory file can be mapped");
    }

    fn address(&self) -> usize {
        self.start.as_ptr().expose_provenance()
    }

    /// Lends it as one piece.
    fn lend(&self, access: Access) -> Buffer {
        let segment = Segment { address: self.address(), bytes: self.lent_bytes };
        // SAFETY: the range is mapped until `self` is dropped, behind the
        // operation. No reference into it is ever made; that its bytes stand at
        // many addresses concerns nobody who copies to and from addresses.
        unsafe { Buffer::new(&[segment], access) }.expect("it lies in the address space")
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and no operation uses it.
        let unmapped = unsafe { munmap(self.start, self.bytes) };
        unmapped.expect("it was mapped");
    }
}

/// Contiguous messages of more than 2^31 and 2^32 bytes, of which the mechanism
/// moves the end.
pub fn past_2_gib<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    for &model in under.models() {
        for boundary in [1_usize << 31, 1 << 32] {
            under.in_group(
                Test::new(under.test, 2),
                |_| {},
                |group| {
                    let mut mechanisms = Mechanisms::new();
                    mechanisms.register(Pretender { moves_bytes: Some((boundary - BEFORE) as u64) });
                    mechanisms.register(Wrapper::only((under.make)(), model));
                    let it = (under.name(), model);
                    under.with_mechanisms(group, &rendezvous(), mechanisms, it, |link| over(link, boundary));
                },
            );
        }
    }
}

/// A side's memory: for mechanisms that copy shared buffers one such, of which
/// only the end is touched.
enum Long {
    Repeated(Repeated),
    Shared(SharedBuffer),
}

impl Long {
    fn new(lent_bytes: usize, period: usize) -> Self {
        if in_shared_buffers() {
            return Self::Shared(alloc_uncommitted(lent_bytes).expect("there are addresses"));
        }
        Self::Repeated(Repeated::new(lent_bytes, period))
    }

    fn lend(&mut self, access: Access) -> Buffer {
        match self {
            Self::Repeated(repeated) => repeated.lend(access),
            // SAFETY: the buffer lives until behind the operation, and nobody
            // else uses it.
            Self::Shared(memory) => unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }
                .expect("it lies in the address space"),
        }
    }

    /// Puts the message in, as far as the mechanism under test moves it.
    fn fill(&mut self, seed: u64) {
        match self {
            Self::Repeated(out) => {
                let content: Vec<u8> = (0..OUT_PERIOD).map(|at| byte_at(seed, at as u64)).collect();
                out.file.write_all_at(&content, 0).expect("there is memory");
            }
            Self::Shared(memory) => {
                for offset in memory.len() - BEHIND - BEFORE..memory.len() {
                    memory[offset] = byte_at(seed, (offset % OUT_PERIOD) as u64);
                }
            }
        }
    }

    /// Checks that the end of the message is there.
    fn check_end(&self, seed: u64) {
        let expected = |offset: usize| byte_at(seed, (offset % OUT_PERIOD) as u64);
        match self {
            Self::Repeated(into) => check_end(into, expected),
            Self::Shared(memory) => {
                for offset in memory.len() - BEHIND - BEFORE..memory.len() {
                    assert_eq!(memory[offset], expected(offset), "byte {offset}");
                }
            }
        }
    }
}

/// One operation with a buffer of the test's own.
fn begin_and_wait(
    endpoint: &Endpoint,
    begin: impl FnOnce(&mut Engine) -> Result<RequestId, OperationError>,
) -> Status {
    let work = |engine: &mut Engine| {
        let request = begin(engine)?;
        engine.wait(request)
    };
    // SAFETY: the engine is used where it is, and none is put in its place.
    unsafe { endpoint.with_engine(work) }.expect("it arrives")
}

/// A message from rank 0 to rank 1 that reaches over `boundary`.
fn over(link: &Link<'_>, boundary: usize) {
    let (bytes, seed) = (boundary + BEHIND, link.next_seed());
    let (endpoint, other) = (&link.endpoint, link.other());
    let status = if link.rank() == 0 {
        let mut out = Long::new(bytes, OUT_PERIOD);
        out.fill(seed);
        let buffer = out.lend(Access::Read);
        begin_and_wait(endpoint, |engine| engine.send(other, seed, buffer, SendMode::Standard))
    } else {
        let mut into = Long::new(bytes, INTO_PERIOD);
        let (source, tags, buffer) = (Source::Peer(other), TagMatch::exactly(seed), into.lend(Access::Write));
        let status = begin_and_wait(endpoint, |engine| engine.receive(source, tags, buffer));
        into.check_end(seed);
        status
    };
    assert_eq!(status.bytes, bytes as u64);
    link.carries(1);
}

/// Checks that the file holds the end of the message.
fn check_end(into: &Repeated, expected: impl Fn(usize) -> u8) {
    let mut content = vec![0; INTO_PERIOD];
    into.file.read_exact_at(&mut content, 0).expect("it is as long");
    for offset in into.lent_bytes - (BEFORE + BEHIND)..into.lent_bytes {
        assert_eq!(content[offset % INTO_PERIOD], expected(offset), "byte {offset}");
    }
}
