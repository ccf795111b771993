use lmt_core::buffer::{lend, lend_mut};
use lmt_core::claims::Sharing;
use lmt_core::mechanism::{Lmt, Role};
use lmt_core::process::PeerProcess;
use lmt_core::shared_buffer::{SharedBuffer, alloc};

use super::*;

const BYTES: usize = 256 << 10;

/// One end, and what it keeps of the other.
struct End {
    mapped: Mapped,
    peer: MappedPeer,
}

impl End {
    fn new() -> Self {
        Self { mapped: Mapped::new(), peer: MappedPeer::new(1, Arc::new(PeerProcess::this())) }
    }

    /// Hands over what there is, but for what `is_lost`.
    fn hand_over(&mut self, to: &mut Self, is_lost: impl Fn(usize) -> bool) {
        let parcels = std::iter::from_fn(|| self.mapped.parcel(&mut self.peer));
        let parcels: Vec<_> = parcels.collect();
        for (number, parcel) in parcels.into_iter().enumerate() {
            if !is_lost(number) {
                to.mapped.take_parcel(&mut to.peer, parcel);
            }
        }
    }
}

/// A message between two ends of this process.
struct Message {
    sender: End,
    receiver: End,
    out: SharedBuffer,
    into: SharedBuffer,
    cookie: Cookie,
    transfer: MappedTransfer,
}

impl Message {
    /// Opened, and announced to a receiver that has got what `is_lost` leaves.
    fn open(is_lost: impl Fn(usize) -> bool) -> Self {
        let (mut sender, mut receiver) = (End::new(), End::new());
        let (mut out, into) = (alloc(BYTES).expect("memory"), alloc(BYTES).expect("memory"));
        out.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7 % 251) as u8);
        let mut cookie = Cookie::empty();
        let opened = lend(&out, |data| {
            let plan = Plan { role: Role::Sender, ..plan() };
            sender.mapped.open(&mut sender.peer, &plan, data, &mut cookie)
        });
        let transfer = opened.expect("it is shared");
        sender.hand_over(&mut receiver, is_lost);
        Self { sender, receiver, out, into, cookie, transfer }
    }

    fn meet(&mut self, cookie: &Cookie) -> Option<Meeting<MappedTransfer>> {
        let plan = plan();
        let End { mapped, peer } = &mut self.receiver;
        let met = lend_mut(&mut self.into, |data| mapped.meet(peer, &plan, cookie, data));
        assert_eq!(peer.coming(), u32::from(matches!(met, Some(Meeting::GoesOn(_)))));
        met
    }

    fn step(&mut self) -> Step {
        let End { mapped, peer } = &mut self.sender;
        lend_mut(&mut self.out, |data| mapped.step(peer, &mut self.transfer, data, u64::MAX)).expect("it can")
    }

    /// The message by the general way, by the receiver alone.
    fn get(&mut self) -> Result<(), Fault> {
        let plan = Plan { model: Model::Get, ..plan() };
        let End { mapped, peer } = &mut self.receiver;
        lend_mut(&mut self.into, |data| {
            let (mut transfer, _) = mapped.prepare(peer, &plan, data)?;
            let started = mapped.start(peer, &mut transfer, &self.cookie, plan.interval);
            let stepped = started.and_then(|()| mapped.step(peer, &mut transfer, data, u64::MAX));
            mapped.finish(peer, transfer);
            stepped.map(|step| assert!(step.done))
        })
    }

    fn finish(self) {
        let Self { mut sender, transfer, .. } = self;
        sender.mapped.finish(&mut sender.peer, transfer);
    }
}

fn plan() -> Plan {
    let interval = Interval { start: 0, end: BYTES as u64 };
    Plan { left_alone: true, ..Plan::new(Role::Receiver, Model::Both, interval) }
}

#[test]
fn a_receiver_alone_brings_all_in_and_its_sender_knows() {
    let mut message = Message::open(|_| false);
    assert_eq!(message.step(), Step { bytes: 0, done: false }, "nobody has come");
    let cookie = message.cookie;
    let met = message.meet(&cookie);
    assert!(matches!(met, Some(Meeting::Done { copied_by_sender: 0, sender_knows: true })), "{met:?}");
    assert!(*message.into == *message.out);
    assert_eq!(message.step(), Step { bytes: 0, done: true });
    let End { mapped, peer } = &mut message.sender;
    assert!(mapped.leave(peer, &mut message.transfer));
    message.finish();
}

