//! What is explained is what is decided, whatever is configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use lmt_core::cpu_set::CpuSet;
use lmt_core::mechanism::{Abilities, MechanismStatus, Model, Reach, SharedEnds};
use lmt_core::selection::{Hints, KnownMechanism, Message, Reuse, Source, Warmth};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::RulePolicy;
use super::test_support::*;
use crate::configuration::{Configuration, DmaMinSetting, SelectionSettings};
use crate::rules::{Authority, Bound, Layer, MechanismRange, Rule, SingleCopy, Take};
use crate::topology::Machine;

const MACHINES: [&str; 4] = [
    E5345,
    "package:1 numa:1 l3:1(size=33554432) l2:4(size=1048576) core:1 pu:2",
    "package:2 numa:2 core:2 pu:1",
    "pu:3",
];
const NAMES: [&str; 7] = ["a", "a:get", "a:put", "a-far", "b", "c:cooperative", "nobody"];
const WARMTHS: [Warmth; 3] = [Warmth::Unknown, Warmth::Warm, Warmth::Cold];
const SPEEDS: [SingleCopy; 2] = [SingleCopy::Fast, SingleCopy::Slow];
const REUSES: [Reuse; 3] = [Reuse::Unknown, Reuse::Once, Reuse::Again];

fn bound() -> impl Strategy<Value = Bound> {
    let bytes = prop_oneof![Just(0), Just(4096), Just(65536), Just(1 << 20), Just(u64::MAX), 0..1u64 << 22];
    prop_oneof![4 => bytes.prop_map(Bound::Bytes), 1 => Just(Bound::DmaMin)]
}

fn take() -> impl Strategy<Value = Take> {
    let ways = vec(select(&NAMES[..]), 1..4);
    let ways = ways.prop_map(|names| Take::Ways(names.iter().map(|name| name.parse().unwrap()).collect()));
    prop_oneof![1 => Just(Take::Eager), 4 => ways]
}

fn rule() -> impl Strategy<Value = Rule> {
    let bounds = (of(bound()), of(bound()));
    let hints = (of(any::<bool>()), of(select(&WARMTHS[1..])), of(select(&REUSES[1..])));
    let counts = (of(0..4u32), of(0..4u32), 1..100u32);
    let rest = (take(), of(select(&SPEEDS[..])));
    (bounds, vec(select(&PLACES[..]), 0..3), hints, rest, counts).prop_map(
        |(
            (above, up_to),
            places,
            (contiguous, warmth, reuse),
            (take, single_copy),
            (min_processes, max_readers, line),
        )| {
            Rule {
                above,
                up_to,
                places,
                contiguous,
                warmth,
                reuse,
                min_processes,
                single_copy,
                take,
                max_readers,
                line,
            }
        },
    )
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let range = (select(&["a", "a-far", "b", "c"][..]), of(bound()), of(bound())).prop_map(
        |(mechanism, above, up_to)| MechanismRange { mechanism: mechanism.to_owned(), above, up_to, line: 1 },
    );
    let authority = select(&[Authority::User, Authority::Calibration, Authority::Default][..]);
    let layer = (authority, vec(rule(), 0..5), vec(range, 0..3))
        .prop_map(|(authority, rules, ranges)| Layer { ranges, ..layer(authority, rules) });
    vec(layer, 0..5).prop_map(|mut layers| {
        layers.sort_by_key(|layer| layer.authority);
        // The first of the user's files is `lmt.toml`, the second `1.toml`.
        let users = layers.iter_mut().take_while(|layer| layer.authority == Authority::User);
        users.enumerate().skip(1).for_each(|(at, layer)| layer.path = format!("/home/user/{at}.toml").into());
        layers
    })
}

/// Any that can set a key: files that are there, some that have no rules, and
/// none.
fn source() -> impl Strategy<Value = Source> {
    let line = 1;
    let file = |path: &str| Source::File { path: path.to_owned(), line };
    select(vec![
        Source::Call,
        Source::Environment { variable: "LMT_KEY".to_owned() },
        file("/home/user/lmt.toml"),
        file("/home/user/1.toml"),
        file("/elsewhere.toml"),
        Source::Calibration { path: "/home/user/calibration.toml".to_owned(), line },
        Source::Default { line: None },
    ])
}

