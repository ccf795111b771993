use super::*;
use crate::reduction::{Element, Operator, Reduction};

/// Of three ranks, this one.
fn team(rank: u32) -> Team {
    Team { rank, size: 3, domains: vec![Domain::ALL; 3].into(), slot_bytes: 4096 }
}

fn ok(rank: u32, operation: Operation<'_>) -> Call {
    call_of(&operation, &team(rank)).expect("its arguments are right")
}

fn wrong(rank: u32, operation: Operation<'_>) -> String {
    call_of(&operation, &team(rank)).expect_err("its arguments are wrong")
}

/// Memory of this many bytes, as long as the test's process.
fn read(bytes: usize) -> &'static [u8] {
    vec![0; bytes].leak()
}

fn write(bytes: usize) -> &'static mut [u8] {
    vec![0; bytes].leak()
}

fn block(offset: u64, bytes: u64) -> Block {
    Block { offset, bytes }
}

/// Blocks of 1, 2 and 3 bytes, the last first, within 8.
fn blocks() -> [Block; 3] {
    [block(5, 1), block(3, 2), block(0, 3)]
}

fn listed() -> Blocks {
    Blocks::Listed(blocks().to_vec())
}

/// The lengths of a call.
fn lengths_of(call: &Call) -> (u64, Blocks, Blocks) {
    (call.bytes, call.blocks.clone(), call.input_blocks.clone())
}

const NONE: Blocks = Blocks::Equal(0);

fn sum() -> Reduction {
    Reduction::new(Operator::Sum, Element::U32).expect("numbers have sums")
}

#[test]
fn a_call_is_the_team_s_and_the_operation_s() {
    let call = ok(2, Operation::broadcast(1, write(5)));
    assert_eq!((call.kind, call.rank, call.size, call.root), (Kind::Broadcast, 2, 3, 1));
    assert_eq!((call.slot_bytes, call.domains.len(), call.element_bytes, call.in_place), (4096, 3, 1, false));
    let call = ok(0, Operation::allreduce_in_place(write(8), &sum()));
    assert_eq!((call.element_bytes, call.in_place), (4, true));
}

#[test]
fn a_root_is_one_of_the_ranks() {
    let sentence = "rank 3 is to be the root of 3 ranks; ranks count from 0";
    assert_eq!(wrong(0, Operation::broadcast(3, write(5))), sentence);
    assert_eq!(wrong(0, Operation::gathered(3, read(5))), sentence);
    assert!(wrong(0, Operation::reduced(u32::MAX, read(4), &sum())).starts_with("rank 4294967295 is"));
}

#[test]
fn each_side_calls_its_form() {
    let root = |form: &str| format!("rank 1 is the root and must call `{form}` or one of its forms");
    assert_eq!(wrong(1, Operation::scattered(1, write(5))), root("scatter"));
    assert_eq!(wrong(1, Operation::scatteredv(1, write(5))), root("scatter"));
    assert_eq!(wrong(1, Operation::gathered(1, read(5))), root("gather"));
    assert_eq!(wrong(1, Operation::gatheredv(1, read(5))), root("gather"));
    assert_eq!(wrong(1, Operation::reduced(1, read(4), &sum())), root("reduce"));
    let other = |form: &str| format!("rank 2 is not the root and must call `{form}` or one of its forms");
    assert_eq!(wrong(2, Operation::scatter(1, read(6), write(2))), other("scattered"));
    assert_eq!(wrong(2, Operation::scatter_in_place(1, read(6))), other("scattered"));
    assert_eq!(wrong(2, Operation::gather(1, read(2), write(6))), other("gathered"));
    assert_eq!(wrong(2, Operation::gather_in_place(1, write(6))), other("gathered"));
    assert_eq!(wrong(2, Operation::reduce(1, read(4), write(4), &sum())), other("reduced"));
    assert_eq!(wrong(2, Operation::reduce_in_place(1, write(4), &sum())), other("reduced"));
}

