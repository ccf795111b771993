//! Whether what is chosen at run time, by default and with `adapt` on, is as good as the best
//! fixed way, by messages between two real processes.
//!
//! Only with `LMT_SPEED=1` (`make speed-adaptive`): it takes both cores and a release
//! build to mean something. `LMT_SPEED_CHOOSER=auto` (`make speed`) asserts the default alone.

mod common;

use std::hint::black_box;
use std::ops::DerefMut;
use std::time::{Duration, Instant};

use common::folder;
use lmt::keys::Value;
use lmt::mechanism::SharedEnds;
use lmt::selection::{Message, Taken};
use lmt::{Address, Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test, allowed_cpus};
use lmt_conformance::test_name;

/// What a fixed choice may be, but for ways that are the same copy by another
/// name. `eager` stands for cells.
const WAYS: [&str; 9] = [
    "eager",
    "ring:stream",
    "ring:cooperative",
    "cma:get",
    "cma:put",
    "cma:both",
    "knem-user:get",
    "shm",
    "vmsplice",
];
/// What is for shared buffers only.
const WAYS_OF_SHARED: [&str; 3] = ["mapped:get", "mapped:put", "mapped:both"];
/// Who choose at run time, by the key `adapt`; `auto` is its default.
const CHOOSERS: [&str; 2] = ["auto", "on"];
/// Messages of each rank at the beginning of a phase, in which the way is found.
const TO_FIND: u32 = 200;
/// Then everybody takes turns: so many, each of so many bytes from each rank, but
/// of so many messages at least. The first third of them brings back what the others
/// have displaced.
const TURNS: usize = 21;
const BYTES_A_TURN: usize = 4 << 20;
const MESSAGES_A_TURN: u32 = 12;
/// Untouched and touched by turns.
const PHASES: u32 = 4;
/// How many times as long as the best fixed way it may take.
const MOST: f64 = 1.05;
/// The machine is shared, and others' work only adds time.
const ATTEMPTS: u32 = 5;
const LIMIT: Duration = Duration::from_secs(120);
const TAG: u64 = 1;
/// Bytes of the messages with which two get to know each other.
const FIRST_BYTES: u64 = 8;

/// One way of choosing, with an endpoint of its own.
struct Contender {
    name: &'static str,
    endpoint: Endpoint,
    peer: PeerId,
}

impl Contender {
    /// The `number`-th of this rank: one of [`CHOOSERS`] or [`WAYS`].
    fn new(group: &Group, number: u32, name: &'static str) -> Self {
        let id = |rank: u32| group.id().member(rank + number * group.size());
        let builder = Endpoint::builder().id(id(group.rank()));
        let is_chooser = CHOOSERS.contains(&name);
        // Who has one way only has it as fast as it can be.
        let adapt = Value::Text(if is_chooser { name } else { "auto" }.to_owned());
        let builder = builder.set("adapt", adapt).expect("a key");
        let builder = match name {
            _ if is_chooser => builder,
            "eager" => builder.set("eager_max_bytes", Value::Number(1 << 20)).expect("a key"),
            // What is short enough for cells otherwise goes this way, too; but what a way
            // for shared buffers cannot carry, the first messages, does not.
            way => {
                builder.mechanisms(&[way]).set("eager_max_bytes", Value::Number(FIRST_BYTES)).expect("a key")
            }
        };
        let endpoint = builder.build().expect("an endpoint can be made");
        let address = Address::abstract_socket(id(1 - group.rank()));
        let peer = endpoint.insert_peer(&address).expect("a peer");
        Self { name, endpoint, peer }
    }

    /// Whether messages like this go by it, once the two have met.
    fn works(&self, group: &Group, message: &Message) -> bool {
        let buffer = || vec![0_u8; FIRST_BYTES as usize];
        self.messages(group, &mut [buffer(), buffer()], 1, false);
        let explanation = self.endpoint.explain_message(self.peer, message).expect("the two have met");
        match explanation.taken {
            Taken::By { .. } => true,
            Taken::Eager => self.name == "eager",
            _ => false,
        }
    }

