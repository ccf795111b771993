use lmt_selector::contention::{BROADWELL, KNL};

use super::*;
use crate::call::Domain;

fn call(kind: Kind, size: u32, bytes: u64) -> Call {
    Call {
        kind,
        rank: 0,
        size,
        root: 0,
        bytes,
        blocks: Blocks::Equal(bytes),
        input_blocks: Blocks::Equal(bytes),
        in_place: false,
        element_bytes: 1,
        domains: vec![Domain::ALL; size as usize].into(),
        slot_bytes: 4096,
    }
}

fn chooser(figures: Option<&Parameters>) -> Chooser {
    Chooser { single_copy: true, ..Chooser::new(figures.cloned()) }
}

#[test]
fn what_fits_into_slots_takes_them() {
    let mut chooser = chooser(Some(&KNL.parameters));
    for kind in Kind::ALL {
        let bytes = 4096 / 8;
        assert_eq!(chooser.choose(&call(kind, 8, bytes), false).algorithm, Algorithm::Slots, "{kind}");
        let beyond = chooser.choose(&call(kind, 8, 4097), false);
        assert_eq!(beyond.algorithm == Algorithm::Slots, kind == Kind::Barrier, "{kind}");
    }
}

#[test]
fn two_ranks_swap_what_is_short() {
    let mut chooser = chooser(None);
    for kind in [Kind::Allgather, Kind::Alltoall] {
        let mut of = |size, bytes| {
            let slot_bytes = 1 << 20;
            chooser.choose(&Call { slot_bytes, ..call(kind, size, bytes) }, false).algorithm
        };
        for bytes in [0, 1, 8 << 10, (8 << 10) + 1, 64 << 10, 192 << 10] {
            assert_eq!(of(2, bytes), Algorithm::Swap, "{kind} of {bytes}");
            assert_ne!(of(3, bytes), Algorithm::Swap, "{kind} of {bytes}");
        }
        assert_eq!(of(2, (192 << 10) + 1), Algorithm::Pipelined(128));
    }
}

#[test]
fn roots_of_two_ranks_send_long_blocks_in_longer_pieces() {
    let mut chooser = chooser(None);
    for kind in [Kind::Broadcast, Kind::Scatter, Kind::Gather] {
        let mut of = |bytes| chooser.choose(&call(kind, 2, bytes), false).algorithm;
        assert_eq!((of(64 << 10), of(512 << 10)), (Algorithm::Pipelined(32), Algorithm::Pipelined(32)));
        assert_eq!(
            (of((512 << 10) + 1), of(CACHED_BYTES)),
            (Algorithm::Pipelined(64), Algorithm::Pipelined(64))
        );
        assert!(!matches!(of(CACHED_BYTES + 1), Algorithm::Pipelined(_)), "{kind}");
    }
}

#[test]
fn alltoall_of_more_goes_through_slots_in_pieces_as_long_as_caches_hold_it() {
    let mut chooser = chooser(None);
    let mut of = |size, bytes, slot_bytes| {
        chooser.choose(&Call { slot_bytes, ..call(Kind::Alltoall, size, bytes) }, false).algorithm
    };
    assert_eq!(of(8, 100 << 10, 1 << 20), Algorithm::Pipelined(64), "it fits");
    assert_eq!(of(8, 1 << 20, 1 << 20), Algorithm::Pipelined(128));
    assert_eq!(of(8, CACHED_BYTES, 1 << 20), Algorithm::Pipelined(128));
    assert_eq!(of(8, CACHED_BYTES + 1, 1 << 20), Algorithm::Pairwise);
    let mut of_many = |size| of(size, 256 << 10, crate::create::slot_bytes(size));
    assert_eq!((of_many(11), of_many(12)), (Algorithm::Pipelined(128), Algorithm::Pairwise));
    assert_eq!((of_many(64), of_many(1000)), (Algorithm::Pairwise, Algorithm::Pairwise), "too short pieces");
}

#[test]
fn roots_of_few_ranks_copy_for_all_what_caches_hold() {
    let mut chooser = chooser(None);
    for (kind, beyond) in
        [(Kind::Scatter, Algorithm::ThrottledRead(4)), (Kind::Gather, Algorithm::ThrottledWrite(4))]
    {
        let mut of = |size, bytes, slot_bytes| {
            chooser.choose(&Call { slot_bytes, ..call(kind, size, bytes) }, false).algorithm
        };
        assert_eq!(of(8, 128 << 10, 1 << 20), Algorithm::Slots);
        assert_eq!(of(8, (128 << 10) + 1, 1 << 20), Algorithm::Pipelined(128));
        assert_eq!(of(3, CACHED_BYTES, 1 << 20), Algorithm::Pipelined(128));
        assert_eq!(of(3, CACHED_BYTES + 1, 1 << 20), beyond);
        assert_eq!(of(9, 64 << 10, 1 << 20), Algorithm::Slots);
        for bytes in [(64 << 10) + 1, 128 << 10, 1 << 20] {
            assert_eq!(of(9, bytes, 1 << 20), beyond, "single copies are made by many");
        }
        assert_eq!(of(8, 1 << 20, 32 << 10), beyond, "too short pieces");
    }
}

