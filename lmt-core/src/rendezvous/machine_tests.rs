//! Crossings, order and fairness, one by one; `tests/rendezvous.rs` has the
//! random worlds.

use super::*;
use crate::rendezvous::packet::{Cts, Demote, Done, Fail, GiveUp, Retry, Rts};
use crate::rendezvous::types::{Candidates, Choice, Received};
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::transfer::{Interval, Step};

const A: PeerKey = 10;

const B: PeerKey = 20;

const TAG: MechanismTag = MechanismTag(1);

fn candidates(models: &[Model]) -> Candidates {
    models.iter().map(|model| Choice { mechanism: TAG, model: *model }).collect()
}

fn demotion() -> Fault {
    Fault::Demote { errno: libc::EPERM, for_good: false, sentence: "refused".to_owned() }
}

/// Performs every action well and gives back packets and completions.
fn run(machine: &mut Machine) -> (Vec<Packet>, Vec<Action>) {
    let (mut packets, mut others) = (Vec::new(), Vec::new());
    while let Some(action) = machine.pop_action() {
        match action {
            Action::Prepare { key, .. } => machine.prepared(key, Ok(&Cookie::empty())),
            Action::Start { key, .. } => machine.started(key, Ok(())),
            other => others.push(other),
        }
    }
    packets.extend(std::iter::from_fn(|| machine.pop_packet()).map(|(_, packet)| packet));
    (packets, others)
}

/// Two endpoints; `a` knows the other as B, `b` as A.
struct Two {
    a: Machine,
    b: Machine,
    send: SendId,
    receive: ReceiveId,
}

/// A message announced by `a` and matched by `b`, with what both then sent.
fn begun(models: &[Model], total_bytes: u64, capacity_bytes: u64) -> (Two, Vec<Packet>, Vec<Action>) {
    let (mut a, mut b) = (Machine::new(), Machine::new());
    let send = a.send(B, total_bytes, &candidates(models));
    let rts = only_rts(&mut a);
    assert_eq!(b.packet(A, &Packet::Rts(rts)), Ok(Incoming::Rts(&rts)));
    let receive = b.matched(A, &rts, capacity_bytes);
    let (packets, others) = run(&mut b);
    (Two { a, b, send, receive }, packets, others)
}

fn only_rts(machine: &mut Machine) -> Rts {
    match run(machine).0[..] {
        [Packet::Rts(rts)] => rts,
        ref other => panic!("{other:?}"),
    }
}

fn hand(machine: &mut Machine, peer: PeerKey, packets: &[Packet]) {
    packets.iter().for_each(|packet| assert_eq!(machine.packet(peer, packet), Ok(Incoming::Handled)));
}

fn step(machine: &mut Machine, bytes: u64, done: bool) {
    let (key, _) = machine.next_step(u64::MAX).expect("an active transfer");
    machine.stepped(key, Ok(Step { bytes, done }));
}

#[test]
fn get_ends_with_the_receiver_s_done() {
    let (mut two, packets, _) = begun(&[Model::Get], 100, 60);
    assert_eq!((packets.len(), two.a.active(), two.b.active()), (0, 0, 1));
    step(&mut two.b, 25, false);
    step(&mut two.b, 35, true);
    let (packets, others) = run(&mut two.b);
    let received = Received { total_bytes: 100, received_bytes: 60, truncated: true };
    let key = TransferKey::Receive(two.receive);
    let complete = Action::CompleteReceive { id: two.receive, result: Ok(received) };
    assert_eq!(others, [Action::Finish { key }, complete]);
    assert_eq!(packets, [Packet::Done(Done::new(TransferKey::Send(two.send), 0, false))]);
    hand(&mut two.a, B, &packets);
    let (key, id) = (TransferKey::Send(two.send), two.send);
    assert_eq!(run(&mut two.a).1, [Action::Finish { key }, Action::CompleteSend { id, result: Ok(()) }]);
    assert_eq!((two.a.transfers(), two.b.transfers(), two.b.active()), (0, 0, 0));
}

