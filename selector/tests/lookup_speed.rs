//! What one lookup in a peer's table of decisions costs, against the bound of
//! 20 ns a message.
//!
//! Only with `LMT_SPEED=1` (`make speed`): other work on the machine would be
//! what is measured.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lmt_core::config::Config;
use lmt_core::cpu_set::CpuSet;
use lmt_core::mechanism::{Abilities, MechanismStatus, Model};
use lmt_core::rendezvous::Candidates;
use lmt_core::selection::{
    Decisions, Hints, KnownMechanism, Message, Policy, Reuse, Situation, Variant, Warmth,
};
use lmt_selector::configuration::Configuration;
use lmt_selector::policy::RulePolicy;
use lmt_selector::rules::{Authority, Bound, Layer, Rule, Take};
use lmt_selector::topology::Machine;

const MAX_NS: f64 = 20.0;
const ROUNDS: usize = 101;
const LOOKUPS: usize = 1 << 16;

/// Rules at each power of 4 from 4 KiB up to 4 MiB, some of them with hints.
fn rules() -> Vec<Rule> {
    let rule = |step: u32| Rule {
        above: Some(Bound::Bytes(4096 << (2 * step))),
        up_to: (step < 5).then_some(Bound::Bytes(4096 << (2 * step + 2))),
        places: Vec::new(),
        contiguous: (step == 1).then_some(true),
        warmth: (step == 2).then_some(Warmth::Warm),
        reuse: (step == 3).then_some(Reuse::Again),
        min_processes: None,
        single_copy: None,
        take: Take::Ways(vec![["a", "b", "c"][step as usize % 3].parse().expect("a way")]),
        max_readers: Some(4),
        line: step,
    };
    (0..6).map(rule).collect()
}

fn decisions() -> Decisions {
    let able = Abilities { read: true, write: true, cooperate: true };
    let known = |name, models| {
        let standing = MechanismStatus { ours: able, theirs: able, reason: None };
        KnownMechanism::new(name, models, standing)
    };
    let mechanisms = [
        known("a", &[Model::Get, Model::Put]),
        known("b", &[Model::Cooperative]),
        known("c", &[Model::Get, Model::Put, Model::Cooperative]),
    ];
    let layer = Layer {
        authority: Authority::User,
        path: PathBuf::from("lmt.toml"),
        rules: rules(),
        ranges: Vec::new(),
        figures: Vec::new(),
    };
    let configuration = Configuration { layers: vec![layer], ..Configuration::default() };
    let machine = Machine::synthetic("l2:1(size=4194304) core:2 pu:1").expect("a machine");
    let mut policy = RulePolicy::new(Arc::new(configuration), Arc::new(machine).into());
    let (here, there) = (CpuSet::from_iter([0]), CpuSet::from_iter([1]));
    let config = Config::default();
    policy.decide(&Situation {
        here: &here,
        there: &there,
        processes: &[here, there],
        mechanisms: &mechanisms,
        config: &config,
        is_connected: true,
        has_fast_box: true,
        is_one_sided: false,
    })
}

/// All lengths and variants in an order that a branch predictor does not learn.
fn messages() -> Vec<Message> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let variants: Vec<Variant> = Variant::all().collect();
    let mut message = || {
        let variant = variants[random(variants.len() as u64) as usize];
        let hints: Hints = variant.hints();
        let (contiguous, readers) = (variant.is_contiguous(), random(6) as u32);
        let shared = variant.shared_ends();
        Message { bytes: random(4096) << random(12), contiguous, shared, hints, readers }
    };
    (0..4096).map(|_| message()).collect()
}

fn time_ns(messages: &[Message], look: impl Fn(&Message) -> Candidates) -> f64 {
    let start = Instant::now();
    for at in 0..LOOKUPS {
        black_box(look(black_box(&messages[at % messages.len()])));
    }
    start.elapsed().as_nanos() as f64 / LOOKUPS as f64
}

#[test]
fn a_lookup_costs_under_20_ns() {
    if std::env::var_os("LMT_SPEED").is_none_or(|value| value != "1") {
        println!("SKIPPED a_lookup_costs_under_20_ns: it measures only with LMT_SPEED=1");
        return;
    }
    let (decisions, messages) = (decisions(), messages());
    // As the engine takes them: a copy of the list.
    let lookup = |message: &Message| *decisions.candidates(message);
    let copy = *decisions.candidates(&messages[0]);
    let without = |_: &Message| copy;
    // In turns, so that what disturbs one disturbs the other.
    let mut lookups: Vec<f64> = Vec::new();
    let mut copies: Vec<f64> = Vec::new();
    for _ in 0..ROUNDS {
        lookups.push(time_ns(&messages, lookup));
        copies.push(time_ns(&messages, without));
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (lookup_ns, copy_ns) = (median(lookups), median(copies));
    println!("a lookup with a copy of its list: {lookup_ns:.1} ns; the copy alone: {copy_ns:.1} ns");
    assert!(lookup_ns < MAX_NS, "a lookup takes {lookup_ns:.1} ns, and must take less than {MAX_NS}");
}
