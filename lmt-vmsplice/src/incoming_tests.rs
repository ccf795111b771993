use std::fs::File;

use nix::unistd::{pipe, write};

use super::*;

fn note(pipe: u64, descriptors: Vec<OwnedFd>) -> Hello {
    Hello { bytes: PipeDescriptor { pipe }.as_bytes().to_vec(), descriptors }
}

/// A side that has pipe `number`, and the end to write to it.
fn with_pipe(incoming: &mut Incoming, number: u64) -> OwnedFd {
    let (read, write) = pipe().unwrap();
    incoming.take_note(note(number, vec![read]));
    write
}

fn give(pipe: &OwnedFd, message: u64, bytes: u64) {
    write(pipe, Header { message, bytes }.as_bytes()).unwrap();
}

/// Whether it is this message's turn.
fn turn(incoming: &mut Incoming, message: u64, bytes: u64) -> Result<bool, PipeError> {
    incoming.outlet_for(Name { message, pipe: 0 }, bytes).map(|outlet| outlet.is_some())
}

#[test]
fn the_header_says_whose_turn_it_is_whatever_the_order_of_the_starts() {
    let mut incoming = Incoming::default();
    assert!(incoming.begin(5) && incoming.begin(3));
    assert_eq!(turn(&mut incoming, 5, 10), Ok(false), "the pipe is still on its way");
    let pipe = with_pipe(&mut incoming, 1);
    assert_eq!(turn(&mut incoming, 5, 10), Ok(false));
    give(&pipe, 3, 20);
    assert_eq!(turn(&mut incoming, 5, 10), Ok(false));
    assert_eq!(turn(&mut incoming, 3, 20), Ok(true));
    incoming.complete();
    incoming.leave(3);
    give(&pipe, 5, 10);
    assert_eq!(turn(&mut incoming, 5, 10), Ok(true));
}

#[test]
fn of_many_that_wait_one_looks_for_all() {
    let mut incoming = Incoming::default();
    let pipe = with_pipe(&mut incoming, 1);
    assert!((1..=64).all(|message| incoming.begin(message)));
    for round in 1..=10 {
        assert!((1..=64).all(|message| turn(&mut incoming, message, 10) == Ok(false)));
        assert_eq!(incoming.looks, round, "one look for each round");
    }
    give(&pipe, 40, 10);
    let turns = (1..=64).filter(|message| turn(&mut incoming, *message, 10) == Ok(true));
    assert_eq!(turns.collect::<Vec<_>>(), [40], "found by the first, and told to the one it is for");
    incoming.complete();
    incoming.leave(40);
    assert!((1..=39).all(|message| turn(&mut incoming, message, 10) == Ok(false)));
    // The one that looked ends, or does not come any more: another one looks.
    incoming.leave(1);
    give(&pipe, 64, 10);
    assert_eq!(turn(&mut incoming, 64, 10), Ok(true));
    incoming.complete();
    assert_eq!(turn(&mut incoming, 2, 10), Ok(false));
    give(&pipe, 50, 10);
    let turns = (0..64).map(|_| turn(&mut incoming, 50, 10).unwrap());
    assert!(turns.into_iter().any(|is_its_turn| is_its_turn), "it waits for one that does not come");
}

#[test]
fn a_message_that_ended_here_spoils_the_pipe_and_the_next_one_is_awaited() {
    for header_read in [true, false] {
        let mut incoming = Incoming::default();
        let pipe = with_pipe(&mut incoming, 1);
        assert!(incoming.begin(1) && incoming.begin(2));
        give(&pipe, 1, 10);
        if header_read {
            assert_eq!(turn(&mut incoming, 1, 10), Ok(true));
        }
        give(&pipe, 2, 10);
        incoming.leave(1);
        assert_eq!(turn(&mut incoming, 2, 10), Ok(false), "what comes after lost bytes is not believed");
        let pipe = with_pipe(&mut incoming, 2);
        give(&pipe, 2, 10);
        assert_eq!(turn(&mut incoming, 2, 10), Ok(true));
    }
}

#[test]
fn a_new_pipe_ends_what_came_by_the_old_one() {
    let mut incoming = Incoming::default();
    let first = with_pipe(&mut incoming, 1);
    assert!(incoming.begin(1));
    give(&first, 1, 10);
    assert_eq!(turn(&mut incoming, 1, 10), Ok(true));
    let _second = with_pipe(&mut incoming, 2);
    assert!(!incoming.is_current(1));
    assert_eq!(write(&first, &[0]), Err(Errno::EPIPE), "its descriptor was given back");
    let late = with_pipe(&mut incoming, 1);
    assert_eq!(write(&late, &[0]), Err(Errno::EPIPE), "an old one is not taken");
}

#[test]
fn a_descriptor_that_did_not_arrive_refuses_and_the_next_one_cures() {
    let mut incoming = Incoming::default();
    assert!(incoming.begin(1));
    for times in 1..=3 {
        incoming.take_note(note(u64::from(times), Vec::new()));
        assert_eq!(turn(&mut incoming, 1, 10), Err(PipeError::Missing { times }));
    }
    let pipe = with_pipe(&mut incoming, 4);
    give(&pipe, 1, 10);
    assert_eq!(turn(&mut incoming, 1, 10), Ok(true));
    incoming.take_note(note(5, Vec::new()));
    assert_eq!(turn(&mut incoming, 1, 10), Err(PipeError::Missing { times: 1 }));
    let behind = Name { message: 1, pipe: 6 };
    assert!(incoming.outlet_for(behind, 10).unwrap().is_none(), "its own pipe is on its way");
}

#[test]
fn what_is_no_pipe_and_no_message_is_refused() {
    let mut incoming = Incoming::default();
    assert!(incoming.begin(1) && !incoming.begin(1));
    let (_read, write_end) = pipe().unwrap();
    let no_pipes = [File::open("/dev/zero").unwrap().into(), File::open("/proc/self/stat").unwrap().into()];
    for (at, fd) in no_pipes.into_iter().chain([write_end]).enumerate() {
        incoming.take_note(note(at as u64 + 1, vec![fd]));
        assert_eq!(turn(&mut incoming, 1, 10), Err(PipeError::Garbage), "descriptor {at}");
    }
    let pipe = with_pipe(&mut incoming, 10);
    write(&pipe, &[1, 2, 3]).unwrap();
    assert_eq!(turn(&mut incoming, 1, 10), Err(PipeError::Garbage), "three bytes of a header");
    let pipe = with_pipe(&mut incoming, 11);
    give(&pipe, 1, u64::MAX);
    assert_eq!(turn(&mut incoming, 1, 10), Err(PipeError::Garbage), "a length that was not agreed on");
    for bytes in [&b""[..], &[9; 7], &[9; 9]] {
        let (read, write_end) = nix::unistd::pipe().unwrap();
        incoming.take_note(Hello { bytes: bytes.to_vec(), descriptors: vec![read] });
        assert_eq!(write(&write_end, &[0]), Err(Errno::EPIPE), "not taken");
    }
}

#[test]
fn a_pipe_without_writers_is_over() {
    let mut incoming = Incoming::default();
    assert!(incoming.begin(1));
    drop(with_pipe(&mut incoming, 1));
    assert_eq!(turn(&mut incoming, 1, 10), Ok(false));
    let pipe = with_pipe(&mut incoming, 2);
    give(&pipe, 1, 10);
    assert_eq!(turn(&mut incoming, 1, 10), Ok(true));
}