#[test]
fn what_is_written_is_lent_for_writing() {
    let sentence = "what a call writes must be passed for writing";
    assert_eq!(wrong(0, Operation::broadcast(1, read(5))), sentence);
    assert_eq!(wrong(0, Operation::scattered(1, read(5))), sentence);
    assert_eq!(wrong(0, Operation::allgather(read(5), read(15))), sentence);
    assert_eq!(wrong(0, Operation::alltoall_in_place(read(3))), sentence);
    assert_eq!(wrong(0, Operation::scan_in_place(read(4), &sum())), sentence);
    ok(0, Operation::allgather(write(5), write(15)));
}

#[test]
fn a_barrier_has_nothing_and_a_broadcast_the_same_everywhere() {
    assert_eq!(lengths_of(&ok(2, Operation::barrier())), (0, NONE, NONE));
    for rank in 0..3 {
        assert_eq!(lengths_of(&ok(rank, Operation::broadcast(1, write(7)))), (7, NONE, NONE));
        assert_eq!(lengths_of(&ok(rank, Operation::broadcast(1, write(0)))), (0, NONE, NONE));
    }
}

#[test]
fn a_scatter_s_lengths() {
    let equal = (2, Blocks::Equal(2), NONE);
    assert_eq!(lengths_of(&ok(1, Operation::scatter(1, read(6), write(2)))), equal);
    assert_eq!(lengths_of(&ok(1, Operation::scatter_in_place(1, read(6)))), equal);
    assert_eq!(lengths_of(&ok(0, Operation::scattered(1, write(2)))), equal);
    let listed = (2, listed(), NONE);
    assert_eq!(lengths_of(&ok(1, Operation::scatterv(1, read(8), &blocks(), write(2)))), listed);
    assert_eq!(lengths_of(&ok(1, Operation::scatterv_in_place(1, read(8), &blocks()))), listed);
    let own = (9, Blocks::Listed(Vec::new()), NONE);
    assert_eq!(lengths_of(&ok(0, Operation::scatteredv(1, write(9)))), own);
    let sentence = "the output has 3 bytes and must have 2";
    assert_eq!(wrong(1, Operation::scatter(1, read(6), write(3))), sentence);
    assert_eq!(wrong(1, Operation::scatterv(1, read(8), &blocks(), write(3))), sentence);
}

#[test]
fn a_gather_s_lengths() {
    let equal = (2, Blocks::Equal(2), NONE);
    assert_eq!(lengths_of(&ok(1, Operation::gather(1, read(2), write(6)))), equal);
    assert_eq!(lengths_of(&ok(1, Operation::gather_in_place(1, write(6)))), equal);
    assert_eq!(lengths_of(&ok(0, Operation::gathered(1, read(2)))), equal);
    let listed = (2, listed(), NONE);
    assert_eq!(lengths_of(&ok(1, Operation::gatherv(1, read(2), write(8), &blocks()))), listed);
    assert_eq!(lengths_of(&ok(1, Operation::gatherv_in_place(1, write(8), &blocks()))), listed);
    let own = (9, Blocks::Listed(Vec::new()), NONE);
    assert_eq!(lengths_of(&ok(0, Operation::gatheredv(1, read(9)))), own);
    let sentence = "the input has 3 bytes and must have 2";
    assert_eq!(wrong(1, Operation::gather(1, read(3), write(6))), sentence);
    assert_eq!(wrong(1, Operation::gatherv(1, read(3), write(8), &blocks())), sentence);
}

#[test]
fn an_allgather_s_lengths() {
    assert_eq!(lengths_of(&ok(2, Operation::allgather(read(4), write(12)))), (4, Blocks::Equal(4), NONE));
    assert_eq!(lengths_of(&ok(2, Operation::allgather_in_place(write(12)))), (4, Blocks::Equal(4), NONE));
    let listed = (3, listed(), NONE);
    assert_eq!(lengths_of(&ok(2, Operation::allgatherv(read(3), write(8), &blocks()))), listed);
    assert_eq!(lengths_of(&ok(2, Operation::allgatherv_in_place(write(8), &blocks()))), listed);
    assert_eq!(wrong(2, Operation::allgather(read(3), write(12))), "the input has 3 bytes and must have 4");
}

