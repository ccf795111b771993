//! A sender that computes costs its receiver nothing where both ends could copy.
//!
//! Only with `LMT_SPEED=1` (`make speed`): other work on the machine would be
//! what is measured.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lmt::config_key::Value;
use lmt::{Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::group::{self, Group};
use lmt_conformance::test_name;

const LIMIT: Duration = Duration::from_secs(120);
const SIZES: [usize; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Messages of each way and size, in turns.
const ROUNDS: usize = 201;
/// The median with a sender that might come may be so many times the median
/// with one that never does.
const MOST: f64 = 1.03;
/// What else runs on the machine only ever adds: one good measurement of a size
/// shows what lmt can do.
const ATTEMPTS: usize = 5;
const WAYS: [&str; 2] = ["cma:both", "cma:get"];

/// An endpoint that knows one way, and the other rank's.
struct Way {
    endpoint: Endpoint,
    peer: PeerId,
}

impl Way {
    fn open(group: &Group, at: usize) -> Self {
        let id = |rank: u32| group.id().member(10 + 2 * at as u32 + rank);
        let builder = Endpoint::builder().id(id(group.rank())).mechanisms(&[WAYS[at]]);
        // Whatever its length, a message goes this way.
        let builder = builder.set("eager_max_bytes", Value::Number(0)).expect("a key");
        let endpoint = builder.build().expect("an endpoint");
        let other = lmt::Address::abstract_socket(id(1 - group.rank()));
        let peer = endpoint.insert_peer(&other).expect("there is room");
        group.barrier();
        endpoint.send(peer, 0, &[]).expect("the other is there");
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(0), &mut []).expect("the other is there");
        Self { endpoint, peer }
    }

    /// One message whose sender announces it and calls nothing until it has
    /// arrived. Returns how long the receiver took.
    fn message(&self, group: &Group, data: &mut [u8]) -> Duration {
        let Self { endpoint, peer } = self;
        if group.rank() == 0 {
            endpoint.scope(|scope| {
                let send = scope.send(*peer, 1, data).expect("begins");
                group.barrier();
                compute_until_barrier(group);
                send.wait().expect("it has arrived");
            });
            return Duration::ZERO;
        }
        group.barrier();
        let begun = Instant::now();
        endpoint.receive(Source::Peer(*peer), TagMatch::exactly(1), data).expect("arrives");
        let took = begun.elapsed();
        group.barrier();
        took
    }
}

fn compute_until_barrier(group: &Group) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            group.barrier();
            // Relaxed: it tells of nothing but itself.
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

#[test]
fn a_busy_sender_costs_nothing() {
    if std::env::var("LMT_SPEED").as_deref() != Ok("1") {
        println!("SKIPPED: it means something on a quiet machine only; LMT_SPEED=1 (make speed) runs it");
        return;
    }
    let results = group::run(test_name!(), 2, LIMIT, |group| {
        let ways = [0, 1].map(|at| Way::open(group, at));
        for bytes in SIZES {
            let mut data = vec![1; bytes];
            let mut least = f64::INFINITY;
            for _ in 0..ATTEMPTS {
                let mut times = [Vec::new(), Vec::new()];
                for round in 0..ROUNDS {
                    for at in [round % 2, 1 - round % 2] {
                        times[at].push(ways[at].message(group, &mut data));
                    }
                }
                let [both, get] = times.map(median);
                least = least.min(both / get);
            }
            if group.rank() == 1 {
                group.report(format!("{bytes} B: {} takes {least:.3} times what {} takes", WAYS[0], WAYS[1]));
                assert!(least < MOST, "{bytes} B take {least:.3} times as long where the sender might help");
            }
        }
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}
