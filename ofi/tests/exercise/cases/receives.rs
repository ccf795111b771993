//! fi_msg(3), fi_tagged(3): which receive gets which message.

use lmt_fi::abi::endpoint::{OPT_LEVEL_ENDPOINT, OPT_MIN_MULTI_RECV};
use lmt_fi::abi::{ADDR_UNSPEC, Errno, flags};

use super::{any, finish, pattern, tagged, with};
use crate::link::Link;
use crate::side::{Ask, Form, Kind, Sent, Side, Wanted, call};

/// Bits of the tag that a receive ignores do not matter, and all others do.
pub fn masks(mut side: Side) -> Link {
    side.open(Ask::default());
    if side.is_first() {
        for tag in [0x1_0005, 0x2_0006, 0x3_0005] {
            side.begin(|| side.send(tagged(&tag_bytes(tag), tag, 1)));
            side.wait();
        }
    } else {
        let mut into = [[0; 8]; 3];
        let ignores =
            [(0x0006, 0xffff_0000, 0x2_0006), (0x0005, 0xffff_0000, 0x1_0005), (0, u64::MAX, 0x3_0005)];
        for (into, (tag, ignore, found)) in into.iter_mut().zip(ignores) {
            side.begin(|| side.receive(into, Wanted { ignore, ..any(tag, 2) }));
            let told = side.wait();
            assert_eq!((told.tag, *into), (found, tag_bytes(found)));
        }
    }
    finish(side)
}

fn tag_bytes(tag: u64) -> [u8; 8] {
    tag.to_ne_bytes()
}

/// Each of the 64 bits of a tag counts.
pub fn all_bits(mut side: Side) -> Link {
    side.open(Ask::default());
    let mut into = vec![[0; 8]; 64];
    if side.is_first() {
        for bit in (0..64).rev() {
            side.begin(|| side.send(tagged(&tag_bytes(1 << bit), 1 << bit, 1)));
            side.wait();
        }
    } else {
        for (bit, into) in into.iter_mut().enumerate() {
            side.begin(|| side.receive(into, any(1 << bit, 2)));
            assert_eq!((side.wait().tag, *into), (1 << bit, tag_bytes(1 << bit)));
        }
    }
    finish(side)
}

/// A receive that names a source takes messages of that one only.
pub fn directed(mut side: Side) -> Link {
    side.open(Ask::default());
    let (mut from_own, mut from_peer) = ([0; 6], [0; 6]);
    side.begin(|| side.receive(&mut from_own, Wanted { from: side.own, ..any(1, 1) }));
    side.begin(|| side.receive(&mut from_peer, Wanted { from: side.peer, ..any(1, 2) }));
    side.meet();
    side.begin(|| side.send(tagged(b"theirs", 1, 3)));
    let mut told = [side.wait().number, side.wait().number];
    told.sort_unstable();
    assert_eq!(told, [2, 3]);
    let itself = side.own;
    side.begin(|| call!(side.ep, tagged ! inject(b"itself".as_ptr().cast(), 6, itself, 1)));
    let told = side.wait();
    assert_eq!((told.number, told.source), (1, side.own));
    assert_eq!((&from_own, &from_peer), (b"itself", b"theirs"));
    finish(side)
}

/// Plain and tagged messages do not match each other.
pub fn spaces(mut side: Side) -> Link {
    side.open(Ask::default());
    let (mut plain, mut with_tag) = ([0; 5], [0; 6]);
    if side.is_first() {
        side.begin(|| side.send(tagged(b"tagged", 0, 1)));
        side.begin(|| side.send(Sent { kind: Kind::Plain, ..tagged(b"plain", 0, 2) }));
        side.wait();
        side.wait();
    } else {
        side.begin(|| side.receive(&mut plain, Wanted { kind: Kind::Plain, ..any(0, 1) }));
        assert_eq!((side.wait().number, &plain), (1, b"plain"));
        side.begin(|| side.receive(&mut with_tag, any(0, 2)));
        assert_eq!((side.wait().number, &with_tag), (2, b"tagged"));
    }
    finish(side)
}

/// Multi-receive buffers are given back when less than this is left.
fn give_back_below(side: &Side, least: usize) {
    let value = (&raw const least).cast();
    let set = call!(side.ep, ops ! setopt(OPT_LEVEL_ENDPOINT, OPT_MIN_MULTI_RECV, value, size_of::<usize>()));
    assert_eq!(set, 0);
}

const MULTI: Wanted = Wanted {
    kind: Kind::Plain,
    form: Form::Message,
    from: ADDR_UNSPEC,
    tag: 0,
    ignore: 0,
    number: 3,
    flags: flags::MULTI_RECV | flags::COMPLETION,
};