#[test]
fn where_single_copy_is_denied_nothing_needs_it() {
    let mut chooser = Chooser::new(Some(KNL.parameters.clone()));
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Barrier) {
        let choice = chooser.choose(&call(kind, 5, 1 << 20), false);
        assert!(!choice.algorithm.needs_single_copy(), "{choice:?}");
        let listed = chooser.choose(&call(kind, 5, 1 << 20), true);
        assert_eq!(listed.algorithm, Algorithm::Messages);
        assert!(chooser.check(choice.algorithm, kind).is_ok());
        let reaching = Algorithm::of(kind).find(|one| one.needs_single_copy()).expect("there is one");
        let sentence = chooser.check(reaching, kind).expect_err("denied").to_string();
        assert!(sentence.contains("may not reach") && sentence.contains("messages"), "{sentence}");
    }
}

#[test]
fn a_calibration_has_the_model_choose() {
    for (machine, ranks) in [(&KNL, 64), (&BROADWELL, 28)] {
        let mut chooser = chooser(Some(&machine.parameters));
        let choice = chooser.choose(&call(Kind::Broadcast, ranks, 4 << 20), false);
        assert_eq!(choice.algorithm, Algorithm::ScatterAllgather, "{}", machine.name);
        assert!(choice.reason.contains("predicted to take"), "{}", choice.reason);
        // The same again, from what is kept.
        assert_eq!(chooser.choose(&call(Kind::Broadcast, ranks, 4 << 20), false), choice);
        assert_eq!(chooser.kept.len(), 1);
    }
}

/// What a message costs lets the model speak of pieces too; it chooses none of which there
/// would be too many.
#[test]
fn of_many_ranks_the_model_chooses_what_can_be_done() {
    let message = Some(lmt_selector::contention::MessageCost { start_us: 0.2, byte_ns: 0.01 });
    let mut chooser = chooser(Some(&Parameters { message, ..KNL.parameters.clone() }));
    for (kind, size) in Kind::ALL.into_iter().flat_map(|kind| [2, 16, 256, 1024].map(|size| (kind, size))) {
        for bytes in [32 << 10, 1 << 20, 4 << 20] {
            let slot_bytes = crate::create::slot_bytes(size);
            let call = Call { slot_bytes, ..call(kind, size, bytes) };
            let choice = chooser.choose(&call, false);
            let made = crate::algorithms::program(&call, choice.algorithm);
            assert!(made.is_ok(), "{kind} of {size} ranks and {bytes} bytes: {choice:?}");
        }
    }
}

/// Ranks that share no cache leave long blocks to single copies.
#[test]
fn caches_that_are_not_shared_hold_no_pieces() {
    let mut apart = Chooser { one_cache: false, ..chooser(None) };
    let mut together = chooser(None);
    let slot_bytes = 1 << 20;
    for kind in [Kind::Broadcast, Kind::Allgather, Kind::Alltoall, Kind::Scatter, Kind::Gather] {
        let call = Call { slot_bytes, ..call(kind, 4, 64 << 10) };
        assert!(!together.choose(&call, false).algorithm.needs_single_copy(), "{kind}");
        let long = Call { bytes: 256 << 10, blocks: Blocks::Equal(256 << 10), ..call };
        assert!(apart.choose(&long, false).algorithm.needs_single_copy(), "{kind}");
    }
}

#[test]
fn no_more_is_kept_than_it_should() {
    let mut chooser = chooser(Some(&KNL.parameters));
    for bytes in 5000..5100 {
        chooser.choose(&call(Kind::Scatter, 7, bytes), false);
    }
    assert_eq!(chooser.kept.len(), KEPT);
}

#[test]
fn every_choice_can_do_what_it_is_chosen_for() {
    for figures in [None, Some(&KNL.parameters)] {
        let mut chooser = chooser(figures);
        for (kind, size) in Kind::ALL.into_iter().flat_map(|kind| [2, 3, 8, 9].map(|size| (kind, size))) {
            for is_listed in [false, true] {
                let call = call(kind, size, 72 << 10);
                let choice = chooser.choose(&call, is_listed);
                assert!(chooser.check(choice.algorithm, kind).is_ok());
                assert!(crate::algorithms::program(&call, choice.algorithm).is_ok(), "{kind}: {choice:?}");
                assert!(!choice.reason.is_empty());
            }
        }
    }
}
