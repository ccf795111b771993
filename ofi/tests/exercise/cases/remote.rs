//! fi_mr(3), fi_rma(3): memory of the other process.

use lmt_fi::abi::{Errno, flags};

use super::{finish, pattern};
use crate::link::Link;
use crate::side::{Ask, Remote, Side, There, close};

const ACCESS: u64 = flags::REMOTE_READ | flags::REMOTE_WRITE;

fn tell(side: &Side, there: There) -> There {
    side.say(&format!("{} {}", there.address, there.key));
    let told = side.hear();
    let (address, key) = told.split_once(' ').expect("two numbers");
    There { address: address.parse().expect("a number"), key: key.parse().expect("a number") }
}

/// Every call that reads or writes, of some lengths.
pub fn forms(mut side: Side) -> Link {
    side.open(Ask::default());
    let mut memory = vec![0_u8; 1 << 20];
    let (mr, own) = side.register(&mut memory, ACCESS);
    let there = tell(&side, own);
    let writes = [Remote::Write, Remote::WriteVector, Remote::WriteMessage, Remote::Inject];
    let reads = [Remote::Read, Remote::ReadVector, Remote::ReadMessage];
    if side.is_first() {
        for bytes in [1, 1000, 1 << 20] {
            let (text, mut into) = (pattern(bytes), vec![0; bytes]);
            for write in writes {
                // What may be injected is short.
                let mut from =
                    if write == Remote::Inject { text[..bytes.min(1000)].to_vec() } else { text.clone() };
                side.begin(|| side.remote(write, &mut from, there, 1));
                if write != Remote::Inject {
                    let told = side.wait();
                    assert_eq!((told.number, told.flags & flags::WRITE), (1, flags::WRITE), "{write:?}");
                }
            }
            for read in reads {
                into.fill(0);
                side.begin(|| side.remote(read, &mut into, there, 2));
                let told = side.wait();
                assert_eq!((told.number, told.flags & flags::READ), (2, flags::READ));
                assert!(into == text, "{read:?} of {bytes} bytes");
            }
        }
        side.say("written");
    } else {
        assert_eq!(side.hear(), "written");
    }
    side.meet();
    assert_eq!(close(mr), 0);
    assert!(side.is_first() || memory == pattern(1 << 20));
    finish(side)
}

/// What is not there, or not allowed, is an error of the operation.
pub fn errors(mut side: Side) -> Link {
    side.open(Ask::default());
    let mut memory = vec![7_u8; 64];
    let (mr, own) = side.register(&mut memory, flags::REMOTE_READ);
    let there = tell(&side, own);
    if side.is_first() {
        let mut into = [0; 64];
        side.begin(|| side.remote(Remote::Read, &mut into, there, 1));
        assert_eq!((side.wait().number, &into), (1, &[7; 64]));
        side.begin(|| side.remote(Remote::Write, &mut into, there, 1));
        assert_eq!(side.wait_error().1.err, Errno::ACCES.0, "it may be read only");
        let nowhere = There { key: there.key ^ 0x55, ..there };
        side.begin(|| side.remote(Remote::Read, &mut into, nowhere, 1));
        let error = side.wait_error().1.err;
        assert!([Errno::NOKEY.0, Errno::ACCES.0].contains(&error), "{error}");
    }
    side.meet();
    assert_eq!((close(mr), memory), (0, vec![7; 64]));
    finish(side)
}
