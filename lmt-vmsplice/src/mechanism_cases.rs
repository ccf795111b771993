//! The cases, run with both ways.

use super::*;

pub fn messages_arrive_in_whatever_order_they_are_matched(mut pair: Pair<impl PipeWrite>) {
    let [mut first, mut second, mut third, fourth] = [1, 2, 3, 4].map(|value| pair.prepare(value));
    assert_eq!(pair.hand_over(), 1, "one pipe for all");
    for message in [&mut third, &mut first] {
        pair.start_receiver(message);
        pair.start_sender(message);
    }
    assert_eq!(pair.send(&mut first), idle(), "the third was matched first");
    // Taken back before it was matched.
    pair.finish_sender(fourth);
    pair.drive(third);
    pair.start_receiver(&mut second);
    pair.start_sender(&mut second);
    pair.drive(first);
    pair.drive(second);
    assert_eq!(pair.hand_over(), 0, "the same pipe served them");
}

pub fn sides_that_start_in_different_orders_go_on(mut pair: Pair<impl PipeWrite>) {
    let (mut first, mut second) = (pair.prepare(1), pair.prepare(2));
    pair.hand_over();
    pair.start_sender(&mut first);
    pair.start_sender(&mut second);
    pair.start_receiver(&mut second);
    pair.start_receiver(&mut first);
    assert!(pair.send(&mut first).unwrap().bytes > 0);
    assert_eq!(pair.send(&mut second), idle());
    assert_eq!(pair.receive(&mut second), idle(), "its bytes come later");
    pair.drive_begun(first);
    pair.drive(second);
}

pub fn a_cookie_may_come_before_the_pipe(mut pair: Pair<impl PipeWrite>) {
    let mut message = pair.begin(1);
    assert!(pair.send(&mut message).unwrap().bytes > 0);
    assert_eq!(pair.receive(&mut message), idle());
    assert_eq!(pair.hand_over(), 1);
    assert!(pair.receive(&mut message).unwrap().bytes > 0);
    pair.drive_begun(message);
}

pub fn a_lost_descriptor_demotes_and_the_next_message_gets_another_pipe(mut pair: Pair<impl PipeWrite>) {
    let mut message = pair.begin(1);
    assert_eq!(pair.lose_descriptors(), 1);
    assert_eq!(demotion(pair.receive(&mut message)), (Errno::EMFILE, false));
    // The sender has not begun when it hears of that.
    pair.finish(message);
    let mut message = pair.begin(2);
    assert_eq!(pair.receive(&mut message), idle(), "its own pipe is still on its way");
    assert_eq!(pair.hand_over(), 1);
    pair.drive(message);
}

pub fn descriptors_that_are_always_lost_demote_for_good(mut pair: Pair<impl PipeWrite>) {
    for times in 1..=MISSING_FOR_GOOD {
        let mut message = pair.begin(1);
        pair.send(&mut message).unwrap();
        assert_eq!(pair.lose_descriptors(), 1);
        assert_eq!(demotion(pair.receive(&mut message)), (Errno::EMFILE, times == MISSING_FOR_GOOD));
        pair.finish(message);
    }
}

pub fn a_receiver_that_gives_up_in_the_middle_leaves_nothing_behind(mut pair: Pair<impl PipeWrite>) {
    let mut message = pair.begin(1);
    assert!(pair.send(&mut message).unwrap().bytes > 0);
    pair.hand_over();
    assert!(pair.receive(&mut message).unwrap().bytes > 0);
    assert!(pair.send(&mut message).unwrap().bytes > 0, "there are pages in the pipe");
    let outlet = pair.to.outgoing.pipe().unwrap().outlet().unwrap();
    pair.finish(message);
    assert_eq!(sys::read(outlet.as_fd(), &mut [0; 64]), Ok(0), "the pages were taken back");
    let next = pair.begin(2);
    assert_eq!(pair.hand_over(), 1, "a fresh pipe");
    pair.drive(next);
}

pub fn a_receiver_that_gives_up_before_it_began_leaves_nothing_behind(mut pair: Pair<impl PipeWrite>) {
    for sender_first in [true, false] {
        let mut message = pair.begin(1);
        pair.send(&mut message).unwrap();
        pair.hand_over();
        pair.receiver.finish(&mut pair.from, message.into);
        let mut next = pair.prepare(2);
        pair.start_receiver(&mut next);
        if sender_first {
            pair.sender.finish(&mut pair.to, message.out);
            assert_eq!(pair.receive(&mut next), idle());
        } else {
            assert_eq!(pair.receive(&mut next), idle(), "bytes of the other are not taken for its own");
            pair.sender.finish(&mut pair.to, message.out);
        }
        pair.start_sender(&mut next);
        pair.drive(next);
    }
}

