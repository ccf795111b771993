//! The simulator finds what it is to find.

use super::world::run;
use super::*;
use crate::layout::CELL_BYTES;
use crate::program::{Action, Exposed, Place, Remote, Span, Tables};

/// Two ranks in a broadcast of 8 bytes from rank 0.
fn pair(root: Program, other: Program, seed: u64) -> Result<(), String> {
    of(Case::new(Kind::Broadcast, 2, 8), [root, other], seed)
}

fn of(case: Case, programs: [Program; 2], seed: u64) -> Result<(), String> {
    let scene = case.scene(&mut Random(seed));
    let ran = run(&scene, programs.to_vec(), true, seed)?;
    for (memory, expected) in ran.memory.iter().zip(serial::expected(&scene)) {
        if memory.output != expected {
            return Err("wrong bytes".to_owned());
        }
    }
    Ok(())
}

fn steps(steps: Vec<Vec<Action>>) -> Program {
    let exposed = Exposed { output: true, ..Exposed::default() };
    Program { steps, exposed, ..Program::default() }
}

fn get(bytes: u64) -> Action {
    Action::Get { rank: 0, from: Remote::At(Place::Output, 0), into: Span::output(0, bytes) }
}

fn awaits(rank: u32) -> Action {
    Action::Await { rank, point: 1 }
}

/// The same failure in every order.
fn fails(root: Vec<Vec<Action>>, other: Vec<Vec<Action>>, part: &str) {
    for seed in 0..16 {
        let failure = pair(steps(root.clone()), steps(other.clone()), seed).unwrap_err();
        assert!(failure.contains(part), "{failure}");
    }
}

#[test]
fn a_right_broadcast_passes_in_every_order() {
    for seed in 0..64 {
        let root = steps(vec![vec![awaits(1)]]);
        let other = steps(vec![vec![get(8)], vec![Action::Publish(1)]]);
        assert_eq!(pair(root, other, seed), Ok(()));
    }
}

#[test]
fn a_rank_that_ends_too_early_is_found_in_every_order() {
    let other = vec![vec![get(8)], vec![Action::Publish(1)]];
    for seed in 0..16 {
        let failure = pair(steps(vec![]), steps(other.clone()), seed).unwrap_err();
        assert!(failure.contains("ended") || failure.contains("cannot know"), "{failure}");
    }
    fails(vec![vec![awaits(1)]], vec![vec![get(8), Action::Publish(1)]], "cannot know");
}

#[test]
fn waiting_for_what_never_comes_is_a_deadlock() {
    fails(vec![vec![awaits(1)]], vec![vec![awaits(0)]], "deadlock");
    fails(vec![], vec![vec![Action::Receive { rank: 0, into: Span::output(0, 8) }]], "deadlock");
}

#[test]
fn messages_must_be_received_and_as_long() {
    let send = |bytes| vec![vec![Action::Send { rank: 1, from: Span::output(0, bytes) }]];
    let receive = vec![vec![Action::Receive { rank: 0, into: Span::output(0, 8) }]];
    for seed in 0..16 {
        assert_eq!(pair(steps(send(8)), steps(receive.clone()), seed), Ok(()));
        let failure = pair(steps(send(8)), steps(vec![]), seed).unwrap_err();
        assert!(failure.contains("does not receive") || failure.contains("deadlock"), "{failure}");
    }
    fails(send(7), receive, "sends 7 bytes where rank 1 receives 8");
}

#[test]
fn spans_stay_within_their_places() {
    fails(vec![vec![awaits(1)]], vec![vec![get(9)]], "outside");
    let post = Action::Post { from: Span::output(0, 8), at: 4089 };
    let root = Program { before: vec![post], ..Program::default() };
    assert!(pair(root, Program::default(), 1).unwrap_err().contains("slot"));
    let copy = |from, into| vec![vec![Action::Copy { from, into }]];
    fails(copy(Span::output(0, 5), Span::output(4, 4)), vec![], "5 bytes go into 4");
    fails(copy(Span::output(0, 5), Span::output(3, 5)), vec![], "cannot know");
}