#[test]
fn both_copy() {
    // The sender has to be there in time.
    let helped = (0..1000).any(|_| {
        let mut message = Message::open(|_| false);
        let cookie = message.cookie;
        // The receiver's arena, which is this one, is known by then.
        lend_mut(&mut message.into, |data| {
            let (arena, _) = place_of(data).expect("it is shared");
            message.receiver.peer.introduce(arena);
        });
        let Message { sender, receiver, out, into, transfer, .. } = &mut message;
        receiver.hand_over(sender, |_| false);
        let met = std::thread::scope(|threads| {
            let met = threads.spawn(move || {
                let plan = plan();
                lend_mut(into, |data| receiver.mapped.meet(&mut receiver.peer, &plan, &cookie, data))
            });
            let mut copied = 0;
            lend_mut(out, |data| {
                while let Ok(Step { bytes, done: false }) =
                    sender.mapped.step(&mut sender.peer, transfer, data, u64::MAX)
                {
                    copied += bytes;
                }
            });
            (met.join().expect("it ends"), copied)
        });
        assert!(*message.into == *message.out);
        let (Some(Meeting::Done { copied_by_sender, sender_knows: true }), copied) = met else {
            panic!("{met:?}");
        };
        assert_eq!(copied, copied_by_sender);
        message.finish();
        copied > 0
    });
    assert!(helped, "the sender has never helped");
}

/// Until the receiver has the sender's lines it takes the general way, for which the lease
/// is still there.
#[test]
fn a_receiver_without_the_lines_takes_the_general_way() {
    let mut message = Message::open(|number| number > 0);
    let cookie = message.cookie;
    assert!(message.meet(&cookie).is_none());
    message.get().expect("it is mapped");
    assert!(*message.into == *message.out);
    message.finish();
}

#[test]
fn what_a_cookie_cannot_say_is_met_by_nobody() {
    let mut message = Message::open(|_| false);
    let bytes = message.cookie.as_bytes().to_vec();
    for at in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut garbled = bytes.clone();
            garbled[at] ^= 1 << bit;
            // A lower offset within the arena is a place there, and the pieces' number is checked.
            let cookie = Cookie::new(&garbled).expect("as long as before");
            if let Some(Meeting::GoesOn(_)) = message.meet(&cookie) {
                panic!("byte {at}: nobody copies");
            }
        }
    }
    assert!(message.meet(&Cookie::new(&bytes[..bytes.len() - 1]).expect("short")).is_none());
    assert!(message.meet(&Cookie::empty()).is_none());
    message.finish();
}

#[test]
fn a_place_that_cannot_be_is_not_written_to() {
    for (offset, is_known) in [(u64::MAX >> 24, true), (0, true), (4096, false)] {
        let mut message = Message::open(|_| false);
        let described = parse(&message.cookie, Interval { start: 0, end: BYTES as u64 }).expect("it is one");
        let arena = lend_mut(&mut message.into, |data| {
            let (arena, _) = place_of(data).expect("it is shared");
            message.receiver.peer.introduce(arena);
            arena
        });
        let Message { sender, receiver, .. } = &mut message;
        receiver.hand_over(sender, |_| false);
        let arena = if is_known { arena } else { arena + 1000 };
        let told = Place { arena, offset, goes_past: true }.tell();
        let joined =
            receiver.peer.claims.join(described.head.opened, plan().interval, Sharing::default(), told);
        let joined = joined.expect("it is open");
        for _ in 0..3 {
            assert_eq!(message.step(), Step { bytes: 0, done: false }, "{offset}");
        }
        joined.finish(&message.receiver.peer.claims);
        message.finish();
    }
}

#[test]
fn what_is_not_shared_or_in_pieces_is_not_opened() {
    let mut end = End::new();
    let mut cookie = Cookie::empty();
    let plan = Plan { role: Role::Sender, ..plan() };
    assert!(lend(&vec![0; BYTES], |data| end.mapped.open(&mut end.peer, &plan, data, &mut cookie)).is_none());
}