pub fn a_sender_that_gives_up_ends_the_receiver_where_it_was(mut pair: Pair<impl PipeWrite>) {
    let mut message = pair.begin(1);
    let given = pair.send(&mut message).unwrap().bytes;
    pair.hand_over();
    let mut data = lend(&mut message.found, Access::Write);
    let step = pair.receiver.step(&mut pair.from, &mut message.into, &mut data, 1000).unwrap();
    assert_eq!(step, Step { bytes: 1000, done: false });
    assert!(given > 1000);
    let Message { out, into, mut bytes, mut found, .. } = message;
    pair.sender.finish(&mut pair.to, out);
    bytes.fill(9);
    let mut into = into;
    let mut data = lend(&mut found, Access::Write);
    assert_eq!(pair.receiver.step(&mut pair.from, &mut into, &mut data, u64::MAX), idle());
    std::thread::sleep(CUT_PATIENCE);
    let end = pair.receiver.step(&mut pair.from, &mut into, &mut data, u64::MAX);
    assert_eq!(demotion(end), (Errno::EPIPE, false));
    drop(data);
    assert!(found[..1000].iter().all(|&byte| byte == 1) && found[1000..].iter().all(|&byte| byte == 0));
    pair.receiver.finish(&mut pair.from, into);
    let next = pair.begin(2);
    pair.drive(next);
}

pub fn a_message_behind_one_that_was_given_up_goes_on(mut pair: Pair<impl PipeWrite>) {
    let (mut first, mut second) = (pair.begin(1), pair.begin(2));
    pair.send(&mut first).unwrap();
    pair.hand_over();
    assert!(pair.receive(&mut first).unwrap().bytes > 0);
    pair.send(&mut first).unwrap();
    assert_eq!(pair.send(&mut second), idle());
    pair.sender.finish(&mut pair.to, first.out);
    assert!(pair.send(&mut second).unwrap().bytes > 0);
    // The new pipe is there before the word that the first has failed.
    assert_eq!(pair.hand_over(), 1);
    let mut data = lend(&mut first.found, Access::Write);
    assert_eq!(pair.receiver.step(&mut pair.from, &mut first.into, &mut data, u64::MAX), idle());
    std::thread::sleep(CUT_PATIENCE);
    let end = pair.receiver.step(&mut pair.from, &mut first.into, &mut data, u64::MAX);
    assert_eq!(demotion(end), (Errno::EPIPE, false));
    pair.receiver.finish(&mut pair.from, first.into);
    pair.drive_begun(second);
}

pub fn a_truncated_message_leaves_an_empty_pipe(mut pair: Pair<impl PipeWrite>) {
    for bytes in [1, 4096, 70_001, 0] {
        let mut message = pair.prepare(1);
        let agreed = whole(bytes);
        pair.receiver.start(&mut pair.from, &mut message.into, &message.cookie, agreed).unwrap();
        pair.sender.start(&mut pair.to, &mut message.out, &Cookie::empty(), agreed).unwrap();
        pair.hand_over();
        let mut received = 0;
        loop {
            pair.send(&mut message).unwrap();
            let step = pair.receive(&mut message).unwrap();
            received += step.bytes;
            if step.done {
                break;
            }
        }
        assert_eq!(received, bytes as u64);
        assert!(message.found[..bytes].iter().all(|&byte| byte == 1));
        assert!(message.found[bytes..].iter().all(|&byte| byte == 0));
        pair.finish(message);
    }
    let message = pair.begin(2);
    assert_eq!(pair.hand_over(), 0, "the same pipe");
    pair.drive(message);
}

pub fn cookies_that_cannot_be_demote(mut pair: Pair<impl PipeWrite>) {
    let mut message = pair.prepare(1);
    for bytes in [&[][..], &[1; 7], &[1; 9], &[1; Cookie::MAX_BYTES]] {
        let cookie = Cookie::new(bytes).unwrap();
        let started = pair.receiver.start(&mut pair.from, &mut message.into, &cookie, whole(BYTES));
        assert!(matches!(started, Err(Fault::Demote { .. })), "{started:?}");
    }
    pair.start_receiver(&mut message);
    let mut twice = pair.prepare(1);
    let started = pair.receiver.start(&mut pair.from, &mut twice.into, &message.cookie, whole(BYTES));
    assert!(matches!(started, Err(Fault::Demote { .. })), "{started:?}");
    pair.receiver.finish(&mut pair.from, twice.into);
    pair.start_sender(&mut message);
    pair.drive(message);
    for bytes in [&b""[..], &[0; 4], &[1; 5]] {
        let hello = Hello { bytes: bytes.to_vec(), descriptors: Vec::new() };
        pair.receiver.probe(&facts(), hello).unwrap_err();
    }
}