#[test]
fn an_alltoall_s_lengths() {
    let equal = (0, Blocks::Equal(2), Blocks::Equal(2));
    assert_eq!(lengths_of(&ok(0, Operation::alltoall(read(6), write(6)))), equal);
    assert_eq!(lengths_of(&ok(0, Operation::alltoall_in_place(write(6)))), equal);
    let from = [block(0, 1), block(1, 7), block(0, 0)];
    let call = ok(0, Operation::alltoallv(read(8), &from, write(6), &blocks()));
    assert_eq!(lengths_of(&call), (0, listed(), Blocks::Listed(from.to_vec())));
    let call = ok(0, Operation::alltoallv_in_place(write(6), &blocks()));
    assert_eq!(lengths_of(&call), (0, listed(), listed()));
    assert_eq!(wrong(0, Operation::alltoall(read(3), write(6))), "the input has 3 bytes and must have 6");
    let sentence = "what a rank sends itself must be as long as what it receives from itself";
    assert_eq!(wrong(1, Operation::alltoallv(read(8), &from, write(6), &blocks())), sentence);
}

#[test]
fn a_vector_s_lengths() {
    assert_eq!(lengths_of(&ok(1, Operation::reduce(1, read(8), write(8), &sum()))), (8, NONE, NONE));
    assert_eq!(lengths_of(&ok(1, Operation::reduce_in_place(1, write(8), &sum()))), (8, NONE, NONE));
    assert_eq!(lengths_of(&ok(0, Operation::reduced(1, read(8), &sum()))), (8, NONE, NONE));
    let sentence = "the input has 4 bytes and must have 8";
    assert_eq!(wrong(1, Operation::reduce(1, read(4), write(8), &sum())), sentence);
    let forms = [Operation::allreduce, Operation::scan, Operation::exscan];
    for form in forms {
        assert_eq!(lengths_of(&ok(1, form(read(8), write(8), &sum()))), (8, NONE, NONE));
        assert_eq!(wrong(1, form(read(4), write(8), &sum())), sentence);
    }
    let in_place = [Operation::allreduce_in_place, Operation::scan_in_place, Operation::exscan_in_place];
    for form in in_place {
        assert_eq!(lengths_of(&ok(1, form(write(8), &sum()))), (8, NONE, NONE));
    }
}

#[test]
fn a_reduce_scatter_s_lengths() {
    let equal = (24, Blocks::Equal(8), NONE);
    assert_eq!(lengths_of(&ok(1, Operation::reduce_scatter_block(read(24), write(8), &sum()))), equal);
    let in_place = ok(1, Operation::reduce_scatter_block_in_place(write(24), &sum()));
    assert!(in_place.in_place && lengths_of(&in_place) == equal);
    let uneven = wrong(1, Operation::reduce_scatter_block_in_place(write(20), &sum()));
    assert!(uneven.starts_with("the vector has 20 bytes, which 3 ranks cannot share equally"), "{uneven}");
    let sentence = "the output has 4 bytes and must have 8";
    assert_eq!(wrong(1, Operation::reduce_scatter_block(read(24), write(4), &sum())), sentence);
    let listed = (16, Blocks::Listed(vec![block(0, 4), block(4, 8), block(12, 4)]), NONE);
    let list = [4, 8, 4];
    assert_eq!(lengths_of(&ok(1, Operation::reduce_scatter(read(16), write(8), &list, &sum()))), listed);
    assert_eq!(lengths_of(&ok(1, Operation::reduce_scatter_in_place(write(16), &list, &sum()))), listed);
    assert_eq!(wrong(1, Operation::reduce_scatter(read(16), write(4), &list, &sum())), sentence);
    let sentence = "rank 2's block of 4 bytes from 12 reaches past the vector of 12 bytes";
    assert_eq!(wrong(1, Operation::reduce_scatter_in_place(write(12), &list, &sum())), sentence);
    let huge = [u64::MAX, u64::MAX, 4];
    let sentence = wrong(1, Operation::reduce_scatter_in_place(write(12), &huge, &sum()));
    assert!(
        sentence.starts_with("rank 0's block of 18446744073709551615 bytes from 0 reaches"),
        "{sentence}"
    );
}

