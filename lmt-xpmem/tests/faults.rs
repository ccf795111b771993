//! Memory that goes while peers have it attached, over the stand-in, and with
//! `LMT_REAL_XPMEM=1` over the machine's own module.
#![cfg(not(loom))]
#![allow(unsafe_code)] // Maps what is cut.

mod stand_in;

use std::fs::File;
use std::num::NonZeroUsize;
use std::time::Duration;

use lmt::Endpoint;
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;
use lmt_core::config::Config;
use lmt_core::endpoint::{Engine, OperationError, PeerId, Source, TagMatch};
use lmt_core::error::PeerError;
use lmt_core::mechanism::{Counters, Mechanisms};
use lmt_xpmem::{Device, Driver, Xpmem};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stand_in::{StandIn, real};

#[global_allocator]
static ALLOCATOR: stand_in::memory::Allocator = stand_in::memory::Allocator;

const BYTES: usize = 1 << 20;

/// Memory that can be cut, and other memory mapped in its place.
struct Place {
    start: usize,
    file: File,
}

impl Place {
    fn new() -> Self {
        let (start, file) = Self::map(None);
        Self { start, file }
    }

    fn map(at: Option<usize>) -> (usize, File) {
        let file = File::from(memfd_create(c"lmt-test", MFdFlags::MFD_CLOEXEC).expect("a memory file"));
        file.set_len(BYTES as u64).expect("there is memory");
        let length = NonZeroUsize::new(BYTES).expect("not empty");
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let fixed = if at.is_some() { MapFlags::MAP_FIXED } else { MapFlags::empty() };
        let at = at.and_then(NonZeroUsize::new);
        // SAFETY: a new place, or that of a value whose memory nobody uses.
        let mapped = unsafe { mmap(at, length, both, MapFlags::MAP_SHARED | fixed, &file, 0) };
        (mapped.expect("addresses").as_ptr().expose_provenance(), file)
    }

    /// What peers have attached of it is gone; here it is not to be touched.
    fn cut(&self) {
        self.file.set_len(0).expect("it is a file");
    }

    /// The same addresses, other memory.
    fn map_anew(&mut self) {
        self.cut();
        (_, self.file) = Self::map(Some(self.start));
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped with this length, by this value alone.
        unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(self.start), BYTES) }
    }

    fn fill(&mut self, seed: usize) {
        self.bytes().iter_mut().enumerate().for_each(|(at, byte)| *byte = byte_at(seed, at));
    }
}

fn byte_at(seed: usize, at: usize) -> u8 {
    (at / 4096 * 7 + at + seed * 101) as u8
}

struct Link<'g> {
    group: &'g Group,
    endpoint: Endpoint,
    peers: Vec<PeerId>,
}

impl<'g> Link<'g> {
    /// An endpoint with the mechanism, and behind it the kernel's copy if there is to be a next one.
    fn open<D: Driver>(group: &'g Group, driver: D, with_next: bool) -> Self {
        let mut mechanisms = Mechanisms::new();
        mechanisms.register(Xpmem::over(driver, lmt_xpmem::Config::default()));
        if with_next {
            mechanisms.register(lmt_cma::Cma::new());
        }
        let mut config = Config { eager_max_bytes: 0, ..Config::default() };
        config.socket_dir = group.launch().socket_dir().map(Into::into);
        let engine = Engine::new(group.id().member(group.rank()), config, mechanisms);
        let endpoint = Endpoint::from_engine(engine.expect("an endpoint"));
        let peers = (0..group.size()).map(|rank| endpoint.insert_peer(&group.address(rank)).expect("room"));
        let peers = peers.collect();
        Self { group, endpoint, peers }
    }

    fn counters(&self, of: u32, name: &str) -> Counters {
        let all = self.endpoint.counters(self.peers[of as usize]);
        all.into_iter().find(|(one, _)| *one == name).map(|(_, counters)| counters).unwrap_or_default()
    }

    fn receive(&self, from: u32, tag: usize, into: &mut [u8]) -> Result<u64, OperationError> {
        let source = Source::Peer(self.peers[from as usize]);
        self.endpoint.receive(source, TagMatch::exactly(tag as u64), into).map(|status| status.bytes)
    }
}

