use std::sync::Arc;

use lmt_core::buffer::{lend, lend_mut};
use lmt_core::claims::PeerClaims;
use lmt_core::process::PeerProcess;

use super::*;

const BYTES: usize = 256 << 10;
const WHOLE: Interval = Interval { start: 0, end: BYTES as u64 };

fn peer() -> CmaPeer {
    CmaPeer::new(PeerClaims::new(Arc::new(PeerProcess::this())), true)
}

/// A message within this process: the sender's claims, what each keeps of the other, and
/// what is sent and announced.
struct Message {
    claims: Claims,
    receiver: CmaPeer,
    sender: CmaPeer,
    out: Vec<u8>,
    opened: Opened,
    cookie: Cookie,
}

impl Message {
    fn open() -> Self {
        let (mut claims, mut receiver, mut sender) = (Claims::default(), peer(), peer());
        let out: Vec<u8> = (0..BYTES).map(|at| (at * 7 % 251) as u8).collect();
        let (opened, cookie) =
            lend(&out, |data| open(&mut claims, &mut receiver, data)).expect("it is contiguous");
        sender.claims.take_parcel(receiver.claims.parcel().expect("the lines"));
        Self { claims, receiver, sender, out, opened, cookie }
    }

    fn meet(&mut self, cookie: &Cookie, into: &mut [u8]) -> Option<(Early, Step)> {
        let sharing = self.claims.sharing();
        lend_mut(into, |data| meet(sharing, &mut self.sender, WHOLE, cookie, data))
    }

    fn help(&mut self) -> Result<Step, Fault> {
        lend(&self.out, |data| {
            help(&self.claims, &mut self.receiver, &mut self.opened, &mut false, data, u64::MAX)
        })
    }
}

#[test]
fn a_receiver_alone_brings_all_in_and_its_sender_knows() {
    let mut message = Message::open();
    assert_eq!(message.help(), Ok(Step { bytes: 0, done: false }), "nobody has come");
    let (mut into, cookie) = (vec![0; BYTES], message.cookie);
    let (early, step) = message.meet(&cookie, &mut into).expect("it is open");
    assert_eq!(step, Step { bytes: BYTES as u64, done: true });
    assert!(into == message.out && early.sender_knows() && early.copied_by_peer() == 0);
    assert_eq!(message.help(), Ok(Step { bytes: 0, done: true }));
    assert!(message.claims.leave(&mut message.opened));
    early.finish(&mut Claims::default(), &message.sender);
    message.claims.shut(message.opened);
}

#[test]
fn an_address_that_is_none_ends_the_help_and_the_receiver_copies_all() {
    let mut message = Message::open();
    let (_, name) = opened_of(&message.cookie).expect("it is one");
    let sharing = message.claims.sharing();
    let nowhere = told_of(u64::MAX << 16 >> 16);
    assert_eq!(address_of(nowhere), u64::MAX << 16 >> 16);
    let mut joined = message.sender.claims.join(name, WHOLE, sharing, nowhere).expect("it is open");
    assert!(message.help().is_err(), "nothing can be written there");
    assert!(!message.claims.leave(&mut message.opened));
    let mut bytes = 0;
    let coming = joined.bring_in(&message.sender.claims, |part| {
        bytes += part.bytes();
        true
    });
    assert_eq!((coming, bytes), (Ok(Coming::Whole), BYTES as u64));
    joined.finish(&message.sender.claims);
    message.claims.shut(message.opened);
}

#[test]
fn what_cannot_be_read_is_not_met_and_nobody_copies_any_more() {
    let mut message = Message::open();
    let mut garbled = message.cookie.as_bytes().to_vec();
    garbled[..8].copy_from_slice(&4096_u64.to_ne_bytes());
    let cookie = Cookie::new(&garbled).expect("as long as before");
    assert!(message.meet(&cookie, &mut vec![0; BYTES]).is_none());
    assert_eq!(message.help(), Ok(Step { bytes: 0, done: true }), "the line is closed");
    message.claims.shut(message.opened);
}

#[test]
fn cookies_of_other_forms_are_met_by_nobody() {
    let mut message = Message::open();
    let bytes = message.cookie.as_bytes().to_vec();
    for cookie in [&bytes[..8], &bytes[..11], &[][..]] {
        let cookie = Cookie::new(cookie).expect("it is short");
        assert!(message.meet(&cookie, &mut vec![0; BYTES]).is_none());
    }
    message.claims.shut(message.opened);
}
