use super::*;

/// The number of the pipe that the peer is told of now, if it is.
fn told(outgoing: &mut Outgoing) -> Option<u64> {
    let note = outgoing.take_note()?;
    assert_eq!(note.descriptors.len(), 1);
    Some(u64::from_ne_bytes(note.bytes.try_into().unwrap()))
}

#[test]
fn one_pipe_serves_messages_that_are_read_to_the_end() {
    let mut outgoing = Outgoing::default();
    for round in 0..3 {
        outgoing.ensure_pipe(4096).unwrap();
        assert_eq!(told(&mut outgoing), (round == 0).then_some(1));
        let message = outgoing.next_name().message;
        assert!(!outgoing.is_turn_of(message), "its receiver has not started");
        outgoing.enqueue(message);
        assert!(outgoing.is_turn_of(message));
        outgoing.leave(message, true);
    }
}

#[test]
fn only_the_owner_takes_the_pipe_with_it_and_nobody_stalls_the_rest() {
    let mut outgoing = Outgoing::default();
    outgoing.ensure_pipe(4096).unwrap();
    assert_eq!(told(&mut outgoing), Some(1));
    let [first, second, third] = [(); 3].map(|()| outgoing.next_name().message);
    // Started in another order than prepared; the first one never.
    outgoing.enqueue(third);
    outgoing.enqueue(second);
    outgoing.leave(first, false);
    outgoing.leave(second, false);
    assert!(outgoing.pipe().is_some() && outgoing.is_turn_of(third));
    outgoing.enqueue(first);
    outgoing.leave(third, false);
    assert!(outgoing.pipe().is_none() && outgoing.is_turn_of(first));
    outgoing.ensure_pipe(4096).unwrap();
    assert_eq!(told(&mut outgoing), Some(2));
}

#[test]
fn a_pipe_with_something_in_it_is_replaced_whatever_is_said_of_the_message() {
    let mut outgoing = Outgoing::default();
    outgoing.ensure_pipe(4096).unwrap();
    let message = outgoing.next_name().message;
    outgoing.enqueue(message);
    let header = crate::wire::Header { message, bytes: 1 };
    outgoing.pipe().unwrap().announce(&header).unwrap();
    outgoing.leave(message, true);
    assert!(outgoing.pipe().is_none());
    assert!(outgoing.take_note().is_none(), "nobody is told of a pipe that is gone");
}