/// A buffer that goes, and other memory that comes in its place, at either end: every
/// message is that of its moment.
fn what_is_mapped_anew_is_what_is_copied<D: Driver + Default>(name: &str) {
    Test::new(name, 2).run(|group| {
        let link = Link::open(group, D::default(), true);
        let mut place = Place::new();
        for round in 0..24 {
            if round % 3 == 1 + group.rank() as usize {
                place.map_anew();
            }
            if group.rank() == 0 {
                place.fill(round);
                link.endpoint.send(link.peers[1], round as u64, place.bytes()).expect("the peer is there");
            } else {
                place.bytes().fill(0);
                let bytes = link.receive(0, round, place.bytes()).expect("the peer is there");
                assert_eq!(bytes, BYTES as u64);
                let wrong = place.bytes().iter().enumerate().find(|(at, byte)| **byte != byte_at(round, *at));
                assert_eq!(wrong, None, "round {round}");
            }
        }
        let Counters { messages, demotions, .. } = link.counters(1 - group.rank(), D::NAME);
        assert!(messages > 0, "nothing went by {}", D::NAME);
        // The module looks pages up again, the stand-in does not.
        let is_stand_in = D::NAME == StandIn::NAME;
        assert!((demotions > 0) == is_stand_in, "{demotions} demotions");
        group.barrier();
    });
}

/// The owner cuts its memory in the middle of a message, and dies: whoever has it attached
/// is told of the death, and lives on.
fn an_owner_that_goes_takes_nobody_along<D: Driver + Default>(name: &str) {
    Test::new(name, 3).may_die(1).run(|group| {
        let link = Link::open(group, D::default(), false);
        let mut place = Place::new();
        let mut into = vec![0; BYTES];
        match group.rank() {
            0 => {
                assert_eq!(link.receive(1, 0, &mut into), Ok(BYTES as u64));
                group.barrier();
                let result = link.receive(1, 1, &mut into);
                let owner = group.id().member(1);
                assert!(
                    matches!(result, Err(OperationError::Peer(PeerError::Dead { id })) if id == owner),
                    "{result:?}"
                );
                assert_eq!(link.counters(1, D::NAME).demotions, 1, "nothing was touched that was gone");
                assert_eq!(link.receive(2, 2, &mut into), Ok(BYTES as u64));
                assert!(into.iter().enumerate().all(|(at, byte)| *byte == byte_at(2, at)));
            }
            1 => {
                place.fill(0);
                link.endpoint.send(link.peers[0], 0, place.bytes()).expect("the peer is there");
                let memory = std::ptr::from_ref(place.bytes());
                link.endpoint.scope(|scope| {
                    // SAFETY: this process does nothing more with it than to lend it, and dies.
                    let begun = scope.send(link.peers[0], 1, unsafe { &*memory });
                    let _request = begun.expect("the peer is there");
                    place.cut();
                    // Before that it would be received whole.
                    group.barrier();
                    std::thread::sleep(Duration::from_millis(500));
                    kill(Pid::this(), Signal::SIGKILL).expect("a process may kill itself");
                });
            }
            _ => {
                place.fill(2);
                group.barrier();
                link.endpoint.send(link.peers[0], 2, place.bytes()).expect("the peer is there");
            }
        }
        link.group.barrier();
    });
}

#[test]
fn stand_in_what_is_mapped_anew_is_what_is_copied() {
    what_is_mapped_anew_is_what_is_copied::<StandIn>(test_name!());
}

#[test]
fn stand_in_an_owner_that_goes_takes_nobody_along() {
    an_owner_that_goes_takes_nobody_along::<StandIn>(test_name!());
}

#[test]
fn real_what_is_mapped_anew_is_what_is_copied() {
    if !real::is_skipped() {
        what_is_mapped_anew_is_what_is_copied::<Device>(test_name!());
    }
}

#[test]
fn real_an_owner_that_goes_takes_nobody_along() {
    if !real::is_skipped() {
        an_owner_that_goes_takes_nobody_along::<Device>(test_name!());
    }
}