    /// So many messages of each rank, by turns, of the first buffer into the other.
    fn messages<M: DerefMut<Target = [u8]>>(
        &self,
        group: &Group,
        memory: &mut [M; 2],
        count: u32,
        is_touched: bool,
    ) {
        let [data, into] = memory.each_mut().map(DerefMut::deref_mut);
        for message in 0..count * 2 {
            if message % 2 == group.rank() {
                if is_touched {
                    data.fill(message as u8);
                    black_box(&mut *data);
                }
                self.endpoint.send(self.peer, TAG, data).expect("sent");
            } else {
                let from = Source::Peer(self.peer);
                self.endpoint.receive(from, TagMatch::exactly(TAG), into).expect("received");
                if is_touched {
                    // The lines have to come over; summing up is not what is timed.
                    black_box(into.iter().step_by(64).fold(0_u64, |sum, byte| sum + u64::from(*byte)));
                }
            }
        }
    }
}

/// What one rank sends and receives: so long, in buffers of `lmt::alloc` or not.
#[derive(Clone, Copy, Debug)]
struct Case {
    bytes: usize,
    is_shared: bool,
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Everybody in turns. Returns how many times as long as the best fixed way each of
/// [`CHOOSERS`], which are the first contenders, took, by medians over the turns, and what each
/// took.
fn compare<M: DerefMut<Target = [u8]>>(
    group: &Group,
    contenders: &[Contender],
    memory: &mut [M; 2],
    is_touched: bool,
) -> ([f64; CHOOSERS.len()], String) {
    let messages = MESSAGES_A_TURN.max((BYTES_A_TURN / memory[0].len()) as u32);
    let to_warm_up = messages / 3;
    let mut times = vec![Vec::with_capacity(TURNS); contenders.len()];
    for turn in 0..TURNS {
        for place in 0..contenders.len() {
            let at = (place + turn) % contenders.len();
            contenders[at].messages(group, memory, to_warm_up, is_touched);
            let begin = Instant::now();
            contenders[at].messages(group, memory, messages - to_warm_up, is_touched);
            times[at].push(begin.elapsed().as_secs_f64());
        }
    }
    let medians: Vec<f64> = times.iter().map(|times| median(&mut times.clone())).collect();
    let best = (CHOOSERS.len()..contenders.len()).min_by(|a, b| medians[*a].total_cmp(&medians[*b]));
    let best = best.expect("something works");
    let ratio = |chooser: usize| {
        let turns = times[chooser].iter().zip(&times[best]);
        median(&mut turns.map(|(own, best)| own / best).collect::<Vec<_>>())
    };
    let one_way_us = 1e6 / f64::from(2 * (messages - to_warm_up));
    let of_each = contenders.iter().zip(&medians);
    let of_each = of_each.map(|(contender, median)| format!("{} {:.2}", contender.name, median * one_way_us));
    (std::array::from_fn(ratio), of_each.collect::<Vec<_>>().join(", "))
}

/// What the endpoint has found of the messages that are measured.
fn what_is_found(endpoint: &Endpoint) -> String {
    let mut streams = endpoint.streams();
    // Of messages before the peer's buffers were known there is another.
    streams.sort_by_key(|(_, stream)| stream.total_ns);
    let Some((_, stream)) = streams.pop() else { return "nothing found".to_owned() };
    let period = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| format!("{:.1}", ns / 1e3));
    let ways =
        stream.ways.iter().map(|way| format!("{} {} ({})", way.way, period(way.period_ns), way.trials));
    format!(
        "{} chosen, {} trials of {:.1} ms, {} changes; periods: {}",
        stream.chosen,
        stream.trials,
        stream.tried_ns as f64 / 1e6,
        stream.changes,
        ways.collect::<Vec<_>>().join(", ")
    )
}

