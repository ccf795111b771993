//! To choose a message's way allocates nothing: neither a look into what was
//! decided, nor a send, eager or announced, once the tables have grown.
#![cfg(not(loom))]
#![allow(unsafe_code)] // Buffers are lent by address.

mod counting;
#[path = "../../conformance/src/suite/pretender.rs"]
mod pretender;

use std::time::{Duration, Instant};

use counting::of_thread as allocations;
use lmt_core::buffer::{Access, Buffer, Segment};
use lmt_core::config::Config;
use lmt_core::endpoint::{Engine, PeerId, RequestId, SendMode, Source, TagMatch};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{Mechanisms, Model};
use lmt_core::rendezvous::{Candidates, Choice, MechanismTag};
use lmt_core::selection::{Decisions, Message, Range, Variant};
use pretender::Pretender;

/// Allocations of this thread in `f`.
fn allocated(f: impl FnOnce()) -> u64 {
    let before = allocations();
    f();
    allocations() - before
}

#[test]
fn a_look_at_what_is_decided_allocates_nothing() {
    let choice = |model| Choice { mechanism: MechanismTag::of("some"), model };
    let candidates: Candidates = [Model::Get, Model::Put].map(choice).into_iter().collect();
    let rows = |_: Variant| {
        let row = |up_to_bytes| Range { up_to_bytes, candidates, max_readers: 2 };
        [1 << 16, 1 << 20, u64::MAX].map(row).to_vec()
    };
    let decisions = Decisions::new(4096, rows);
    assert_eq!(allocated(|| drop(std::hint::black_box(Box::new(1)))), 1, "they are counted");
    let mut ways = 0;
    let count = allocated(|| {
        for number in 0..10_000 {
            let message = Message { readers: number as u32 % 4, ..Message::of_bytes(number << 8) };
            let found: Candidates = *decisions.candidates(&message);
            ways += found.as_slice().len();
        }
    });
    assert_eq!((count, ways), (0, 20_000));
}

/// Two endpoints of one thread.
struct Pair {
    one: Engine,
    other: Engine,
    to_other: PeerId,
}

impl Pair {
    fn new() -> Self {
        let made = || {
            let mut mechanisms = Mechanisms::new();
            mechanisms.register(Pretender { moves_bytes: None });
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&std::process::id().to_ne_bytes().repeat(2));
            bytes[8..].copy_from_slice(&allocations().to_ne_bytes());
            Engine::new(EndpointId::from_bytes(bytes), Config::default(), mechanisms).expect("an endpoint")
        };
        let (mut one, mut other) = (made(), made());
        let to_other = one.insert_peer(other.address()).expect("a peer");
        other.insert_peer(one.address()).expect("a peer");
        Self { one, other, to_other }
    }

    /// Sends a message and receives it. Returns what its send allocated here,
    /// up to its announcement, and what all of it did.
    fn exchange(&mut self, data: &mut [u8]) -> (u64, u64) {
        let before = allocations();
        // SAFETY: `data` outlives both requests, which are finished below.
        let lend =
            |data: &mut [u8], access| unsafe { Buffer::new(&[Segment::of_mut(data)], access) }.unwrap();
        let source = lend(data, Access::Read);
        let send = self.one.send(self.to_other, 1, source, SendMode::Standard).unwrap();
        let sending = allocations() - before;
        let into = lend(data, Access::Write);
        let receive = self.other.receive(Source::Any, TagMatch::any(), into).unwrap();
        let mut open: [Option<RequestId>; 2] = [Some(send), Some(receive)];
        let end = Instant::now() + Duration::from_secs(20);
        while open.iter().any(Option::is_some) {
            for (engine, request) in [&mut self.one, &mut self.other].into_iter().zip(&mut open) {
                if let Some(result) = request.and_then(|request| engine.test(request)) {
                    result.expect("it is moved");
                    *request = None;
                }
            }
            assert!(Instant::now() < end, "the message does not arrive");
        }
        (sending, allocations() - before)
    }
}

#[test]
fn a_send_allocates_nothing_once_the_tables_have_grown() {
    let mut pair = Pair::new();
    let mut data = vec![0; 1 << 19];
    for bytes in [64, 1 << 19] {
        let data = &mut data[..bytes];
        for _ in 0..200 {
            let _warm_up = pair.exchange(data);
        }
        for number in 0..1000 {
            let (sending, all) = pair.exchange(data);
            assert_eq!((sending, all), (0, 0), "message {number} of {bytes} bytes");
        }
    }
    let (eager, mechanisms) = pair.one.totals();
    assert_eq!((eager.sent.messages, mechanisms[0].1.sent.messages), (1200, 1200), "both ways were taken");
}