#[test]
fn nothing_to_move_is_done_at_once() {
    for (total_bytes, capacity_bytes) in [(0, 10), (10, 0), (0, 0)] {
        let (mut two, packets, others) = begun(&[Model::Put], total_bytes, capacity_bytes);
        let received = Received { total_bytes, received_bytes: 0, truncated: total_bytes > 0 };
        assert_eq!(others, [Action::CompleteReceive { id: two.receive, result: Ok(received) }]);
        hand(&mut two.a, B, &packets);
        assert!(run(&mut two.a).1.contains(&Action::CompleteSend { id: two.send, result: Ok(()) }));
    }
}

#[test]
fn fail_that_crosses_demote_is_one_demotion() {
    let (mut two, cts, _) = begun(&[Model::Cooperative, Model::Get], 100, 100);
    hand(&mut two.a, B, &cts);
    run(&mut two.a);
    step(&mut two.a, 50, false);
    step(&mut two.b, 30, false);
    for machine in [&mut two.a, &mut two.b] {
        let (key, _) = machine.next_step(1).unwrap();
        machine.stepped(key, Err(demotion()));
    }
    let (fail, demote) = (run(&mut two.a).0, run(&mut two.b).0);
    assert!(matches!(
        demote[..],
        [Packet::Demote(Demote { remaining: Interval { start: 30, end: 100 }, .. })]
    ));
    hand(&mut two.b, A, &fail);
    assert_eq!(run(&mut two.b), (vec![], vec![]));
    hand(&mut two.a, B, &demote);
    let (retry, _) = run(&mut two.a);
    hand(&mut two.b, A, &retry);
    run(&mut two.b);
    step(&mut two.b, 70, true);
    hand(&mut two.a, B, &run(&mut two.b).0);
    assert!(run(&mut two.a).1.contains(&Action::CompleteSend { id: two.send, result: Ok(()) }));
}

#[test]
fn fail_that_crosses_done_is_success() {
    let (mut two, cts, _) = begun(&[Model::Cooperative], 100, 100);
    hand(&mut two.a, B, &cts);
    run(&mut two.a);
    let (key, _) = two.a.next_step(1).unwrap();
    two.a.stepped(key, Err(demotion()));
    step(&mut two.b, 100, true);
    let (fail, done) = (run(&mut two.a).0, run(&mut two.b).0);
    hand(&mut two.b, A, &fail);
    hand(&mut two.a, B, &done);
    let (id, result) = (two.send, Ok(()));
    assert_eq!(run(&mut two.a), (vec![], vec![Action::CompleteSend { id, result }]));
}

#[test]
fn cancel_that_crosses_cts_comes_too_late() {
    let (mut two, cts, _) = begun(&[Model::Put], 100, 100);
    two.a.cancel(two.send);
    let (cancel, _) = run(&mut two.a);
    assert_eq!(cancel, [Packet::Cancel { send_id: two.send }]);
    assert_eq!(two.b.packet(A, &cancel[0]), Ok(Incoming::Withdraw { send_id: two.send }));
    two.b.withdrawn(A, two.send, false);
    let (reply, _) = run(&mut two.b);
    hand(&mut two.a, B, &cts);
    hand(&mut two.a, B, &reply);
    run(&mut two.a);
    step(&mut two.a, 100, true);
    let (done, others) = run(&mut two.a);
    assert!(others.contains(&Action::CompleteSend { id: two.send, result: Ok(()) }));
    hand(&mut two.b, A, &done);
    assert!(matches!(run(&mut two.b).1.last(), Some(Action::CompleteReceive { result: Ok(_), .. })));
}

