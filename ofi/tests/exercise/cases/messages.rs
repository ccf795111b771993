//! fi_msg(3), fi_tagged(3): what is sent, by every call.

use lmt_fi::abi::flags;

use super::{any, finish, pattern, tagged};
use crate::link::Link;
use crate::side::{Ask, Form, Kind, Sent, Side};

/// Every call that sends, with every call that receives.
pub fn forms(mut side: Side) -> Link {
    side.open(Ask::default());
    let sends = [Form::One, Form::Vector, Form::Message, Form::Inject, Form::Data, Form::InjectData];
    for kind in [Kind::Plain, Kind::Tagged] {
        for receive in [Form::One, Form::Vector, Form::Message] {
            for form in sends {
                let (text, mut into) = (*b"some bytes", [0; 10]);
                if side.is_first() {
                    side.begin(|| side.send(Sent { kind, form, data: 0x77, ..tagged(&text, 3, 1) }));
                    if ![Form::Inject, Form::InjectData].contains(&form) {
                        let told = side.wait();
                        assert_eq!((told.number, told.flags & flags::SEND), (1, flags::SEND), "{form:?}");
                    }
                } else {
                    let wanted = crate::side::Wanted { kind, form: receive, ..any(3, 2) };
                    side.begin(|| side.receive(&mut into, wanted));
                    let told = side.wait();
                    assert_eq!(
                        (told.number, told.bytes, into),
                        (2, 10, text),
                        "{kind:?} {form:?} {receive:?}"
                    );
                    let is_kind = if kind == Kind::Plain { flags::MSG } else { flags::TAGGED };
                    assert_eq!(told.flags & (is_kind | flags::RECV), is_kind | flags::RECV);
                    let has_data = [Form::Data, Form::InjectData].contains(&form);
                    assert_eq!(
                        (told.flags & flags::REMOTE_CQ_DATA != 0, has_data && told.data != 0x77),
                        (has_data, false)
                    );
                    assert_eq!(told.source, side.peer);
                }
            }
        }
    }
    side.meet();
    assert!(side.read().is_err(), "nothing is told twice, and nothing of what was injected");
    finish(side)
}

/// Messages of no bytes up to some MiB, sent before and after the receive.
pub fn lengths(mut side: Side) -> Link {
    side.open(Ask::default());
    for bytes in [0, 1, 63, 64, 65, 4095, 4096, 4097, 65_536, 1 << 20, (8 << 20) + 1] {
        for is_posted in [false, true] {
            let (text, mut into) = (pattern(bytes), vec![0; bytes]);
            if side.is_first() {
                if is_posted {
                    assert_eq!(side.hear(), "posted");
                }
                side.begin(|| side.send(tagged(&text, 1, 1)));
                if !is_posted {
                    side.say("sent");
                }
                assert_eq!(side.wait().number, 1);
            } else {
                if !is_posted {
                    assert_eq!(side.hear(), "sent");
                }
                side.begin(|| side.receive(&mut into, any(1, 2)));
                if is_posted {
                    side.say("posted");
                }
                let told = side.wait();
                assert_eq!((told.number, told.bytes), (2, bytes));
                assert!(into == text, "{bytes} bytes");
            }
        }
    }
    finish(side)
}

/// Both send at once.
pub fn both_ways(mut side: Side) -> Link {
    side.open(Ask::default());
    for bytes in [8, 10_000, 1 << 20] {
        let (text, mut into) = (pattern(bytes), vec![0; bytes]);
        side.begin(|| side.receive(&mut into, any(5, 1)));
        side.begin(|| side.send(tagged(&text, 5, 2)));
        let mut told = [side.wait().number, side.wait().number];
        told.sort_unstable();
        assert_eq!(told, [1, 2]);
        assert!(into == text);
    }
    finish(side)
}