#[test]
fn equal_blocks_divide_what_they_are_of() {
    let sentence =
        |side: &str| format!("the {side} has 7 bytes, which 3 ranks cannot share equally; give blocks");
    assert_eq!(wrong(1, Operation::scatter_in_place(1, read(7))), sentence("input"));
    assert_eq!(wrong(1, Operation::gather_in_place(1, write(7))), sentence("output"));
    assert_eq!(wrong(1, Operation::allgather_in_place(write(7))), sentence("output"));
    assert_eq!(wrong(1, Operation::alltoall_in_place(write(7))), sentence("output"));
    assert_eq!(wrong(1, Operation::reduce_scatter_block(read(7), write(4), &sum())), sentence("vector"));
}

#[test]
fn there_is_a_block_of_each_rank() {
    let two = &blocks()[..2];
    let sentence = |side: &str| format!("the {side} has 2 blocks and must have one for each of 3 ranks");
    assert_eq!(wrong(1, Operation::scatterv_in_place(1, read(8), two)), sentence("input"));
    assert_eq!(wrong(1, Operation::gatherv_in_place(1, write(8), two)), sentence("output"));
    assert_eq!(wrong(1, Operation::allgatherv_in_place(write(8), two)), sentence("output"));
    assert_eq!(wrong(1, Operation::alltoallv(read(8), two, write(8), &blocks())), sentence("input"));
    assert_eq!(wrong(1, Operation::alltoallv(read(8), &blocks(), write(8), two)), sentence("output"));
    assert_eq!(wrong(1, Operation::reduce_scatter_in_place(write(8), &[4, 4], &sum())), sentence("vector"));
}

#[test]
fn blocks_lie_within_the_memory() {
    for (last, bytes) in [(block(8, 1), 1), (block(9, 0), 0), (block(0, 9), 9), (block(u64::MAX, 2), 2)] {
        let list = [block(0, 8), block(8, 0), last];
        let sentence = |side: &str| {
            let offset = last.offset;
            format!("rank 2's block of {bytes} bytes from {offset} reaches past the {side} of 8 bytes")
        };
        assert_eq!(wrong(1, Operation::scatterv_in_place(1, read(8), &list)), sentence("input"));
        assert_eq!(wrong(1, Operation::gatherv_in_place(1, write(8), &list)), sentence("output"));
        assert_eq!(wrong(1, Operation::allgatherv_in_place(write(8), &list)), sentence("output"));
        assert_eq!(wrong(1, Operation::alltoallv(read(8), &list, write(8), &blocks())), sentence("input"));
        assert_eq!(wrong(1, Operation::alltoallv_in_place(write(8), &list)), sentence("output"));
    }
}

#[test]
fn vectors_and_their_parts_are_whole_elements() {
    let sentence = |bytes: u64| format!("{bytes} bytes, or a part of them, are no whole elements of 4 bytes");
    assert_eq!(wrong(1, Operation::reduce_in_place(1, write(6), &sum())), sentence(6));
    assert_eq!(wrong(0, Operation::reduced(1, read(7), &sum())), sentence(7));
    assert_eq!(wrong(1, Operation::allreduce_in_place(write(9), &sum())), sentence(9));
    assert_eq!(wrong(1, Operation::scan_in_place(write(1), &sum())), sentence(1));
    assert_eq!(wrong(1, Operation::exscan_in_place(write(2), &sum())), sentence(2));
    assert_eq!(wrong(1, Operation::reduce_scatter_block(read(12 + 6), write(6), &sum())), sentence(18));
    assert_eq!(
        wrong(1, Operation::reduce_scatter_block(read(36 - 12), write(8), &pairs())),
        pairs_sentence()
    );
    assert_eq!(wrong(1, Operation::reduce_scatter_in_place(write(12), &[2, 6, 4], &sum())), sentence(12));
    ok(1, Operation::allreduce_in_place(write(0), &sum()));
}

/// Elements of 12 bytes.
fn pairs() -> Reduction {
    Reduction::custom(1, 12, true, |_, _| {})
}

fn pairs_sentence() -> String {
    "24 bytes, or a part of them, are no whole elements of 12 bytes".into()
}
