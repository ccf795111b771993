use super::*;
use crate::algorithms;
use crate::program::Step;
use crate::simulation::{Case, Outcome, any_call, attempt, check, domains, sweep};
use proptest::prelude::*;

#[test]
fn every_algorithm_agrees_with_the_serial_model() {
    for algorithm in Algorithm::of(Kind::Broadcast) {
        sweep(Kind::Broadcast, (1..=18_u32).prop_map(move |number| algorithm.with_number(number)), 300);
    }
}

#[test]
fn long_messages_agree_too() {
    for algorithm in Algorithm::of(Kind::Broadcast).filter(|&algorithm| algorithm != Algorithm::Slots) {
        for size in [2, 3, 6, 9] {
            let domains = domains(size, 2, 2, false);
            let case = Case { root: size / 2, domains, ..Case::new(Kind::Broadcast, size, (1 << 20) + 1) };
            assert!(
                matches!(attempt(&case, algorithm, 1), Ok(Outcome::Same { .. })),
                "{algorithm}, {size} ranks"
            );
        }
    }
}

/// The calls of all ranks.
fn calls(size: u32, bytes: u64) -> impl Iterator<Item = Call> {
    (0..size).map(move |rank| any_call(&Case::new(Kind::Broadcast, size, bytes), rank))
}

#[test]
fn long_messages_go_along_a_chain_where_the_tree_is_deep() {
    let root_sends = |size, bytes: u64| {
        let root = calls(size, bytes).next().unwrap();
        let program = algorithms::program(&root, Algorithm::Messages).unwrap();
        let sent = |action: &Action| match action {
            Action::Send { rank, .. } => *rank,
            other => panic!("{other:?}"),
        };
        program.steps.iter().flatten().map(sent).collect::<Vec<u32>>()
    };
    assert_eq!(root_sends(8, 768 << 10), [4, 2, 1], "twice the message and 6 pieces are 3 messages");
    assert_eq!(root_sends(8, 1 << 20), [1; 8]);
    assert_eq!(root_sends(4, 1 << 30), [2, 1], "twice the message anyway");
    assert_eq!(root_sends(5, 64 << 30).len(), 1 << 14, "no more pieces than that");
}

#[test]
fn no_more_read_from_one_than_the_tree_allows() {
    for readers in 1..=6 {
        for size in 1..=17 {
            let case = Case { root: size / 3, ..Case::new(Kind::Broadcast, size, 100) };
            let most = check(&case, Algorithm::Knomial(readers), 7);
            assert!(most <= readers as usize, "{most} of {size} ranks with {readers} readers");
        }
    }
}

/// When the last rank has the message if each read takes a unit of time: each begins
/// when all that is awaited before has come.
fn rounds(size: u32, readers: u32) -> u64 {
    let awaited = |step: &Step| {
        step.iter().find_map(|action| match action {
            Action::Await { rank, .. } => Some(*rank),
            _ => None,
        })
    };
    let mut ends: Vec<u64> = vec![0];
    for call in calls(size, 1).skip(1) {
        let program = algorithms::program(&call, Algorithm::Knomial(readers)).unwrap();
        let begins = awaited(&program.steps[0]).map_or(0, |rank| ends[rank as usize]);
        ends.push(begins + 1);
    }
    ends.into_iter().max().unwrap()
}

#[test]
fn a_tree_of_k_readers_takes_log_k_plus_1_rounds() {
    for readers in 1..=10_u32 {
        for size in 1..=130_u32 {
            let mut least = 0;
            while u64::from(readers + 1).pow(least) < u64::from(size) {
                least += 1;
            }
            assert_eq!(rounds(size, readers), u64::from(least), "{size} ranks, {readers} readers");
        }
    }
}

#[test]
fn a_tree_of_any_number_of_readers_is_made() {
    for readers in [u32::MAX, u32::MAX - 1, 1 << 31, 1 << 16] {
        assert_eq!(rounds(40, readers), 1);
    }
}

#[test]
fn writes_and_ring_reads_do_not_contend() {
    let case = Case::new(Kind::Broadcast, 9, 9 * 4096);
    assert_eq!(check(&case, Algorithm::DirectWrite, 1), 1);
    assert_eq!(check(&Case::new(Kind::Broadcast, 2, 8192), Algorithm::ScatterAllgather, 1), 1);
    assert_eq!(check(&case, Algorithm::DirectRead, 1), 8, "that it is seen where they do");
}

#[test]
fn chunks_cover_the_message_and_begin_at_pages_where_they_can() {
    let lengths = [0, 1, 63, 64, 65, 1000, 4096, 5 * 4096, 70_000, 1 << 20, (1 << 20) + 1, u64::MAX];
    for (size, bytes) in (1..=17).flat_map(|size| lengths.map(|bytes| (size, bytes))) {
        let call = calls(size, bytes).next().unwrap();
        let unit = if bytes >= u64::from(size) * 4096 { 4096 } else { 1 };
        let chunks: Vec<Span> = (0..size).map(|other| chunk(&call, other)).collect();
        let mut end = 0;
        for chunk in &chunks {
            assert_eq!(chunk.offset, end);
            assert!(chunk.offset % unit == 0, "{chunk:?} of {bytes} bytes among {size}");
            end += chunk.bytes;
        }
        assert_eq!(end, bytes);
        let (least, most) = (chunks.iter().min_by_key(|c| c.bytes), chunks.iter().max_by_key(|c| c.bytes));
        assert!(most.unwrap().bytes - least.unwrap().bytes < 2 * 4096, "{chunks:?}");
    }
}