/// Messages that match the same receives are received in the order in which they
/// were sent, whatever their lengths (`FI_ORDER_SAS`).
pub fn order(mut side: Side) -> Link {
    side.open(Ask::default());
    let lengths = [8, 400_000, 8, 5000, 8, 70_000, 0, 8];
    let texts: Vec<_> = lengths.iter().enumerate().map(|(at, bytes)| vec![at as u8; *bytes]).collect();
    let mut into: Vec<_> = lengths.iter().map(|bytes| vec![0xff; *bytes]).collect();
    if side.is_first() {
        for (at, text) in texts.iter().enumerate() {
            side.begin(|| side.send(tagged(text, 4, at)));
        }
    } else {
        for (at, into) in into.iter_mut().enumerate() {
            side.begin(|| side.receive(into, any(4, at)));
        }
    }
    for _ in &lengths {
        side.wait();
    }
    assert!(side.is_first() || into == texts);
    finish(side)
}

/// More than there is room for; who has no room is told to try again.
pub fn many(mut side: Side) -> Link {
    side.open(Ask::default());
    let text = pattern(2000);
    const MESSAGES: u64 = 3000;
    if side.is_first() {
        for at in 0..MESSAGES {
            let message = Sent { form: Form::Inject, ..tagged(&text, at, 0) };
            side.begin(|| side.send(message));
        }
        side.wait_count(side.sends, MESSAGES);
    } else {
        std::thread::sleep(std::time::Duration::from_millis(50));
        for at in 0..MESSAGES {
            let mut into = vec![0; 2000];
            side.begin(|| side.receive(&mut into, any(at, 1)));
            assert_eq!(side.wait().bytes, 2000);
            assert!(into == text);
        }
    }
    finish(side)
}

/// What a completion promises, as the flags of a send ask for it.
pub fn levels(mut side: Side) -> Link {
    side.open(Ask::default());
    let levels = [flags::INJECT_COMPLETE, flags::TRANSMIT_COMPLETE, flags::DELIVERY_COMPLETE];
    for level in levels {
        for bytes in [10, 100_000] {
            let (text, mut into) = (pattern(bytes), vec![0; bytes]);
            if side.is_first() {
                let message =
                    Sent { form: Form::Message, flags: level | flags::COMPLETION, ..tagged(&text, 1, 1) };
                side.begin(|| side.send(message));
                if level == flags::DELIVERY_COMPLETE {
                    let start = std::time::Instant::now();
                    while start.elapsed() < std::time::Duration::from_millis(20) {
                        assert!(side.read().is_err(), "nobody has received it");
                    }
                    side.say("post");
                }
                assert_eq!(side.wait().number, 1);
            } else {
                if level == flags::DELIVERY_COMPLETE {
                    assert_eq!(side.hear(), "post");
                }
                side.begin(|| side.receive(&mut into, any(1, 2)));
                assert_eq!(side.wait().bytes, bytes);
                assert!(into == text);
            }
            side.meet();
        }
    }
    // FI_INJECT: the bytes may be changed when the call has returned.
    let (mut text, mut into) = (*b"first", [0; 5]);
    if side.is_first() {
        let with = flags::INJECT | flags::COMPLETION;
        let message = Sent { form: Form::Message, flags: with, ..tagged(&text, 2, 1) };
        side.begin(|| side.send(message));
        text = *b"after";
        assert_eq!((side.wait().number, &text), (1, b"after"));
        side.say("changed");
    } else {
        assert_eq!(side.hear(), "changed");
        side.begin(|| side.receive(&mut into, any(2, 2)));
        assert_eq!((side.wait().number, &into), (2, b"first"));
    }
    finish(side)
}

/// A number goes along with messages of any length.
pub fn remote_data(mut side: Side) -> Link {
    side.open(Ask::default());
    for bytes in [0, 5000, 300_000] {
        for (form, flags) in [(Form::Data, 0), (Form::Message, flags::REMOTE_CQ_DATA | flags::COMPLETION)] {
            let (text, mut into) = (pattern(bytes), vec![0; bytes]);
            if side.is_first() {
                let message = Sent { form, data: 0xfedc_ba98, flags, ..tagged(&text, 6, 1) };
                side.begin(|| side.send(message));
                side.wait();
            } else {
                side.begin(|| side.receive(&mut into, any(6, 2)));
                let told = side.wait();
                assert_eq!((told.bytes, told.data), (bytes, 0xfedc_ba98));
                assert_ne!(told.flags & lmt_fi::abi::flags::REMOTE_CQ_DATA, 0);
            }
        }
    }
    finish(side)
}