fn settings() -> impl Strategy<Value = Configuration> {
    let dma_min = prop_oneof![
        Just(DmaMinSetting::ByCores),
        Just(DmaMinSetting::ByProcesses),
        (0..1u64 << 22).prop_map(DmaMinSetting::Bytes)
    ];
    let selection =
        (dma_min, 0..4u32, of(select(&SPEEDS[..]))).prop_map(|(dma_min, max_readers, single_copy)| {
            SelectionSettings { dma_min, max_readers, single_copy }
        });
    let keys = select(vec!["eager_max_bytes", "max_readers", "mechanisms"]);
    let sources = vec((keys, source()), 0..3).prop_map(BTreeMap::from_iter);
    let names = of(vec(select(&NAMES[..]), 1..4));
    (layers(), selection, sources, names, 0..1u64 << 20).prop_map(
        |(layers, selection, sources, names, eager_max_bytes)| {
            let mut configuration = Configuration { layers, selection, sources, ..Default::default() };
            configuration.config.eager_max_bytes = eager_max_bytes;
            configuration.config.mechanisms =
                names.map(|names| names.into_iter().map(str::to_owned).collect());
            configuration
        },
    )
}

fn mechanisms() -> impl Strategy<Value = Vec<KnownMechanism>> {
    let list: [(&'static str, &'static [Model]); 4] = [
        ("a", &[Model::Get, Model::Put]),
        ("a-far", &[Model::Put, Model::Cooperative, Model::Get]),
        ("b", &[Model::Cooperative]),
        ("c", &[Model::Get, Model::Cooperative]),
    ];
    let abilities = || (0..8u8).prop_map(Abilities::from_bits);
    let reach = || select(vec![Reach::AnyMemory, Reach::SharedBuffers]);
    let times = || of(select(vec![1.0, SingleCopy::MAX_FAST_RATIO, 4.0]));
    vec((abilities(), abilities(), reach(), times()), list.len()).prop_map(move |mechanism_status| {
        let known = |((name, models), found): ((&'static str, &'static [Model]), _)| {
            let (ours, theirs, reach, times_plain_copy) = found;
            let standing = MechanismStatus { ours, theirs, reason: None };
            KnownMechanism { reach, times_plain_copy, ..KnownMechanism::new(name, models, standing) }
        };
        list.into_iter().zip(mechanism_status).map(known).collect()
    })
}

fn cpus() -> impl Strategy<Value = CpuSet> {
    vec(0..8usize, 0..3).prop_map(CpuSet::from_iter)
}

fn world() -> impl Strategy<Value = World> {
    let places = (cpus(), cpus(), vec(cpus(), 0..4));
    let own = proptest::sample::subsequence(vec!["a", "b"], 0..2);
    (settings(), select(&MACHINES[..]), places, mechanisms(), own, any::<[bool; 2]>()).prop_map(
        |(configuration, machine, (here, there, processes), mechanisms, own, [has_eager, has_fast_box])| {
            let machine = Arc::new(Machine::synthetic(machine).unwrap());
            let config = configuration.config.clone();
            let policy = RulePolicy::new(Arc::new(configuration), machine.into()).with_own_mechanisms(own);
            let policy = if has_eager { policy } else { policy.without_eager() };
            World { policy, config, here, there, processes, mechanisms, is_connected: true, has_fast_box }
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let near = (select(vec![0, 4096, 65536, 1 << 20, 1 << 21]), 0..3u64)
        .prop_map(|(bytes, offset): (u64, u64)| (bytes + offset).saturating_sub(1));
    let bytes = prop_oneof![near, 0..1u64 << 23, Just(u64::MAX)];
    let shared = any::<(bool, bool)>().prop_map(|(sender, receiver)| SharedEnds { sender, receiver });
    (bytes, any::<bool>(), shared, select(&WARMTHS[..]), select(&REUSES[..]), 0..5u32).prop_map(
        |(bytes, contiguous, shared, warmth, reuse, readers)| Message {
            bytes,
            contiguous,
            shared,
            hints: Hints { warmth, reuse },
            readers,
        },
    )
}

proptest! {
    #[test]
    fn explanations_agree_with_decisions(world in world(), messages in vec(message(), 1..20)) {
        for message in messages {
            let mut decided = world.ways(&message);
            if !world.policy.has_eager {
                // A table cannot say that even 0 bytes are announced.
                decided.retain(|way| way != "eager");
            }
            prop_assert_eq!(&decided, &world.explained_ways(&message));
            let explanation = world.explain(&message);
            for way in decided.iter().filter(|way| *way != "eager") {
                let name = way.split(':').next().unwrap();
                let known = world.mechanisms.iter().find(|known| known.name == name).unwrap();
                prop_assert!(known.is_available());
            }
            // What is told of the cap is what holds.
            let capped = Message { readers: u32::MAX - 1, ..message };
            let is_capped = explanation.notes.iter().any(|note| note.contains("other processes read this one"));
            if world.ways(&capped) != world.ways(&Message { readers: 0, ..message }) && decided[0] != "eager" {
                prop_assert!(is_capped, "{}", explanation);
            }
            // Each mechanism is accounted for once.
            let taken = usize::from(decided.first().is_some_and(|way| way != "eager"));
            prop_assert_eq!(explanation.not_taken.len() + taken, world.mechanisms.len());
        }
    }
}