#[test]
fn the_last_failure_ends_both_sides() {
    let (mut two, _, _) = begun(&[Model::Get], 100, 100);
    let (key, _) = two.b.next_step(1).unwrap();
    two.b.stepped(key, Err(demotion()));
    hand(&mut two.a, B, &run(&mut two.b).0);
    let (give_up, others) = run(&mut two.a);
    let to = TransferKey::Receive(two.receive);
    assert_eq!(give_up, [Packet::GiveUp(GiveUp { to, errno: libc::EPERM })]);
    let no_mechanism = |result: &Result<(), TransferError>| {
        matches!(result, Err(TransferError::NoMechanism { errno: libc::EPERM, .. }))
    };
    assert!(matches!(others.last(), Some(Action::CompleteSend { result, .. }) if no_mechanism(result)));
    hand(&mut two.b, A, &give_up);
    let (_, others) = run(&mut two.b);
    assert!(matches!(others[..], [Action::CompleteReceive { result: Err(_), .. }]), "finished before");
}

#[test]
fn a_step_that_claims_too_much_counts_as_nothing_and_as_a_failure_for_good() {
    for claim in [Step { bytes: 101, done: true }, Step { bytes: 99, done: true }] {
        let (mut two, _, _) = begun(&[Model::Get], 100, 100);
        let (key, _) = two.b.next_step(1).unwrap();
        two.b.stepped(key, Ok(claim));
        let (packets, others) = run(&mut two.b);
        let whole = Interval { start: 0, end: 100 };
        assert!(
            matches!(packets[..], [Packet::Demote(Demote { remaining, for_good: true, .. })] if remaining == whole)
        );
        assert!(matches!(
            others[..],
            [Action::Blacklist { role: Role::Receiver, .. }, Action::Finish { .. }]
        ));
    }
}

#[test]
fn death_while_prepare_is_unanswered_waits_for_the_answer() {
    for answer in [Ok(Cookie::empty()), Err(demotion())] {
        let mut a = Machine::new();
        let id = a.send(B, 100, &candidates(&[Model::Get, Model::Put]));
        let Some(Action::Prepare { key, .. }) = a.pop_action() else { panic!() };
        a.peer_dead(B);
        assert_eq!(a.pop_action(), None);
        let held = answer.is_ok();
        a.prepared(key, answer.as_ref().map_err(Clone::clone));
        let (packets, others) = run(&mut a);
        let complete = Action::CompleteSend { id, result: Err(TransferError::PeerDead) };
        let expected = if held { vec![Action::Finish { key }, complete] } else { vec![complete] };
        assert_eq!((packets, others), (vec![], expected));
    }
}

#[test]
fn a_large_message_and_small_ones_take_turns() {
    let mut b = Machine::new();
    let offer = |number: u64, total_bytes| Rts {
        send_id: SendId(number),
        total_bytes,
        attempt: 0,
        mechanism: TAG,
        model: Model::Get,
        cookie: Cookie::empty(),
    };
    b.matched(A, &offer(1, 1 << 40), u64::MAX);
    for number in 2..5 {
        b.matched(A, &offer(number, 10), u64::MAX);
    }
    run(&mut b);
    assert_eq!(b.active(), 4);
    let mut turns = Vec::new();
    while b.active() > 1 {
        let (key, max_bytes) = b.next_step(4).unwrap();
        turns.push(key);
        let left = if turns.iter().filter(|turn| **turn == key).count() == 3 { 2 } else { 4 };
        assert_eq!(max_bytes, if key == turns[0] { 4 } else { left });
        b.stepped(key, Ok(Step { bytes: max_bytes, done: left == 2 && key != turns[0] }));
    }
    assert_eq!(turns.iter().filter(|turn| **turn == turns[0]).count(), 3, "no more turns than the others");
    assert_eq!(turns.len(), 12);
}

