//! The DSA engine over a software work queue that faults, lies about nothing
//! but is wrong about everything else: the bytes always arrive, and memory is
//! left alone as soon as the engine says so.
#![cfg(not(loom))]
#![allow(unsafe_code)] // Memory is lent to the engine.

mod software_queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lmt_core::buffer::{Access, Segment};
use lmt_ioat::dsa::queue::Limits;
use lmt_ioat::dsa::{Config, DsaEngine, DsaJob};
use lmt_ioat::engine::{CopyEngine, CopyFailure, Progress, State, SubmitError};
use lmt_ioat::places::{CopyList, Mapped, Place};
use proptest::prelude::*;
use software_queue::{Faults, SoftwareQueue, UNTOUCHED};

type Engine = DsaEngine<SoftwareQueue>;
type Job = DsaJob<SoftwareQueue>;

const LIMIT: Duration = Duration::from_secs(30);

fn limits() -> Limits {
    Limits { max_transfer_bytes: 1 << 20, max_batch: 16, max_in_flight: 8, can_block_on_fault: false }
}

/// Quick to give a device up, so that a test of lost descriptors ends, but not
/// at the first, empty descriptor.
fn config() -> Config {
    Config { stall_limit: Duration::from_millis(30), answer_limit: LIMIT, ..Config::default() }
}

/// An engine, and how many units its queue has.
fn engine(config: Config, limits: Limits, faults: Faults) -> (Engine, Arc<AtomicUsize>) {
    let queue = SoftwareQueue::new(limits, faults);
    let watch = queue.watch();
    let mut queue = Some(queue);
    let open = move || Ok(queue.take().expect("it is opened once"));
    (DsaEngine::over(Box::new(open), config), watch)
}

/// Copies between two blocks of memory; they are lent until this is dropped.
struct Memory {
    source: Vec<u8>,
    target: Vec<u8>,
    /// Where each copy's bytes are, in both.
    cuts: Vec<(usize, usize)>,
}

impl Memory {
    /// A copy of each length, with gaps between them.
    fn new(lengths: &[usize]) -> Self {
        let mut at = 0;
        let mut cuts = Vec::new();
        for (nth, bytes) in lengths.iter().enumerate() {
            at += nth % 3;
            cuts.push((at, *bytes));
            at += bytes;
        }
        let source = (0..at).map(|at| (at * 31 % 229) as u8).collect();
        Self { source, target: vec![UNTOUCHED; at], cuts }
    }

    fn list(&mut self) -> CopyList {
        let mut list = CopyList::new();
        for (at, bytes) in &self.cuts {
            let from = Segment::of(&self.source[*at..at + bytes]);
            let to = Segment::of_mut(&mut self.target[*at..at + bytes]);
            // SAFETY: every test drops its jobs before the memory.
            let from = unsafe { Mapped::new(from, Access::Read) };
            // SAFETY: the same.
            let to = unsafe { Mapped::new(to, Access::Write) };
            list.push(Place::Mapped(from), Place::Mapped(to), *bytes as u64).expect("both have the bytes");
        }
        list
    }

    /// What the target holds now, read as the memory of others that it may be.
    fn byte(&self, at: usize) -> u8 {
        // SAFETY: a byte of a live vector.
        unsafe { std::ptr::read_volatile(&raw const self.target[at]) }
    }

    /// Checks that the first so many bytes of the list have arrived.
    fn check(&self, mut bytes: u64) {
        for (at, length) in &self.cuts {
            let there = bytes.min(*length as u64) as usize;
            for at in *at..at + there {
                assert_eq!(self.byte(at), self.source[at], "byte {at}");
            }
            bytes -= there as u64;
        }
    }

    /// Whether the last copy has arrived, and if so that all others have.
    fn check_last(&self) {
        let Some((at, bytes)) = self.cuts.last() else { return };
        let arrives = *bytes > 0 && self.byte(*at) == self.source[*at];
        if arrives && (*at..at + bytes).all(|at| self.byte(at) == self.source[at]) {
            self.check(self.source.len() as u64 - self.gaps());
        }
    }

    fn gaps(&self) -> u64 {
        self.source.len() as u64 - self.cuts.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>()
    }

    fn total(&self) -> u64 {
        self.source.len() as u64 - self.gaps()
    }

    /// Checks that nothing was written between the copies.
    fn check_gaps(&self) {
        let inside = |at: usize| self.cuts.iter().any(|(start, bytes)| (*start..start + bytes).contains(&at));
        assert!((0..self.target.len()).all(|at| inside(at) || self.byte(at) == UNTOUCHED));
    }
}

