//! Thousands of receives and messages between real processes, matched in any
//! order; and a hundred thousand requests.
//!
//! How long that takes is measured only with `LMT_SPEED=1` (`make speed`): other
//! work on the machine would be what is measured.

mod common;
#[path = "../../lmt-core/tests/counting/mod.rs"]
mod counting;

use std::time::{Duration, Instant};

use common::{LIMIT, Random, join, status_kib};
use lmt::{Endpoint, OperationError, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

const MANY: usize = 10_000;
const RUNS: usize = 7;
/// In reverse it may take so many times as long as in order.
const MOST: f64 = 3.0;

const READY: TagMatch = TagMatch::exactly(1 << 40);

fn measures() -> bool {
    std::env::var_os("LMT_SPEED").is_some_and(|value| value == "1")
}

/// Two ranks, of which each keeps all unexpected messages of the other.
fn between_two(name: &str, body: impl FnOnce(&Endpoint, &Group, PeerId)) {
    let results = Test::new(name, 2).time_limit(LIMIT).run(|group| {
        let (endpoint, peers) = join(group, |config| config.unexpected_max_bytes = 8 << 20);
        let other = peers[1 - group.rank() as usize];
        body(&endpoint, group, other);
        group.barrier();
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}

fn tell(endpoint: &Endpoint, to: PeerId) {
    endpoint.send(to, READY.tag, &[]).expect("sent");
}

fn await_word(endpoint: &Endpoint, from: PeerId) {
    endpoint.receive(Source::Peer(from), READY, &mut []).expect("received");
}

fn send_numbers(endpoint: &Endpoint, to: PeerId, tags: impl Iterator<Item = usize>) {
    for tag in tags {
        endpoint.send(to, tag as u64, &tag.to_le_bytes()).expect("sent");
    }
}

fn in_order(reverse: bool) -> Box<dyn Iterator<Item = usize>> {
    if reverse { Box::new((0..MANY).rev()) } else { Box::new(0..MANY) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Runs both orders in turns, so that what disturbs one disturbs the other, and
/// bounds how much longer the reverse takes.
fn both_orders(group: &Group, mut run: impl FnMut(bool) -> Duration) {
    let (mut forth, mut back) = (Vec::new(), Vec::new());
    for _ in 0..if measures() { RUNS } else { 1 } {
        forth.push(run(false));
        back.push(run(true));
    }
    let (forth, back) = (median(forth), median(back));
    if measures() && group.rank() == 1 {
        group.report(format!("{MANY} in order {forth:?}, in reverse {back:?}"));
        assert!(back < forth.mul_f64(MOST), "in order {forth:?}, in reverse {back:?}");
    }
}

/// Receives of other kinds among the exact ones, which match nothing that is
/// sent: of another tag from anybody, and of ignored bits.
fn wildcards<'scope, 'env: 'scope>(
    scope: &'scope lmt::Scope<'scope, 'env, Endpoint>,
    from: PeerId,
    into: &'env mut [[u8; 8]],
) {
    for (number, into) in (1 << 30..).zip(into) {
        let tags = match number % 3 {
            0 => TagMatch::exactly(number),
            _ => TagMatch { tag: number << 8, ignore: 0xff },
        };
        let source = if number % 2 == 0 { Source::Any } else { Source::Peer(from) };
        // Cancelled at the end of the scope.
        let _posted = scope.receive(source, tags, into).expect("posted");
    }
}

#[test]
fn posted_receives_match_in_reverse() {
    between_two(test_name!(), |endpoint, group, other| {
        both_orders(group, |reverse| {
            if group.rank() == 0 {
                await_word(endpoint, other);
                send_numbers(endpoint, other, in_order(reverse));
                return Duration::ZERO;
            }
            let mut into = vec![[0; 8]; MANY];
            let mut others = vec![[0; 8]; MANY / 10];
            let time = endpoint.scope(|scope| {
                wildcards(scope, other, &mut others);
                let receive = |(tag, into): (usize, _)| {
                    scope.receive(Source::Peer(other), TagMatch::exactly(tag as u64), into)
                };
                let into = into.iter_mut().map(|into| &mut into[..]).enumerate();
                let posted: Vec<_> = into.map(receive).collect::<Result<_, _>>().expect("posted");
                let begun = Instant::now();
                tell(endpoint, other);
                scope.wait_all(posted).into_iter().for_each(|end| {
                    end.expect("received");
                });
                begun.elapsed()
            });
            into.iter().enumerate().for_each(|(tag, into)| assert_eq!(usize::from_le_bytes(*into), tag));
            time
        });
    });
}

#[test]
fn unexpected_messages_are_received_in_reverse() {
    between_two(test_name!(), |endpoint, group, other| {
        for any in [false, true] {
            let source = if any { Source::Any } else { Source::Peer(other) };
            both_orders(group, |reverse| {
                if group.rank() == 0 {
                    send_numbers(endpoint, other, 0..MANY);
                    tell(endpoint, other);
                    await_word(endpoint, other);
                    return Duration::ZERO;
                }
                await_word(endpoint, other);
                let begun = Instant::now();
                for tag in in_order(reverse) {
                    let mut into = [0; 8];
                    endpoint.receive(source, TagMatch::exactly(tag as u64), &mut into).expect("received");
                    assert_eq!(usize::from_le_bytes(into), tag);
                }
                let time = begun.elapsed();
                tell(endpoint, other);
                time
            });
        }
    });
}

/// Half of the receives are taken back, in any order; the others still match.
#[test]
fn any_of_many_posted_receives_is_taken_back() {
    between_two(test_name!(), |endpoint, group, other| {
        if group.rank() == 0 {
            await_word(endpoint, other);
            return send_numbers(endpoint, other, (0..MANY).filter(|tag| tag % 2 == 0));
        }
        let mut into = vec![[0; 8]; MANY];
        endpoint.scope(|scope| {
            let (mut stay, mut go) = (Vec::new(), Vec::new());
            for (tag, into) in into.iter_mut().enumerate() {
                let posted = scope.receive(Source::Peer(other), TagMatch::exactly(tag as u64), into);
                if tag % 2 == 0 { &mut stay } else { &mut go }.push(posted.expect("posted"));
            }
            let mut random = Random::new(1);
            while !go.is_empty() {
                let at = random.below(go.len() as u64) as usize;
                assert_eq!(go.swap_remove(at).cancel(), Err(OperationError::Cancelled));
            }
            tell(endpoint, other);
            scope.wait_all(stay).into_iter().for_each(|end| {
                end.expect("received");
            });
        });
        for (tag, into) in into.iter().enumerate() {
            assert_eq!(usize::from_le_bytes(*into), if tag % 2 == 0 { tag } else { 0 });
        }
    });
}

/// Requests that are made and dropped, made and cancelled, and made and waited
/// for, so many at once; their time per request.
fn requests(endpoint: &Endpoint, myself: PeerId, count: usize) -> Duration {
    let mut into = vec![[0; 8]; count];
    let begun = Instant::now();
    for kind in 0..3 {
        endpoint.scope(|scope| {
            let receive = |(tag, into): (usize, _)| {
                scope.receive(Source::Peer(myself), TagMatch::exactly(tag as u64), into).expect("posted")
            };
            let into = into.iter_mut().map(|into| &mut into[..]).enumerate();
            let posted = into.map(receive);
            match kind {
                0 => posted.for_each(drop),
                1 => posted.collect::<Vec<_>>().into_iter().for_each(|request| {
                    assert_eq!(request.cancel(), Err(OperationError::Cancelled));
                }),
                _ => {
                    let posted: Vec<_> = posted.collect();
                    send_numbers(endpoint, myself, (0..count).rev());
                    scope.wait_all(posted).into_iter().for_each(|end| {
                        end.expect("received");
                    });
                }
            }
        });
    }
    let time = begun.elapsed();
    into.iter().enumerate().for_each(|(tag, into)| assert_eq!(usize::from_le_bytes(*into), tag));
    time / count as u32
}

#[test]
fn a_hundred_thousand_requests_take_no_more_time_or_memory_than_they_must() {
    const COUNT: usize = 100_000;
    let results = Test::new(test_name!(), 1).time_limit(LIMIT).run(|group| {
        let (endpoint, peers) = join(group, |_| {});
        let before_kib = status_kib("VmRSS");
        requests(&endpoint, peers[0], COUNT);
        let grown_kib = status_kib("VmRSS") - before_kib;
        let before = counting::of_process();
        requests(&endpoint, peers[0], COUNT);
        let count = counting::of_process() - before;
        group.report(format!("{COUNT} requests take {grown_kib} KiB; {count} allocations the next time"));
        assert!(grown_kib < COUNT as u64, "a KiB a request is more than they need");
        // The test's own lists, and a hash table that grows once more.
        assert!(count < 100, "{count} allocations where the tables should be used again");
        if measures() {
            let (mut few, mut many) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                few.push(requests(&endpoint, peers[0], COUNT / 100));
                many.push(requests(&endpoint, peers[0], COUNT));
            }
            let (few, many) = (median(few), median(many));
            group.report(format!("a request of {} takes {few:?}, of {COUNT} {many:?}", COUNT / 100));
            assert!(many < few.mul_f64(MOST), "of few {few:?}, of many {many:?}");
        }
    });
    results.reports.iter().flatten().for_each(|line| println!("{line}"));
}