pub fn memory_that_cannot_be_reached_demotes_where_it_begins(mut pair: Pair<impl PipeWrite>) {
    // The second half of either buffer lies where nothing is mapped.
    let half = BYTES / 2;
    let bad = Segment { address: 4096, bytes: half };
    for sender_is_bad in [true, false] {
        let mut message = pair.begin(1);
        let Message { bytes, found, .. } = &mut message;
        let (good_out, good_in) = (Segment::of_mut(bytes), Segment::of_mut(found));
        let halves = |good: Segment, is_bad: bool| match is_bad {
            true => vec![Segment { bytes: half, ..good }, bad],
            false => vec![good],
        };
        // SAFETY: only the kernel looks at the bad half, and refuses it.
        let mut source = unsafe { Buffer::new(&halves(good_out, sender_is_bad), Access::Read) }.unwrap();
        // SAFETY: the same.
        let mut target = unsafe { Buffer::new(&halves(good_in, !sender_is_bad), Access::Write) }.unwrap();
        let (mut sent, mut received, mut sent_all) = (0, 0, false);
        let fault = loop {
            if !sent_all {
                match pair.sender.step(&mut pair.to, &mut message.out, &mut source, 3000) {
                    Ok(step) => (sent, sent_all) = (sent + step.bytes, step.done),
                    Err(fault) => break fault,
                }
            }
            pair.hand_over();
            match pair.receiver.step(&mut pair.from, &mut message.into, &mut target, 3000) {
                Ok(step) => received += step.bytes,
                Err(fault) => break fault,
            }
        };
        assert!(matches!(fault, Fault::Demote { errno: libc::EFAULT, for_good: false, .. }), "{fault:?}");
        // The kernel may stop up to a page early, never late.
        let front = if sender_is_bad { sent } else { received };
        assert!((half as u64 - 4096..=half as u64).contains(&front), "{front} of {half}");
        drop((source, target));
        assert!(message.found[..received as usize].iter().all(|&byte| byte == 1));
        pair.finish(message);
    }
    let next = pair.begin(2);
    pair.drive(next);
}

pub fn a_forgotten_peer_gives_its_descriptors_back(mut pair: Pair<impl PipeWrite>) {
    let mut message = pair.begin(1);
    pair.send(&mut message).unwrap();
    pair.hand_over();
    let outlet = pair.to.outgoing.pipe().unwrap().outlet().unwrap();
    pair.sender.finish(&mut pair.to, message.out);
    drop(pair.to);
    assert_eq!(sys::read(outlet.as_fd(), &mut [0; 64]), Ok(0), "no write end is left, and no byte");
    let (read, write) = nix::unistd::pipe().unwrap();
    let note = crate::wire::PipeDescriptor { pipe: 9 };
    pair.from.incoming.take_note(Hello { bytes: note.as_bytes().to_vec(), descriptors: vec![read] });
    nix::unistd::write(&write, &[0]).unwrap();
    drop(pair.from);
    assert_eq!(nix::unistd::write(&write, &[0]), Err(Errno::EPIPE), "no read end is left");
}

pub fn a_buffer_that_is_too_short_demotes(mut pair: Pair<impl PipeWrite>) {
    let mut message = pair.begin(1);
    let mut short = [7; 10];
    let mut data = lend(&mut short, Access::Write);
    assert_eq!(pair.sender.step(&mut pair.to, &mut message.out, &mut data, 100).unwrap().bytes, 10);
    let end = pair.sender.step(&mut pair.to, &mut message.out, &mut data, 100);
    assert_eq!(demotion(end), (Errno::EINVAL, false));
    pair.hand_over();
    let mut small = [0; 4];
    let mut data = lend(&mut small, Access::Write);
    assert_eq!(pair.receiver.step(&mut pair.from, &mut message.into, &mut data, 100).unwrap().bytes, 4);
    let end = pair.receiver.step(&mut pair.from, &mut message.into, &mut data, 100);
    assert_eq!(demotion(end), (Errno::EINVAL, false));
    drop(data);
    assert_eq!(small, [7; 4]);
}
