//! A mechanism that fails at random calls, with a good one behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lmt_core::config::Config;
use lmt_core::endpoint::{OperationError, Source, TagMatch};
use lmt_core::error::PeerError;
use lmt_core::mechanism::{Fault, Lmt, Mechanisms};

use super::data::{Random, Scattered};
use super::link::Link;
use super::moving::ping_ping;
use super::wrapper::{Call, Tamper, Wrapper};
use super::{Under, rendezvous, skip};
use crate::group::{Group, Test};

const FAULTY: &str = "faulty";
const GOOD: &str = "good";

/// Fails one in `steps` steps, and one in eight other calls. `in_the_middle`
/// counts faults of transfers that had moved bytes already.
fn at_random(seed: u64, steps: u64, for_good: bool, in_the_middle: Arc<AtomicU64>) -> Tamper {
    let mut random = Random::new(seed);
    Box::new(move |call, _, moved_bytes| {
        let one_in = if call == Call::Step { steps } else { 8 };
        if call == Call::Finish || random.below(one_in) > 0 {
            return Ok(());
        }
        // Relaxed: one thread counts and reads.
        in_the_middle.fetch_add(u64::from(moved_bytes > 0), Ordering::Relaxed);
        Err(Fault::Demote { errno: 5, for_good, sentence: "the test injected a fault".to_owned() })
    })
}

fn small_quota() -> Config {
    Config { quota_bytes: 65_536, ..rendezvous() }
}

impl<M: Lmt, F: Fn() -> M> Under<F> {
    /// Two ranks with a mechanism that fails by `tamper` and, if asked for, a
    /// good one behind it: both are the one under test.
    fn faulty(&self, with_good: bool, tamper: impl Fn(&Group) -> Tamper, body: impl Fn(&Link<'_>)) {
        self.in_group(
            Test::new(self.test, 2),
            |_| {},
            |group| {
                let mut mechanisms = Mechanisms::new();
                mechanisms.register(Wrapper::named((self.make)(), FAULTY).tamper(tamper(group)));
                if with_good {
                    mechanisms.register(Wrapper::named((self.make)(), GOOD));
                }
                let link = Link::open(group, mechanisms, small_quota());
                let lacks: Vec<String> =
                    self.models().iter().filter_map(|model| link.lacks(FAULTY, *model)).collect();
                if lacks.len() == self.models().len() {
                    skip(group, &lacks.join("; "));
                } else {
                    body(&link);
                }
                link.close();
            },
        );
    }
}

/// Failures in the middle of messages: the next mechanism takes over what is
/// left, and every byte is right.
pub fn demotion<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    let in_the_middle = Arc::new(AtomicU64::new(0));
    let tamper =
        |group: &Group| at_random(u64::from(group.rank()) + 11, 6, false, Arc::clone(&in_the_middle));
    under.faulty(true, tamper, |link| {
        for round in 0..60 {
            let bytes = 1 + (round * 77_777) % 1_500_000;
            let shape = || Scattered::new(round, &[bytes / 3, 0, bytes - bytes / 3], || 9);
            link.deliver((round % 2) as u32, shape, || Scattered::contiguous(bytes));
        }
        for round in 0..10 {
            ping_ping(link, &[900_000 + round, 1, 70_000, 400_000]);
        }
        let (faulty, good) = (link.counters(FAULTY), link.counters(GOOD));
        assert!(faulty.demotions > 0, "no fault was injected in this rank");
        assert!(faulty.messages > 0 && good.messages > 0, "{faulty:?}, {good:?}: both must have carried");
        assert_eq!(good.demotions, 0, "the good one has failed");
        assert_eq!(faulty.messages + good.messages, 60 + 10 * 8);
        // Relaxed: this thread counted. In either rank some hit a transfer that
        // had begun: half of the messages come here, half leave.
        assert!(in_the_middle.load(Ordering::Relaxed) > 0, "no fault came in the middle of a message");
    });
}

/// Failures for good: after them the mechanism is not tried again in that
/// model.
pub fn demotion_for_good<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    let count = Arc::new(AtomicU64::new(0));
    let tamper = |group: &Group| at_random(u64::from(group.rank()) + 5, 4, true, Arc::clone(&count));
    under.faulty(true, tamper, |link| {
        for round in 0..40_usize {
            let bytes = 600_000 + round;
            link.deliver(
                (round % 2) as u32,
                || Scattered::contiguous(bytes),
                || Scattered::contiguous(bytes),
            );
        }
        let before = link.counters(FAULTY);
        ping_ping(link, &[500_000; 8]);
        assert_eq!(link.counters(FAULTY), before, "what was given up for good was tried again");
        let mechanism_status = link.endpoint.mechanism_status(link.other());
        let faulty = mechanism_status.into_iter().find(|(name, _)| *name == FAULTY).expect("it was probed").1;
        assert!(faulty.reason.is_some(), "nobody can see why it was given up");
    });
}

/// When nothing is left that could move it, both sides are told so, with the
/// peer's name, and what needs no mechanism goes on.
pub fn no_mechanism_left<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    let always = |_: &Group| -> Tamper {
        Box::new(|call, _, moved_bytes| match call {
            Call::Step if moved_bytes > 0 => {
                Err(Fault::Demote { errno: 5, for_good: false, sentence: "the test broke it".to_owned() })
            }
            _ => Ok(()),
        })
    };
    under.faulty(false, always, |link| {
        for round in 0..6 {
            let seed = link.next_seed();
            let result = if link.rank() == round % 2 {
                let out = Scattered::contiguous(2_000_000).fill(seed);
                link.endpoint.send_segments(link.other(), seed, &out.slices())
            } else {
                let mut into = Scattered::contiguous(2_000_000);
                let tags = TagMatch::exactly(seed);
                link.endpoint.receive_segments(Source::Any, tags, &mut into.slices_mut())
            };
            let other = link.group.id().member(1 - link.rank());
            match result {
                Err(OperationError::Peer(PeerError::NoMechanism { id, .. })) => assert_eq!(id, other),
                unexpected => panic!("with no mechanism left, the operation ended in {unexpected:?}"),
            }
            link.meet();
        }
    });
}