#[test]
fn names_of_others_are_refused_and_old_ones_ignored() {
    let (mut two, _, _) = begun(&[Model::Get], 100, 100);
    let to = TransferKey::Send(two.send);
    let done = Packet::Done(Done::new(to, 0, false));
    let id = two.send.0;
    assert_eq!(two.a.packet(B + 1, &done), Err(ProtocolError::WrongPeer { id }));
    let never = TransferKey::Send(SendId(id + 1));
    let unknown = Packet::GiveUp(GiveUp { to: never, errno: 0 });
    assert_eq!(two.a.packet(B, &unknown), Err(ProtocolError::UnknownTransfer { id: id + 1 }));
    let early = Packet::Done(Done::new(to, 1, false));
    assert_eq!(two.a.packet(B, &early), Err(ProtocolError::OutOfPlace { id, packet: "DONE" }));
    hand(&mut two.a, B, &[done]);
    run(&mut two.a);
    hand(&mut two.a, B, &[done]);
    assert_eq!(two.a.pop_action(), None);
}

#[test]
fn a_retried_message_gets_no_second_turn() {
    let (mut two, _, _) = begun(&[Model::Get, Model::Get], 1000, 1000);
    let other = two.a.send(B, 1000, &candidates(&[Model::Get]));
    let rts = only_rts(&mut two.a);
    assert_eq!(rts.send_id, other);
    two.b.matched(A, &rts, 1000);
    run(&mut two.b);
    let (key, _) = two.b.next_step(1).unwrap();
    two.b.stepped(key, Err(demotion()));
    hand(&mut two.a, B, &run(&mut two.b).0);
    hand(&mut two.b, A, &run(&mut two.a).0);
    run(&mut two.b);
    assert_eq!(two.b.active(), 2);
    let turns: Vec<_> = (0..6).filter_map(|_| two.b.next_step(1)).collect();
    assert_eq!(turns.iter().filter(|turn| turn.0 == key).count(), 3);
}

/// A receiver says how much it has room for wherever that is less than what was offered,
/// whatever number of an attempt the announcement gives.
#[test]
fn a_shorter_receive_is_told_and_a_whole_one_is_not() {
    for (attempt, capacity_bytes, told) in
        [(0, 100, None), (0, 80, Some(80)), (3, 80, Some(80)), (3, 200, None)]
    {
        let (mut a, mut b) = (Machine::new(), Machine::new());
        a.send(B, 100, &candidates(&[Model::Both]));
        b.matched(A, &Rts { attempt, ..only_rts(&mut a) }, capacity_bytes);
        let [Packet::Cts(cts)] = run(&mut b).0[..] else { panic!("one CTS") };
        assert_eq!(cts.interval, told.map(|end| Interval { start: 0, end }));
    }
}

