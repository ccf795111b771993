use super::*;
use crate::call::Blocks;
use crate::call::Domain;

fn call(kind: Kind, bytes: u64) -> Call {
    Call {
        kind,
        rank: 1,
        size: 3,
        root: 2,
        bytes,
        blocks: Blocks::Equal(bytes),
        input_blocks: Blocks::Equal(bytes),
        in_place: false,
        element_bytes: 1,
        domains: [Domain::ALL; 3].into(),
        slot_bytes: 4096,
    }
}

fn said(call: &Call, algorithm: Algorithm, is_listed: bool) -> String {
    PostedSignature(Signature::of(call, algorithm, 0, is_listed).words).to_string()
}

#[test]
fn all_kinds_and_algorithms_are_told_apart() {
    let mut seen = std::collections::HashMap::new();
    for kind in Kind::ALL {
        for algorithm in Algorithm::ALL {
            for (is_listed, bytes) in [(false, 100), (false, 101), (true, 100)] {
                let signature = Signature::of(&call(kind, bytes), algorithm, 7, is_listed);
                let what = (kind, algorithm, is_listed, bytes);
                assert_eq!(seen.insert(signature.hash, what), None, "{what:?}");
            }
        }
    }
}

#[test]
fn what_ranks_may_differ_in_does_not_count() {
    let mut other = call(Kind::Gather, 100);
    let own = Signature::of(&other, Algorithm::ThrottledWrite(4), 0, false);
    (other.rank, other.in_place) = (0, true);
    assert_eq!(own, Signature::of(&other, Algorithm::ThrottledWrite(4), 0, false));
    // Where there is no root all are in place or none is.
    let mut other = call(Kind::Allreduce, 100);
    let own = Signature::of(&other, Algorithm::DirectReduce, 0, false);
    other.in_place = true;
    assert_ne!(own, Signature::of(&other, Algorithm::DirectReduce, 0, false));
    // In the forms with lists each rank of a gather has its own length.
    let lengths = [5, 6].map(|bytes| Signature::of(&call(Kind::Gather, bytes), Algorithm::Messages, 0, true));
    assert_eq!(lengths[0], lengths[1]);
}

#[test]
fn the_lists_that_all_know_count() {
    let listed = |bytes| {
        let mut call = call(Kind::Allgather, 1);
        call.blocks =
            Blocks::Listed([1, 2, bytes].map(|bytes| crate::call::Block { offset: bytes * 7, bytes }).into());
        Signature::of(&call, Algorithm::RingSourceRead, 0, true)
    };
    assert_ne!(listed(3), listed(4));
}

#[test]
fn it_says_what_the_call_is() {
    assert_eq!(
        said(&call(Kind::Broadcast, 100), Algorithm::Knomial(4), false),
        "bcast with root 2 of 100 bytes by knomial:4"
    );
    assert_eq!(said(&call(Kind::Alltoall, 9), Algorithm::Pairwise, true), "alltoallv by pairwise");
    assert_eq!(said(&call(Kind::Allreduce, 8), Algorithm::Slots, false), "allreduce of 8 bytes by slots");
    assert!(PostedSignature(Signature::of_wrong(3).words).to_string().contains("wrong arguments"));
}

#[test]
fn anything_that_a_peer_may_have_written_says_something() {
    for word in [0, u64::MAX, 0x3e, 1 << 63, 0xdead_beef_dead_beef] {
        assert!(!PostedSignature([word, word]).to_string().is_empty());
    }
}
