use super::*;
use crate::selection::{Hints, Warmth};
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::model::Model;

const fn choice(number: u32, model: Model) -> Choice {
    Choice { mechanism: MechanismTag(number), model }
}

const READ: Choice = choice(1, Model::Get);

const WRITE: Choice = choice(2, Model::Put);

const BOTH: Choice = choice(3, Model::Cooperative);

fn range(up_to_bytes: u64, max_readers: u32, choices: &[Choice]) -> Range {
    Range { up_to_bytes, max_readers, candidates: choices.iter().copied().collect() }
}

#[test]
fn a_length_belongs_to_the_first_range_that_holds_it() {
    let decisions = Decisions::new(10, |_| vec![range(100, 9, &[READ]), range(1000, 9, &[WRITE])]);
    for (bytes, expected) in [(0, READ), (100, READ), (101, WRITE), (1000, WRITE), (u64::MAX, WRITE)] {
        assert_eq!(decisions.candidates(&Message::of_bytes(bytes)).as_slice(), [expected], "{bytes}");
    }
}

#[test]
fn hints_and_segments_choose_the_list() {
    let decisions = Decisions::new(0, |variant| {
        let first = match (variant.is_contiguous(), variant.hints().warmth) {
            (false, _) => BOTH,
            (true, Warmth::Warm) => WRITE,
            (true, _) => READ,
        };
        vec![range(u64::MAX, 9, &[first])]
    });
    assert_eq!(decisions.lists.len(), 3, "equal lists are kept once");
    let message = Message::of_bytes(5);
    let warm = Message { hints: Hints { warmth: Warmth::Warm, ..Hints::default() }, ..message };
    let parts = Message { contiguous: false, ..warm };
    for (message, expected) in [(message, READ), (warm, WRITE), (parts, BOTH)] {
        assert_eq!(decisions.candidates(&message).as_slice(), [expected]);
    }
}

#[test]
fn beyond_the_cap_what_reads_this_process_comes_last() {
    let decisions = Decisions::new(0, |_| vec![range(u64::MAX, 2, &[READ, WRITE, BOTH])]);
    let with = |readers| *decisions.candidates(&Message { readers, ..Message::of_bytes(1) });
    assert_eq!(with(1).as_slice(), [READ, WRITE, BOTH]);
    assert_eq!(with(2).as_slice(), [WRITE, BOTH, READ]);
}

#[test]
fn variants_and_their_parts_are_the_same_both_ways() {
    for variant in Variant::all() {
        let private = Variant::of(variant.is_contiguous(), variant.hints());
        assert_eq!(private.shared(variant.shared_ends()), variant);
    }
}