/// Every packet that would move or end what it must not.
#[test]
fn a_dishonest_peer_changes_nothing() {
    let (mut two, cts, _) = begun(&[Model::Put, Model::Get], 100, 80);
    let (send_id, receive_id, id) = (two.send, two.receive, two.send.0);
    let Packet::Cts(cts) = cts[0] else { panic!() };
    for interval in [(0, 101), (1, 80), (0, 0), (80, 0)] {
        let interval = Interval { start: interval.0, end: interval.1 };
        let cut = Packet::Cts(Cts { interval: Some(interval), ..cts });
        let refused = two.a.packet(B, &cut);
        assert!(matches!(refused, Err(ProtocolError::BadInterval { .. })), "{interval:?}");
    }
    let cancelled = Packet::CancelReply { send_id, cancelled: true };
    let out_of_place = |id, packet| Err(ProtocolError::OutOfPlace { id, packet });
    assert_eq!(two.a.packet(B, &cancelled), out_of_place(id, "CANCEL_REPLY"), "never asked");
    two.a.cancel(send_id);
    hand(&mut two.a, B, &[Packet::Cts(cts)]);
    assert_eq!(two.a.packet(B, &cancelled), out_of_place(id, "CANCEL_REPLY"), "matched already");
    assert_eq!(two.a.packet(B, &Packet::Cts(cts)), out_of_place(id, "CTS"), "said twice");
    let done = Packet::Done(Done::new(TransferKey::Send(send_id), 0, false));
    assert_eq!(two.a.packet(B, &done), out_of_place(id, "DONE"), "this side writes");
    let demote = Demote {
        send_id,
        receive_id,
        attempt: 0,
        remaining: Interval::default(),
        errno: 0,
        for_good: false,
        shared: false,
    };
    for remaining in [(0, 81), (40, 40), (50, 40)] {
        let remaining = Interval { start: remaining.0, end: remaining.1 };
        let other = Packet::Demote(Demote { remaining, ..demote });
        let refused = two.a.packet(B, &other);
        assert!(matches!(refused, Err(ProtocolError::BadInterval { .. })), "{remaining:?}");
    }
    let another = Demote { receive_id: ReceiveId(1), remaining: Interval { start: 0, end: 80 }, ..demote };
    assert_eq!(two.a.packet(B, &Packet::Demote(another)), out_of_place(id, "DEMOTE"), "another receive");

    let fail = |front| Packet::Fail(Fail { receive_id, attempt: 0, front, errno: 0, for_good: false });
    assert!(matches!(two.b.packet(A, &fail(81)), Err(ProtocolError::BadInterval { .. })));
    hand(&mut two.b, A, &[fail(30)]);
    let retry = |attempt, start, end| {
        let (model, mechanism, cookie) = (Model::Get, TAG, Cookie::empty());
        Packet::Retry(Retry {
            receive_id,
            attempt,
            mechanism,
            model,
            interval: Interval { start, end },
            cookie,
        })
    };
    assert_eq!(two.b.packet(A, &retry(0, 30, 80)), out_of_place(receive_id.0, "RETRY"));
    assert_eq!(two.b.packet(A, &retry(2, 30, 80)), out_of_place(receive_id.0, "RETRY"));
    for (start, end) in [(0, 80), (30, 100), (31, 80)] {
        assert!(matches!(two.b.packet(A, &retry(1, start, end)), Err(ProtocolError::BadInterval { .. })));
    }
    hand(&mut two.b, A, &[retry(1, 30, 80)]);

    run(&mut two.a);
    step(&mut two.a, 80, true);
    let complete = Action::CompleteSend { id: send_id, result: Ok(()) };
    assert!(run(&mut two.a).1.contains(&complete));
}

#[test]
fn memory_is_reused() {
    let (mut a, mut b) = (Machine::new(), Machine::new());
    for round in 0..1000 {
        a.send(B, 10, &candidates(&[Model::Get]));
        let rts = only_rts(&mut a);
        b.matched(A, &rts, 10);
        run(&mut b);
        step(&mut b, 10, true);
        hand(&mut a, B, &run(&mut b).0);
        run(&mut a);
        let capacities = [a.actions.capacity(), b.actions.capacity(), b.ring.capacity()];
        assert!(capacities.iter().all(|capacity| *capacity <= 8), "round {round}: {capacities:?}");
    }
    assert_eq!((a.sends.slots(), b.receives.slots()), (1, 1));
}

fn leave(machine: &mut Machine, both_know: bool) {
    let Some(Action::Leave { key }) = machine.pop_action() else { panic!("nobody leaves") };
    machine.left(key, both_know);
}

#[test]
fn both_end_without_a_packet_where_both_know() {
    for both_know in [true, false] {
        let (mut two, cts, _) = begun(&[Model::Both], 100, 100);
        assert!(matches!(cts[..], [Packet::Cts(_)]));
        assert_eq!(two.b.active(), 1, "the receiver begins at once");
        hand(&mut two.a, B, &cts);
        run(&mut two.a);
        step(&mut two.a, 40, false);
        step(&mut two.b, 60, false);
        step(&mut two.b, 40, true);
        leave(&mut two.b, both_know);
        let (packets, others) = run(&mut two.b);
        assert!(matches!(others.last(), Some(Action::CompleteReceive { result: Ok(_), .. })));
        assert_eq!(packets.len(), usize::from(!both_know));
        if both_know {
            step(&mut two.a, 0, true);
            leave(&mut two.a, true);
        } else {
            hand(&mut two.a, B, &packets);
        }
        let (id, result) = (two.send, Ok(()));
        assert_eq!(run(&mut two.a).1.last(), Some(&Action::CompleteSend { id, result }));
        assert_eq!((two.a.transfers(), two.b.transfers()), (0, 0));
        assert_eq!((two.a.active(), two.b.active()), (0, 0));
    }
}

