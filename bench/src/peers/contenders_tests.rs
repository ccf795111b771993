use std::collections::HashSet;
use std::path::PathBuf;

use super::super::installation::{Installation, Kind};
use super::super::result::Role;
use super::*;

/// Whose launcher is not there.
fn peer(name: &str) -> Peer {
    let path = PathBuf::from("/nowhere/mpiexec");
    let mpi = Installation {
        name: name.into(),
        kind: Kind::Mpich,
        version: "1.0".into(),
        mpicc: path.clone(),
        mpiexec: path.clone(),
    };
    Peer { name: name.into(), role: Role::Peer, mpi, program: path, variables: Vec::new() }
}

fn contenders<'a>(peers: &[Peer], interrupt: &'a Interrupt) -> Contenders<'a> {
    Contenders::new(peers, true, Setup { ranks: 2, cpus: &[], cores: 1, buffer_bytes: 64 }, interrupt)
}

#[test]
fn each_is_the_first_once() {
    for (peers, has_ours) in [(0, true), (1, true), (3, true), (1, false), (3, false)] {
        let number = peers + usize::from(has_ours);
        let begins = |pass| {
            let first = first_before_ours(peers, number, pass);
            assert!(first <= peers);
            // Who is before ours, ours, and who is behind them.
            let order = (first..peers).map(Some).chain(has_ours.then_some(None)).chain((0..first).map(Some));
            let order: Vec<Option<usize>> = order.collect();
            assert_eq!(order.len(), number);
            order[0]
        };
        let passes = number as u32;
        assert_eq!((0..passes).map(begins).collect::<HashSet<_>>().len(), number);
        assert_eq!(begins(passes), begins(0), "and again");
    }
}

#[test]
fn there_are_passes_for_each_to_be_first_but_no_more_than_rounds() {
    let passes = |peers, rounds| contenders(&vec![peer("mpi"); peers], &Interrupt::never()).passes(rounds);
    assert_eq!([passes(0, 9), passes(2, 9), passes(3, 9), passes(3, 2), passes(3, 1)], [3, 3, 4, 2, 1]);
    assert_eq!([passes(1, 9), passes(4, 9)], [4, 5], "as often as the others");
}

#[test]
fn peers_that_cannot_be_started_are_named_once_and_are_an_error_where_all_are_so() {
    let interrupt = Interrupt::never();
    let mut contenders = contenders(&[peer("one"), peer("two")], &interrupt);
    let mut notes = Vec::new();
    let mut note = |sentence: &str| notes.push(sentence.to_owned());
    let error = contenders.restart(0, &mut note, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("none of the MPIs"), "{error}");
    contenders.restart(1, &mut note, |_| Ok(())).unwrap();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(
        notes[0].starts_with("one is left out: ") && notes[1].starts_with("two is left out: "),
        "{notes:?}"
    );
    assert!(contenders.names().is_empty() && !contenders.is_there(0));
}

#[test]
fn without_peers_only_we_are_started() {
    let interrupt = Interrupt::never();
    let mut contenders = contenders(&[], &interrupt);
    for pass in 0..3 {
        assert_eq!(contenders.restart(pass, &mut |_| panic!("nobody is left out"), |_| Ok(7)).unwrap(), 7);
    }
    let failing = |_: &mut dyn FnMut(&str)| Err::<(), _>(BenchError::Failure("a reason".into()));
    assert!(contenders.restart(0, &mut |_| {}, failing).unwrap_err().to_string().contains("a reason"));
}

#[test]
fn that_ranks_end_by_a_signal_is_told_as_the_signal() {
    let interrupt = Interrupt::came(nix::sys::signal::Signal::SIGINT);
    let mut contenders = contenders(&[peer("one")], &interrupt);
    let failing = |_: &mut dyn FnMut(&str)| Err::<(), _>(BenchError::Failure("a rank has ended".into()));
    for (pass, ended) in [(0, true), (1, true), (2, false)] {
        let restarted = if ended {
            contenders.restart(pass, &mut |_| {}, failing)
        } else {
            contenders.restart(pass, &mut |_| {}, |_| Ok(()))
        };
        assert!(matches!(restarted, Err(BenchError::Interrupted { signal: 2, .. })), "pass {pass}");
    }
}