#[test]
fn what_is_not_exposed_or_listed_is_not_reached() {
    let hidden = Program { steps: vec![vec![awaits(1)]], ..Program::default() };
    assert!(pair(hidden, steps(vec![vec![get(8)]]), 1).unwrap_err().contains("expose"));
    let listed = |bytes| Action::Get {
        rank: 0,
        from: Remote::Listed { place: Place::Input, of: 1 },
        into: Span::output(0, bytes),
    };
    let case = || Case { lengths: Lengths::Listed(vec![3, 5]), ..Case::new(Kind::Scatter, 2, 0) };
    let root = |input| Program {
        exposed: Exposed { input: true, ..Exposed::default() },
        tables: Tables { input, output: false },
        ..steps(vec![vec![awaits(1)]])
    };
    let run = |root, bytes| of(case(), [root, steps(vec![vec![listed(bytes)], vec![Action::Publish(1)]])], 1);
    assert_eq!(run(root(true), 5), Err("wrong bytes".to_owned()), "rank 0 has not copied its own");
    assert!(run(root(true), 4).unwrap_err().contains("has 5 bytes and not 4"));
    assert!(run(root(false), 5).unwrap_err().contains("no table"));
}

#[test]
fn inputs_are_not_written_and_the_meeting_is_kept() {
    let case = || Case::new(Kind::Allreduce, 2, 8);
    let write = Action::Copy { from: Span::output(0, 8), into: Span::input(0, 8) };
    let written = of(case(), [steps(vec![vec![write]]), Program::default()], 1);
    assert!(written.unwrap_err().contains("input is written"));
    let early = Program { before: vec![get(8)], ..Program::default() };
    assert!(pair(steps(vec![]), early, 1).unwrap_err().contains("before the meeting"));
    // What is posted after the meeting is there once a point says so.
    let post = Action::Post { from: Span::output(0, 8), at: 0 };
    let take = Action::Take { rank: 1, at: 0, into: Span::output(0, 8) };
    fails(vec![vec![take]], vec![vec![post]], "cannot know");
}

#[test]
fn what_is_read_while_it_may_be_written_is_found() {
    let put = |at| Action::Put { rank: 1, from: Span::output(0, 8), into: Remote::At(Place::Output, at) };
    let send = vec![Action::Send { rank: 0, from: Span::output(0, 8) }];
    let receive = Action::Receive { rank: 1, into: Span::output(0, 8) };
    fails(vec![vec![put(0)], vec![receive]], vec![send], "cannot know");
    fails(vec![vec![get(4)]], vec![], "its own peer");
    fails(vec![vec![Action::Publish(2)], vec![Action::Publish(1)]], vec![], "points grow");
}

#[test]
fn nothing_done_is_wrong_bytes() {
    assert_eq!(pair(Program::default(), Program::default(), 1), Err("wrong bytes".to_owned()));
}

#[test]
fn the_order_of_operands_matters() {
    let mut random = Random(1);
    let [a, b, c] = [(); 3].map(|()| random.bytes(64));
    let combine = serial::combine;
    assert_eq!(combine(&combine(&a, &b), &c), combine(&a, &combine(&b, &c)));
    assert_ne!(combine(&a, &b), combine(&b, &a));
}

#[test]
fn cells_are_written_by_who_knows_that_they_were_read() {
    let hand = |cell, bytes| Action::Hand { from: Span::output(0, bytes), cell };
    let accept = |cell| Action::Accept { cell, into: Span::output(0, 8) };
    fails(vec![vec![accept(1)]], vec![vec![hand(1, 8)]], "cell 1, and cannot know");
    fails(vec![vec![hand(0, 8)]], vec![vec![hand(2, 8)]], "and cannot know");
    fails(vec![vec![hand(0, CELL_BYTES + 1)]], vec![], "do not fit into a cell");
    let early = Program { before: vec![accept(0)], ..Program::default() };
    assert!(pair(steps(vec![]), early, 1).unwrap_err().contains("before the meeting"));
    let three = Case::new(Kind::Allgather, 3, 8);
    let programs = vec![steps(vec![vec![hand(0, 8)]]), Program::default(), Program::default()];
    let scene = three.scene(&mut Random(1));
    let failure = run(&scene, programs, true, 1).map(drop).unwrap_err();
    assert!(failure.contains("only two ranks have cells"), "{failure}");
}