/// Polls to the end, and checks what is told on the way.
fn drive(engine: &mut Engine, job: &mut Job, memory: &Memory) -> Progress {
    let begun = Instant::now();
    let mut before = 0;
    loop {
        let progress = engine.poll(job);
        assert!(progress.bytes >= before, "progress went back");
        if progress.bytes > before {
            before = progress.bytes;
            memory.check(progress.bytes);
        }
        memory.check_last();
        if progress.state != State::Running {
            return progress;
        }
        assert!(begun.elapsed() < LIMIT, "not done: {progress:?} of {}", memory.total());
    }
}

fn any_faults() -> impl Strategy<Value = Faults> {
    let rate = || prop_oneof![Just(0u64), 0u64..300, Just(1000)];
    (
        any::<u64>(),
        rate(),
        rate(),
        prop_oneof![Just(0u64), 0u64..200],
        prop_oneof![9 => Just(0u64), 1 => 1u64..100],
    )
        .prop_flat_map(|(seed, page_fault, full, odd_status, lost)| {
            let refuses_after = prop_oneof![4 => Just(None), 1 => (1u64..20).prop_map(Some)];
            (refuses_after, 0u64..500).prop_map(move |(refuses_after, idle)| Faults {
                seed,
                page_fault,
                // The first, empty descriptor has to come through.
                full: full.min(900),
                odd_status,
                lost,
                refuses_after,
                idle,
                ..Faults::default()
            })
        })
}

fn any_limits() -> impl Strategy<Value = Limits> {
    (prop_oneof![300u32..2000, 4096u32..70_000], 0u32..20, 1u32..10).prop_map(
        |(max_transfer_bytes, max_batch, max_in_flight)| Limits {
            max_transfer_bytes,
            max_batch,
            max_in_flight,
            can_block_on_fault: false,
        },
    )
}

fn any_lengths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![0usize..20, 1usize..3000, 3000usize..20_000], 0..12)
}