/// A multi-receive buffer takes messages until less than the minimum is left.
pub fn multi(mut side: Side) -> Link {
    side.open(Ask::default());
    const MESSAGES: usize = 4;
    give_back_below(&side, 2048);
    if side.is_first() {
        assert_eq!(side.hear(), "posted");
        for at in 0..MESSAGES {
            let text = vec![at as u8; 2048];
            side.begin(|| side.send(Sent { kind: Kind::Plain, form: Form::Inject, ..tagged(&text, 0, 0) }));
        }
        side.wait_count(side.sends, MESSAGES as u64);
    } else {
        let mut room = vec![0xff_u8; MESSAGES * 2048 + 1000];
        side.begin(|| side.receive(&mut room, MULTI));
        side.say("posted");
        let (mut messages, mut released) = (0, false);
        while messages < MESSAGES || !released {
            let told = side.wait();
            assert_eq!(told.number, 3);
            if told.flags & flags::RECV != 0 && told.bytes > 0 {
                let at = told.buffer - room.as_ptr().addr();
                assert_eq!(told.bytes, 2048);
                assert!(room[at..at + 2048].iter().all(|byte| *byte as usize == messages));
                messages += 1;
            }
            released |= told.flags & flags::MULTI_RECV != 0;
            assert!(!released || messages == MESSAGES, "it is released when it is full");
        }
    }
    finish(side)
}

/// Two multi-receive buffers: the second gets no message before the first is given back,
/// however the messages travel and whether they wait already.
pub fn multi_order(mut side: Side) -> Link {
    side.open(Ask::default());
    const EACH: usize = 16;
    for bytes in [64, 1024, 20_000, 100_000] {
        give_back_below(&side, bytes);
        for come_first in [false, true] {
            if side.is_first() {
                let text = pattern(bytes);
                assert!(come_first || side.hear() == "posted");
                for number in 0..2 * EACH {
                    side.begin(|| side.send(Sent { kind: Kind::Plain, ..tagged(&text, 0, number) }));
                }
                if come_first {
                    side.say("sent");
                }
                (0..2 * EACH).for_each(|_| assert_eq!(side.wait().flags & flags::SEND, flags::SEND));
            } else {
                assert!(!come_first || side.hear() == "sent");
                receive_in_two(&side, bytes, EACH, || {
                    if !come_first {
                        side.say("posted");
                    }
                });
            }
            side.meet();
        }
    }
    finish(side)
}

fn receive_in_two(side: &Side, bytes: usize, each: usize, posted: impl FnOnce()) {
    let room_bytes = each * bytes;
    let mut rooms = [vec![0_u8; room_bytes], vec![0_u8; room_bytes]];
    let starts = rooms.each_ref().map(|room| room.as_ptr().addr());
    for (number, room) in rooms.iter_mut().enumerate() {
        side.begin(|| side.receive(room, Wanted { number, ..MULTI }));
    }
    posted();
    let (mut messages, mut released) = (0, Vec::new());
    while messages < 2 * each || released.len() < 2 {
        let told = side.wait();
        if told.flags & flags::RECV != 0 && told.bytes > 0 {
            let start = starts[told.number];
            assert!((start..start + room_bytes).contains(&told.buffer), "in the buffer that it names");
            assert_eq!(told.number, messages / each, "message {messages} of {bytes} bytes");
            messages += 1;
        }
        if told.flags & flags::MULTI_RECV != 0 {
            released.push((told.number, messages));
        }
    }
    assert_eq!(released, [(0, each), (1, 2 * each)], "{bytes} bytes");
    assert!(rooms.iter().flat_map(|room| room.chunks(bytes)).all(|one| one == pattern(bytes)));
}

/// A receive that is posted behind a multi-receive buffer gets no message before that is
/// given back.
pub fn multi_first(mut side: Side) -> Link {
    side.open(Ask::default());
    const MESSAGES: usize = 6;
    give_back_below(&side, 64);
    if side.is_first() {
        assert_eq!(side.hear(), "posted");
        for _ in 0..=MESSAGES {
            side.begin(|| side.send(Sent { kind: Kind::Plain, ..tagged(&pattern(64), 0, 1) }));
            side.wait();
        }
    } else {
        let (mut room, mut last) = (vec![0_u8; MESSAGES * 64], [0; 64]);
        side.begin(|| side.receive(&mut room, MULTI));
        side.begin(|| side.receive(&mut last, Wanted { kind: Kind::Plain, ..any(0, 4) }));
        side.say("posted");
        let mut told = Vec::new();
        while told.len() <= MESSAGES {
            let one = side.wait();
            told.extend((one.bytes > 0).then_some(one.number));
        }
        assert_eq!(told, [3, 3, 3, 3, 3, 3, 4]);
    }
    finish(side)
}