/// What a helping sender fails at after the receiver has ended the message is no
/// failure; before, the receiver is told.
#[test]
fn a_helper_that_fails_asks_first_whether_it_is_too_late() {
    for ended in [true, false] {
        let (mut two, cts, _) = begun(&[Model::Both], 100, 100);
        hand(&mut two.a, B, &cts);
        run(&mut two.a);
        let (key, _) = two.a.next_step(1).unwrap();
        let fault = Fault::Demote { errno: 1, for_good: true, sentence: "refused".to_owned() };
        two.a.stepped(key, Err(fault));
        let Some(Action::Blacklist { model, .. }) = two.a.pop_action() else { panic!() };
        assert_eq!(model, Model::Put, "its half of the work");
        leave(&mut two.a, ended);
        let (packets, others) = run(&mut two.a);
        if ended {
            assert_eq!(packets, []);
            assert!(matches!(others.last(), Some(Action::CompleteSend { result: Ok(()), .. })));
        } else {
            assert!(matches!(packets[..], [Packet::Fail(_)]));
        }
    }
}

#[test]
fn a_helper_comes_when_nothing_else_moves_and_now_and_then_to_look() {
    let (mut two, cts, _) = begun(&[Model::Both], 100, 100);
    hand(&mut two.a, B, &cts);
    let rts = Rts {
        send_id: SendId(1),
        total_bytes: 1 << 20,
        attempt: 0,
        mechanism: TAG,
        model: Model::Get,
        cookie: Cookie::empty(),
    };
    two.a.matched(B, &rts, u64::MAX);
    run(&mut two.a);
    assert_eq!(two.a.active(), 2);
    let is_helper = |key| matches!(key, TransferKey::Send(_));
    let mut looks = 0;
    for _ in 0..90 {
        let (key, max_bytes) = two.a.next_step(10).unwrap();
        assert_eq!(max_bytes == 0, is_helper(key), "it looks and copies nothing");
        looks += u32::from(is_helper(key));
        two.a.stepped(key, Ok(Step { bytes: if is_helper(key) { 0 } else { 1 }, done: false }));
    }
    assert_eq!(looks, 10);
    let mut helps = 0;
    for _ in 0..40 {
        let (key, max_bytes) = two.a.next_step(10).unwrap();
        helps += u32::from(is_helper(key) && max_bytes == 10);
        two.a.stepped(key, Ok(Step { bytes: 0, done: false }));
    }
    assert!((18..=20).contains(&helps), "{helps} turns of 40 in which the other stood still");
    two.a.rest();
    leave(&mut two.a, false);
    assert_eq!(two.a.active(), 1, "who rests takes no turns");
    let done = Packet::Done(Done::new(TransferKey::Send(two.send), 0, false));
    hand(&mut two.a, B, &[done]);
    assert!(matches!(run(&mut two.a).1.last(), Some(Action::CompleteSend { result: Ok(()), .. })));
}

/// A stream that its sender gave up before anybody answered, with what the
/// sender then sent.
fn failed_stream(models: &[Model]) -> (Machine, SendId, Rts) {
    let mut a = Machine::new();
    let send = a.send(B, 100, &candidates(models));
    let rts = only_rts(&mut a);
    let key = TransferKey::Send(send);
    a.stepped(key, Err(demotion()));
    assert_eq!(a.pop_action(), Some(Action::Leave { key }));
    a.left(key, false);
    assert_eq!(run(&mut a), (vec![], vec![Action::Finish { key }]), "nobody to tell it to");
    (a, send, rts)
}