/// All phases of one case; each rank tells what it has seen of those in which it
/// was too slow.
fn phases<M: DerefMut<Target = [u8]>>(group: &Group, case: Case, memory: &mut [M; 2]) {
    let message = Message {
        shared: SharedEnds { sender: case.is_shared, receiver: case.is_shared },
        ..Message::of_bytes(case.bytes as u64)
    };
    let of_shared: &[&'static str] = if case.is_shared { &WAYS_OF_SHARED } else { &[] };
    let ways = WAYS.iter().chain(of_shared).copied();
    let all = CHOOSERS.into_iter().chain(ways);
    let all = (0..).zip(all).map(|(number, name)| Contender::new(group, number, name));
    let works = |one: &Contender| CHOOSERS.contains(&one.name) || one.works(group, &message);
    let contenders: Vec<Contender> = all.filter(works).collect();
    assert!(contenders.len() > CHOOSERS.len() + 1, "there is nothing to choose from");
    for contender in &contenders {
        // What a way needs is made when it is first used.
        contender.messages(group, memory, 8, false);
    }
    for phase in 0..PHASES {
        let is_touched = phase % 2 == 1;
        let choosers = &contenders[..CHOOSERS.len()];
        choosers.iter().for_each(|chooser| chooser.messages(group, memory, TO_FIND, is_touched));
        let found: Vec<String> = choosers.iter().map(|chooser| what_is_found(&chooser.endpoint)).collect();
        let (ratios, of_each) = compare(group, &contenders, memory, is_touched);
        let touched = if is_touched { "touched" } else { "untouched" };
        for ((name, ratio), found) in CHOOSERS.into_iter().zip(ratios).zip(found) {
            let verdict = if ratio > MOST { "TOO SLOW" } else { "ok" };
            group.report(format!(
                "{} B, shared {}, phase {phase}, {touched:9}, {name:4}: {verdict}, {ratio:.3} of the best; us: {of_each}; {found}",
                case.bytes, case.is_shared,
            ));
        }
    }
    group.barrier();
}

fn is_asked_for() -> bool {
    if std::env::var("LMT_SPEED").as_deref() != Ok("1") {
        println!("SKIPPED: it takes the whole machine; LMT_SPEED=1 (make speed-adaptive) runs it");
        return false;
    }
    if cfg!(debug_assertions) {
        panic!("LMT_SPEED means something in a release build only; use make speed-adaptive");
    }
    let is_rank = !matches!(lmt::launch::Group::from_env(), Ok(None));
    if !is_rank && allowed_cpus().len() < 2 {
        println!("SKIPPED: two processes on one core measure the scheduler");
        return false;
    }
    true
}

/// Runs a case until each chooser was within the bound in all phases of one attempt.
fn run(name: &str, case: Case) {
    let asked = std::env::var("LMT_SPEED_CHOOSER").unwrap_or_default();
    let mut open: Vec<&str> =
        CHOOSERS.into_iter().filter(|name| asked.is_empty() || asked == *name).collect();
    assert!(!open.is_empty(), "LMT_SPEED_CHOOSER={asked}, where it may be one of {CHOOSERS:?}");
    for attempt in 1..=ATTEMPTS {
        let cpus: Vec<usize> = allowed_cpus().into_iter().take(2).collect();
        let test = Test::new(name, 2).time_limit(LIMIT).pin(&cpus);
        // By the built-in order of this machine, whichever kind it is.
        let test = common::configured_by(&folder(name), test).env("LMT_SINGLE_COPY", "");
        let results = test.run(|group| {
            if case.is_shared {
                let buffer = || lmt::alloc(case.bytes).expect("there is memory");
                phases(group, case, &mut [buffer(), buffer()]);
            } else {
                phases(group, case, &mut [vec![1; case.bytes], vec![2; case.bytes]]);
            }
        });
        let Some(lines) = results.reports.first() else {
            // A rank of a later attempt.
            continue;
        };
        lines.iter().for_each(|line| println!("attempt {attempt}: {line}"));
        assert_eq!(lines.len(), PHASES as usize * CHOOSERS.len(), "each phase was measured");
        let is_missed = |chooser: &&str| {
            let slow = format!(", {chooser:4}: TOO SLOW");
            lines.iter().any(|line| line.contains(&slow))
        };
        open.retain(is_missed);
        if open.is_empty() {
            return;
        }
    }
    panic!("after {ATTEMPTS} attempts of {case:?} these still miss some phase: {open:?}");
}

#[test]
fn in_128_kib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 128 << 10, is_shared: false });
    }
}

#[test]
fn in_256_kib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 256 << 10, is_shared: false });
    }
}

#[test]
fn in_512_kib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 512 << 10, is_shared: false });
    }
}

#[test]
fn in_1_mib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 1 << 20, is_shared: false });
    }
}

#[test]
fn in_4_mib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 4 << 20, is_shared: false });
    }
}

#[test]
fn in_shared_128_kib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 128 << 10, is_shared: true });
    }
}

#[test]
fn in_shared_256_kib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 256 << 10, is_shared: true });
    }
}

#[test]
fn in_shared_1_mib_the_best_way_is_found() {
    if is_asked_for() {
        run(test_name!(), Case { bytes: 1 << 20, is_shared: true });
    }
}
