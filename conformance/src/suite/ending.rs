//! Messages that are taken back, and messages that do not fit.

use lmt_core::endpoint::{OperationError, SendMode, Source, TagMatch};
use lmt_core::mechanism::Lmt;

use super::data::{Random, Scattered};
use super::link::Link;
use super::{Under, rendezvous};

const BYTES: usize = 300_000;

/// What nothing has matched yet can be taken back, on either side, and leaves
/// no trace.
pub fn cancel<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        for _ in 0..5 {
            cancelled_send(link);
            cancelled_receive(link);
        }
    });
}

fn cancelled_send(link: &Link<'_>) {
    let seed = link.next_seed();
    if link.rank() == 0 {
        let out = Scattered::contiguous(BYTES).fill(seed);
        let result = link.endpoint.scope(|scope| {
            let send = scope.send_segments(link.other(), seed, &out.slices(), SendMode::Standard);
            send.expect("sends").cancel()
        });
        assert_eq!(result, Err(OperationError::Cancelled));
        link.meet();
    } else {
        link.meet();
        let found = link.endpoint.probe(Source::Any, TagMatch::exactly(seed)).expect("this is no child");
        assert_eq!(found, None, "a message that was taken back is still there");
    }
    link.deliver(0, || Scattered::contiguous(BYTES), || Scattered::contiguous(BYTES));
}

fn cancelled_receive(link: &Link<'_>) {
    let seed = link.next_seed();
    let source = Source::Peer(link.other());
    if link.rank() == 1 {
        let mut into = Scattered::contiguous(BYTES);
        let result = link.endpoint.scope(|scope| {
            let receive = scope.receive_segments(source, TagMatch::exactly(seed), &mut into.slices_mut());
            receive.expect("posts").cancel()
        });
        assert_eq!(result, Err(OperationError::Cancelled));
        link.meet();
        let status = link.endpoint.receive_segments(source, TagMatch::exactly(seed), &mut into.slices_mut());
        into.check(seed, status.expect("arrives").bytes as usize);
    } else {
        link.meet();
        let out = Scattered::contiguous(BYTES).fill(seed);
        link.endpoint.send_segments(link.other(), seed, &out.slices()).expect("arrives");
    }
    link.carries(1);
}

/// A send that is taken back at any moment is cancelled, and then the receiver
/// has nothing of it, or arrives whole.
pub fn cancel_too_late<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        let mut random = Random::new(3);
        let mut arrived = 0;
        for round in 0..60 {
            // Drawn in both ranks. The last rounds wait until it is too late.
            let (posted, turns) = (random.below(2) == 0, random.below(40));
            let too_late = round >= 50;
            let seed = link.next_seed();
            arrived += u64::from(if link.rank() == 0 {
                taken_back(link, seed, turns, too_late)
            } else {
                perhaps_receive(link, seed, posted || too_late)
            });
            link.meet();
        }
        assert!(arrived >= 10, "what had arrived was taken back");
        link.carries(arrived);
    });
}

/// Tags of the words on how it ended.
const ARRIVED: u64 = 1 << 40;
const CANCELLED: u64 = 2 << 40;

/// Sends and takes it back after so many turns; returns whether it went.
fn taken_back(link: &Link<'_>, seed: u64, turns: u64, too_late: bool) -> bool {
    let out = Scattered::contiguous(BYTES).fill(seed);
    let result = link.endpoint.scope(|scope| {
        let send = scope.send_segments(link.other(), seed, &out.slices(), SendMode::Standard);
        let send = send.expect("sends");
        if too_late {
            // The other's word that it has all of it.
            link.receive_empty(1, ARRIVED + seed);
        }
        for _ in 0..turns {
            link.endpoint.progress().expect("this is no child");
        }
        send.cancel()
    });
    let went = match result {
        Ok(_) => true,
        Err(OperationError::Cancelled) => false,
        Err(other) => panic!("a send that was taken back ended in: {other}"),
    };
    assert!(went || !too_late, "a message that had arrived was taken back");
    link.send_empty(1, seed + if went { ARRIVED } else { CANCELLED });
    if !too_late && went {
        link.receive_empty(1, ARRIVED + seed);
    }
    went
}

fn perhaps_receive(link: &Link<'_>, seed: u64, posted: bool) -> bool {
    let mut into = Scattered::contiguous(BYTES);
    let source = Source::Peer(link.other());
    let word = |tag| link.endpoint.probe(source, TagMatch::exactly(tag + seed)).expect("this is no child");
    let result = link.endpoint.scope(|scope| {
        if !posted {
            // Unexpected for some turns.
            for _ in 0..20 {
                link.endpoint.progress().expect("this is no child");
            }
        }
        let receive = scope.receive_segments(source, TagMatch::exactly(seed), &mut into.slices_mut());
        let mut receive = receive.expect("posts");
        loop {
            match receive.test() {
                Ok(result) => return Some(result),
                Err(again) => receive = again,
            }
            if word(CANCELLED).is_some() {
                assert_eq!(receive.cancel(), Err(OperationError::Cancelled));
                return None;
            }
        }
    });
    match result {
        Some(result) => {
            into.check(seed, result.expect("it was not taken back").bytes as usize);
            link.send_empty(0, ARRIVED + seed);
            link.receive_empty(0, ARRIVED + seed);
            true
        }
        None => {
            into.check(seed, 0);
            link.receive_empty(0, CANCELLED + seed);
            false
        }
    }
}

/// A message that is longer than the receive is cut: the receiver is told, the
/// sender is not troubled, and nothing is written behind the buffer.
pub fn truncation<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        let cuts = [(2, 1), (5000, 0), (5000, 1), (4097, 4096), (100_000, 65_537), (3 << 20, (1 << 20) + 1)];
        for (bytes, room) in cuts {
            for pieces in [&[room][..], &[room / 2, 0, room - room / 2]] {
                for expected in [true, false] {
                    truncated(link, bytes, pieces, expected);
                }
            }
        }
    });
}

fn truncated(link: &Link<'_>, bytes: usize, pieces: &[usize], expected: bool) {
    let seed = link.next_seed();
    let room: usize = pieces.iter().sum();
    if link.rank() == 0 {
        let out = Scattered::contiguous(bytes).fill(seed);
        let result = link.endpoint.scope(|scope| {
            if expected {
                link.meet();
            }
            let send = scope.send_segments(link.other(), seed, &out.slices(), SendMode::Standard);
            if !expected {
                link.meet();
            }
            send.expect("sends").wait()
        });
        assert_eq!(result.map(|status| status.bytes), Ok(bytes as u64));
    } else {
        let mut into = Scattered::new(1, pieces, || 100);
        let tags = TagMatch::exactly(seed);
        let result = link.endpoint.scope(|scope| {
            if !expected {
                link.meet();
            }
            let receive = scope.receive_segments(Source::Any, tags, &mut into.slices_mut());
            if expected {
                link.meet();
            }
            receive.expect("posts").wait()
        });
        let (message_bytes, received_bytes) = (bytes as u64, room as u64);
        let peer = link.other();
        let cut =
            OperationError::Truncated { peer, tag: seed, message_bytes, received_bytes, immediate: None };
        assert_eq!(result, Err(cut));
        into.check(seed, room);
    }
    // Where there is no room at all, nothing is to be carried; the sender has
    // prepared it.
    link.carries(u64::from(room > 0 || link.rank() == 0));
}