/// Looking for a message takes nothing.
pub fn peek(mut side: Side) -> Link {
    side.open(Ask::default());
    let text = pattern(6000);
    if side.is_first() {
        assert_eq!(side.hear(), "send");
        side.begin(|| side.send(Sent { form: Form::Data, data: 7, ..tagged(&text, 4, 1) }));
        side.wait();
    } else {
        side.begin(|| side.receive(&mut [], with(4, 1, flags::PEEK)));
        let (number, failure) = side.wait_error();
        assert_eq!((number, failure.err), (1, Errno::NOMSG.0));
        side.say("send");
        for _ in 0..2 {
            let told = side.find(with(4, 2, flags::PEEK));
            assert_eq!((told.number, told.bytes, told.tag, told.data), (2, 6000, 4, 7));
        }
        let mut into = vec![0; 6000];
        side.begin(|| side.receive(&mut into, any(4, 3)));
        assert_eq!(side.wait().bytes, 6000);
        assert!(into == text);
    }
    finish(side)
}

/// A message that was claimed is received by who claimed it, and by nobody else.
pub fn claim(mut side: Side) -> Link {
    side.open(Ask::default());
    if side.is_first() {
        for text in [b"first", b"other"] {
            side.begin(|| side.send(tagged(text, 4, 1)));
        }
        side.wait();
        side.wait();
    } else {
        let told = side.find(with(4, 2, flags::PEEK | flags::CLAIM));
        assert_eq!((told.number, told.bytes), (2, 5));
        let (mut other, mut first) = ([0; 5], [0; 5]);
        side.begin(|| side.receive(&mut other, any(4, 3)));
        assert_eq!((side.wait().number, &other), (3, b"other"));
        side.begin(|| side.receive(&mut first, with(4, 2, flags::CLAIM)));
        assert_eq!((side.wait().number, &first), (2, b"first"));
    }
    finish(side)
}

/// Messages are dropped when they are found, or after they were claimed.
pub fn discard(mut side: Side) -> Link {
    side.open(Ask::default());
    if side.is_first() {
        for text in [b"one", b"two", b"end"] {
            side.begin(|| side.send(tagged(text, 4, 1)));
        }
        (0..3).for_each(|_| assert_eq!(side.wait().number, 1));
    } else {
        side.find(with(4, 2, flags::PEEK | flags::DISCARD));
        side.find(with(4, 3, flags::PEEK | flags::CLAIM));
        side.begin(|| side.receive(&mut [], with(4, 3, flags::CLAIM | flags::DISCARD)));
        assert_eq!(side.wait().number, 3);
        let mut into = [0; 3];
        side.begin(|| side.receive(&mut into, any(4, 4)));
        assert_eq!((side.wait().number, &into), (4, b"end"));
    }
    finish(side)
}

/// A receive that is taken back takes no message.
pub fn cancel(mut side: Side) -> Link {
    side.open(Ask::default());
    let (mut never, mut into) = ([0; 4], [0; 4]);
    for kind in [Kind::Tagged, Kind::Plain] {
        side.begin(|| side.receive(&mut never, Wanted { kind, ..any(8, 1) }));
        assert_eq!(side.cancel(1), 0);
        let (number, failure) = side.wait_error();
        assert_eq!((number, failure.err), (1, Errno::CANCELED.0));
        side.meet();
        side.begin(|| side.receive(&mut into, Wanted { kind, ..any(8, 2) }));
        side.begin(|| side.send(Sent { kind, form: Form::Inject, ..tagged(b"late", 8, 0) }));
        assert_eq!((side.wait().number, &never, &into), (2, &[0; 4], b"late"));
        side.meet();
    }
    finish(side)
}

/// A message that is too long is cut, and the receiver is told how much.
pub fn truncation(mut side: Side) -> Link {
    side.open(Ask::default());
    for bytes in [100, 6000, 400_000] {
        let (text, mut into) = (pattern(bytes), [0; 10]);
        if side.is_first() {
            side.begin(|| side.send(tagged(&text, 6, 1)));
            assert_eq!(side.wait().number, 1);
        } else {
            side.begin(|| side.receive(&mut into, Wanted { from: ADDR_UNSPEC, ..any(6, 2) }));
            let (number, failure) = side.wait_error();
            assert_eq!((number, failure.err, failure.olen), (2, Errno::TRUNC.0, bytes - 10));
            assert!(into == text[..10]);
        }
        side.meet();
    }
    finish(side)
}