fn any_config() -> impl Strategy<Value = Config> {
    (prop_oneof![Just(0u32), Just(100), Just(4096)], 1u32..6, 0u32..4).prop_map(
        |(min_copy_bytes, units, max_retries)| Config { min_copy_bytes, units, max_retries, ..config() },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_right_bytes_arrive_whatever_the_faults(
        faults in any_faults(), limits in any_limits(), lengths in any_lengths(), config in any_config(),
    ) {
        let (mut engine, _) = engine(config, limits, faults);
        let mut memory = Memory::new(&lengths);
        let mut job = engine.submit(memory.list()).unwrap();
        let progress = drive(&mut engine, &mut job, &memory);
        prop_assert_eq!(progress, Progress { bytes: memory.total(), state: State::Done });
        memory.check(memory.total());
        memory.check_gaps();
        let counters = engine.counters();
        prop_assert_eq!(counters.device_bytes + counters.cpu_bytes, memory.total());
    }

    #[test]
    fn many_lists_at_once_all_arrive(
        faults in any_faults(), limits in any_limits(), lists in prop::collection::vec(any_lengths(), 1..6),
    ) {
        let (mut engine, _) = engine(Config { units: 3, min_copy_bytes: 50, ..config() }, limits, faults);
        let mut memories: Vec<_> = lists.iter().map(|lengths| Memory::new(lengths)).collect();
        let mut jobs: Vec<_> = memories.iter_mut().map(|memory| engine.submit(memory.list()).unwrap()).collect();
        for (job, memory) in jobs.iter_mut().zip(&memories).rev() {
            let progress = drive(&mut engine, job, memory);
            prop_assert_eq!(progress.state, State::Done);
        }
        memories.iter().for_each(|memory| memory.check(memory.total()));
    }

    #[test]
    fn what_is_taken_back_is_left_alone(
        faults in any_faults(), lengths in any_lengths(), polls in 0usize..12, how in 0..4,
    ) {
        let (mut engine, watch) = engine(Config { min_copy_bytes: 0, ..config() }, limits(), faults);
        let mut memory = Memory::new(&lengths);
        let mut job = engine.submit(memory.list()).unwrap();
        let mut told = Progress { bytes: 0, state: State::Running };
        for _ in 0..polls {
            told = engine.poll(&mut job);
        }
        match how {
            0 => {
                let last = engine.quiesce(job);
                prop_assert!(last.bytes >= told.bytes && last.state != State::Running);
                memory.check(last.bytes);
            }
            1 => drop(job),
            2 => {
                drop(engine);
                prop_assert_eq!(watch.load(Ordering::Relaxed), 0);
                return Ok(());
            }
            _ => {
                engine.cancel(&mut job);
                let last = drive(&mut engine, &mut job, &memory);
                prop_assert!(matches!(last.state, State::Done | State::Failed(CopyFailure::Cancelled)));
            }
        }
        prop_assert_eq!(watch.load(Ordering::Relaxed), 0, "the queue still has a part of it");
        // What comes later does not touch it either.
        memory.target.fill(UNTOUCHED);
        let mut next = Memory::new(&[5000, 4000]);
        let mut other = engine.submit(next.list()).unwrap();
        prop_assert_eq!(drive(&mut engine, &mut other, &next).state, State::Done);
        prop_assert!((0..memory.target.len()).all(|at| memory.byte(at) == UNTOUCHED));
    }
}

#[test]
fn a_sound_device_copies_all_that_is_worth_a_descriptor() {
    let (mut engine, _) = engine(Config::default(), limits(), Faults::default());
    let mut memory = Memory::new(&[4095, 4096, 100_000, 1 << 20, (1 << 20) + 1, 17]);
    let mut job = engine.submit(memory.list()).unwrap();
    assert_eq!(drive(&mut engine, &mut job, &memory).state, State::Done);
    let counters = engine.counters();
    assert_eq!(counters.cpu_bytes, 4095 + 17);
    assert_eq!((counters.page_faults, counters.retries, counters.last_refusal), (0, 0, None));
    // The longest copy has to be cut in two.
    assert_eq!(counters.descriptors, 5);
}

#[test]
fn a_full_queue_is_tried_again_and_not_for_ever() {
    let faults = Faults { full: 1000, ..Faults::default() };
    let queue = Config { answer_limit: Duration::from_millis(20), ..Config::default() };
    let why = engine(queue, limits(), faults).0.available().unwrap_err();
    assert_eq!((why.errno, why.sentence.contains("full")), (libc::EAGAIN, true), "{why}");
    let faults = Faults { full: 980, seed: 5, ..Faults::default() };
    let (mut engine, _) =
        engine(Config { max_retries: 3, answer_limit: LIMIT, ..Config::default() }, limits(), faults);
    let mut memory = Memory::new(&[10_000; 8]);
    let mut job = engine.submit(memory.list()).unwrap();
    assert_eq!(drive(&mut engine, &mut job, &memory).state, State::Done);
    let counters = engine.counters();
    assert!(counters.retries > 3 && counters.cpu_bytes > 0, "{counters:?}");
}

#[test]
fn a_device_that_stands_still_is_given_up_and_its_copies_are_made() {
    let (mut engine, watch) = engine(config(), limits(), Faults { lost: 1000, ..Faults::default() });
    let mut memory = Memory::new(&[10_000, 20_000]);
    let mut job = engine.submit(memory.list()).unwrap();
    assert_eq!(drive(&mut engine, &mut job, &memory).state, State::Done);
    assert_eq!(watch.load(Ordering::Relaxed), 0);
    assert!(engine.available().unwrap_err().sentence.contains("has not answered"));
    let mut memory = Memory::new(&[30_000]);
    let mut job = engine.submit(memory.list()).unwrap();
    assert_eq!(drive(&mut engine, &mut job, &memory).state, State::Done, "by the CPU");
}

#[test]
fn what_a_closed_device_may_still_write_is_not_given_back() {
    let faults = Faults { lost: 1000, never_drains: true, ..Faults::default() };
    for by_drop_of_engine in [false, true] {
        let queue = SoftwareQueue::new(Limits { max_batch: 1, ..limits() }, faults);
        let late = queue.late();
        let mut queue = Some(queue);
        let open = move || Ok(queue.take().expect("it is opened once"));
        let mut engine = DsaEngine::over(Box::new(open), config());
        let mut memory = Memory::new(&[10_000, 20_000]);
        let mut job = engine.submit(memory.list()).unwrap();
        let begun = Instant::now();
        while engine.available().is_ok() {
            assert_eq!(engine.poll(&mut job).state, State::Running);
            assert!(begun.elapsed() < LIMIT, "a device that stands still is not given up");
        }
        assert_eq!(engine.poll(&mut job).state, State::Running, "the device may still write");
        let mut other = Memory::new(&[30_000]);
        let mut by_cpu = engine.submit(other.list()).unwrap();
        assert_eq!(drive(&mut engine, &mut by_cpu, &other).state, State::Done, "others go on");
        let waiter = std::thread::spawn(move || match by_drop_of_engine {
            true => {
                drop(engine);
                drop(job);
                None
            }
            false => Some(engine.quiesce(job)),
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiter.is_finished(), "the memory was given back under the device");
        assert!(late.finish() > 0);
        let ended = waiter.join().unwrap();
        assert!(ended.is_none_or(|ended| ended.state != State::Running));
    }
}

#[test]
fn a_device_that_does_not_answer_is_asked_once_and_soon_given_up() {
    let faults = Faults { lost: 1000, mute: true, never_drains: true, ..Faults::default() };
    let queue = SoftwareQueue::new(limits(), faults);
    let late = queue.late();
    let mut queue = Some(queue);
    let open = move || Ok(queue.take().expect("it is opened once"));
    let mut engine = DsaEngine::over(Box::new(open), Config::default());
    assert!(Config::default().answer_limit <= Duration::from_millis(50));
    let why = engine.available().unwrap_err();
    assert!(why.sentence.contains("does not answer"), "{why}");
    assert_eq!(engine.available(), Err(why), "kept, for the queue cannot be opened again");
    // Its answer comes late, and finds its memory still there.
    assert_eq!(late.finish(), 1);
}

#[test]
fn what_is_left_to_the_cpu_is_done_a_little_at_a_time() {
    let short = Config { min_copy_bytes: u32::MAX, ..config() };
    let (mut engine, _) =
        engine(short, Limits { max_transfer_bytes: 1 << 30, ..limits() }, Faults::default());
    let mut memory = Memory::new(&[3 << 20]);
    let mut job = engine.submit(memory.list()).unwrap();
    let mut polls = 0;
    while engine.poll(&mut job).state == State::Running {
        polls += 1;
        assert!(engine.counters().cpu_bytes <= polls * (256 << 10), "too much in one call");
    }
    assert_eq!(polls, 11);
    memory.check(memory.total());
    assert_eq!(engine.counters().cpu_bytes, memory.total());
}

#[test]
fn a_device_that_refuses_all_is_given_up_with_its_reason() {
    let (mut engine, _) = engine(config(), limits(), Faults { odd_status: 1000, ..Faults::default() });
    for _ in 0..12 {
        let mut memory = Memory::new(&[10_000, 20_000]);
        let mut job = engine.submit(memory.list()).unwrap();
        assert_eq!(drive(&mut engine, &mut job, &memory).state, State::Done);
    }
    let why = engine.available().unwrap_err().sentence;
    assert!(why.contains("refuses all") && why.contains("status 0x"), "{why}");
}

#[test]
fn jobs_outlive_their_engine_and_foreign_places_are_refused() {
    let (mut engine, _) = engine(config(), limits(), Faults::default());
    let mut foreign = CopyList::new();
    foreign.push(Place::Peer(4096), Place::Peer(8192), 5).unwrap();
    assert!(matches!(engine.submit(foreign), Err(SubmitError::OutOfReach)));
    let mut memory = Memory::new(&[100_000]);
    let mut job = engine.submit(memory.list()).unwrap();
    let mut other = engine_of_nothing();
    drop(engine);
    let gone = Progress { bytes: 0, state: State::Failed(CopyFailure::EngineGone) };
    assert_eq!(other.poll(&mut job), gone);
}

fn engine_of_nothing() -> Engine {
    engine(config(), limits(), Faults::default()).0
}

#[test]
fn a_forked_child_neither_waits_nor_touches() {
    let lost = Faults { lost: 1000, ..Faults::default() };
    let (mut engine, watch) = engine(Config { stall_limit: LIMIT, ..config() }, limits(), lost);
    let mut memory = Memory::new(&[100_000]);
    let mut job = Some(engine.submit(memory.list()).unwrap());
    // SAFETY: the child only looks and leaves without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let job = job.as_mut().map(|job| engine.poll(job).state);
        let is_right = job == Some(State::Failed(CopyFailure::EngineGone)) && engine.available().is_err();
        drop(engine);
        // SAFETY: ends the child at once, as intended.
        unsafe { libc::_exit(i32::from(!is_right)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above, and writes to `status` only.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(watch.load(Ordering::Relaxed), 1, "the parent's copy is still in its queue");
    // Not to wait for the stall: nothing works on it any more.
    std::mem::forget((job, engine, memory));
}