#[test]
fn a_stream_that_failed_can_be_cancelled() {
    let (mut a, send_id, _) = failed_stream(&[Model::Stream]);
    a.cancel(send_id);
    assert_eq!(run(&mut a).0, [Packet::Cancel { send_id }]);
    hand(&mut a, B, &[Packet::CancelReply { send_id, cancelled: true }]);
    let result = Err(TransferError::Cancelled);
    assert_eq!(run(&mut a).1, [Action::CompleteSend { id: send_id, result }]);
    assert_eq!(a.transfers(), 0);
}

#[test]
fn who_matches_a_stream_that_failed_asks_for_the_next_way() {
    let (mut a, send, rts) = failed_stream(&[Model::Stream, Model::Get]);
    let mut b = Machine::new();
    let receive = b.matched(A, &rts, 60);
    let key = TransferKey::Receive(receive);
    assert!(matches!(b.pop_action(), Some(Action::Prepare { .. })));
    b.prepared(key, Ok(&Cookie::empty()));
    assert!(matches!(b.pop_action(), Some(Action::Start { .. })));
    b.started(key, Err(demotion()));
    let (packets, _) = run(&mut b);
    assert!(matches!(packets[..], [Packet::Demote(Demote { send_id, .. })] if send_id == send));
    hand(&mut a, B, &packets);
    let (packets, _) = run(&mut a);
    assert!(matches!(packets[..], [Packet::Retry(Retry { attempt: 1, model: Model::Get, .. })]));
    hand(&mut b, A, &packets);
    run(&mut b);
    step(&mut b, 60, true);
    let (done, _) = run(&mut b);
    hand(&mut a, B, &done);
    assert!(run(&mut a).1.contains(&Action::CompleteSend { id: send, result: Ok(()) }));
}

#[test]
fn a_stream_that_has_given_all_leaves_before_a_sleep_and_hears_of_the_end() {
    let (mut two, packets, _) = begun(&[Model::Stream], 100, 100);
    assert_eq!((packets.len(), two.a.active(), two.b.active()), (0, 1, 1), "no CTS, and both move");
    let key = TransferKey::Send(two.send);
    step(&mut two.a, 99, false);
    two.a.rest();
    assert_eq!(two.a.pop_action(), None, "it has bytes to give");
    step(&mut two.a, 1, false);
    two.a.rest();
    assert_eq!(two.a.pop_action(), Some(Action::Leave { key }));
    two.a.left(key, false);
    assert_eq!(two.a.active(), 0);
    step(&mut two.b, 100, true);
    let to = TransferKey::Receive(two.receive);
    assert_eq!(two.b.pop_action(), Some(Action::Leave { key: to }));
    two.b.left(to, false);
    let (done, _) = run(&mut two.b);
    assert_eq!(done, [Packet::Done(Done::new(key, 0, false))]);
    hand(&mut two.a, B, &done);
    assert!(run(&mut two.a).1.contains(&Action::CompleteSend { id: two.send, result: Ok(()) }));
}

#[test]
fn a_send_whose_receiver_is_gone_looks_whether_it_had_all() {
    for (both_know, expected) in [(true, Ok(())), (false, Err(TransferError::PeerDead))] {
        let (mut two, _, _) = begun(&[Model::Stream], 100, 100);
        step(&mut two.a, 100, false);
        two.a.peer_dead(B);
        let key = TransferKey::Send(two.send);
        assert_eq!(two.a.pop_action(), Some(Action::Leave { key }));
        two.a.left(key, both_know);
        let complete = Action::CompleteSend { id: two.send, result: expected };
        assert_eq!(run(&mut two.a), (vec![], vec![Action::Finish { key }, complete]));
        assert_eq!((two.a.transfers(), two.a.active()), (0, 0));
    }
}
