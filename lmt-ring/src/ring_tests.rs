use lmt_core::buffer::{Access, Buffer};
use lmt_core::mechanism::{Fault, Interval};
use proptest::prelude::*;

use super::*;
use crate::pool::Pool;
use crate::receiver::Receiving;
use crate::sender::Sending;
use crate::slot::CELLS_IN_FLIGHT;
use crate::sys::CopyOut;
use crate::sys::tests::lend;

const CELLS: u32 = 12;
const LAYOUT: Layout = Layout { cells: CELLS, rings: 2 };

/// Both ends of a ring, each with its own mapping: the pool's owner first.
fn pair() -> [PairRing; 2] {
    pair_of(LAYOUT)
}

fn pair_of(layout: Layout) -> [PairRing; 2] {
    let pool = Pool::new(layout).unwrap();
    let lease = pool.lease().unwrap().expect("a ring is free");
    let theirs = Mapping::attach(pool.descriptor().unwrap(), layout.pool_bytes()).unwrap();
    let ring = lease.ring;
    let mine = PairRing::mine(Arc::clone(&pool.mapping), layout, lease);
    [mine, PairRing::theirs(Arc::new(theirs), layout, ring)]
}

fn interval(bytes: u64) -> Interval {
    Interval { start: 0, end: bytes }
}

/// The cells of both ends, sorted.
fn owned(rings: &[PairRing; 2]) -> Vec<u8> {
    let mut all: Vec<_> = rings.iter().flat_map(|ring| &ring.own).copied().collect();
    all.sort_unstable();
    all
}

/// A message between the two ends, in any state.
struct Message {
    from: usize,
    sent: Vec<u8>,
    got: Vec<u8>,
    slot: Option<u8>,
    tag: u64,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    /// The receiver has not come yet.
    waits: bool,
}

/// A message of whatever place in memory.
fn at_once(ring: &mut PairRing) -> Option<Sending> {
    Sending::at_once(ring, &Buffer::empty(Access::Read), 0)
}

impl Message {
    fn new(rings: &mut [PairRing; 2], number: usize, bytes: u64, flags: u64) -> Option<Self> {
        let from = (flags & 1) as usize;
        let ring = &mut rings[from];
        let number = number as u64;
        let mut sent: Vec<_> = (0..bytes).map(|at| (at * 13 + at / 251 + number * 5) as u8).collect();
        let mut sending = if flags & 6 == 0 {
            Sending::without_slot(ring)
        } else {
            lend(&mut [&mut sent], Access::Read, |data| Sending::at_once(ring, data, 0))?
        };
        sending.start(interval(bytes));
        // A receive may have room for less.
        let room = if flags & 24 == 0 { bytes / 2 + 1 } else { bytes };
        let (slot, tag) = (sending.slot(), sending.tag);
        let (got, sending) = (vec![0; room as usize], Some(sending));
        Some(Self { from, sent, got, slot, tag, sending, receiving: None, waits: true })
    }

    fn send(&mut self, rings: &mut [PairRing; 2], max_bytes: u64) {
        let Some(sending) = &mut self.sending else { return };
        let ring = &mut rings[self.from];
        let step = lend(&mut [&mut self.sent], Access::Read, |data| sending.step(ring, data, max_bytes));
        self.slot = sending.slot();
        if step.expect("both are honest").done {
            assert!(sending.leave(ring), "it knows that all is there");
            self.stop_sending(rings);
        }
    }

    fn stop_sending(&mut self, rings: &mut [PairRing; 2]) {
        if let Some(sending) = self.sending.take() {
            sending.finish(&mut rings[self.from]);
        }
    }

    fn receive(&mut self, rings: &mut [PairRing; 2], max_bytes: u64) {
        let ring = &mut rings[1 - self.from];
        if self.waits {
            let Some(slot) = self.slot else { return };
            if Receiving::find(ring, self.tag) == Some(slot) {
                let room = interval(self.got.len() as u64);
                let way = [CopyOut::Cached, CopyOut::Streamed][self.tag as usize % 2];
                self.receiving =
                    Some(Receiving::start(ring, slot, self.tag, room, way).expect("it stands there"));
                self.waits = false;
            }
            return;
        }
        let Some(receiving) = &mut self.receiving else { return };
        match lend(&mut [&mut self.got], Access::Write, |data| receiving.step(ring, data, max_bytes)) {
            Ok(step) if !step.done => {}
            Ok(_) => {
                assert_eq!(self.got, self.sent[..self.got.len()], "the bytes arrive");
                self.stop_receiving(rings);
            }
            Err(fault) => {
                assert!(self.sending.is_none(), "only an abandoned message fails: {fault:?}");
                self.stop_receiving(rings);
            }
        }
    }

    fn stop_receiving(&mut self, rings: &mut [PairRing; 2]) {
        self.waits = false;
        if let Some(mut receiving) = self.receiving.take() {
            receiving.close(&rings[1 - self.from]);
        }
    }

    fn is_over(&self) -> bool {
        self.sending.is_none() && (self.receiving.is_none())
    }
}

/// No cell belongs to both ends, or to one twice.
fn assert_no_doubles(rings: &[PairRing; 2]) {
    let all = owned(rings);
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    for ring in rings {
        assert!(ring.returned_cells <= ring.own_cells(), "{ring:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Messages both ways, of any length, cut short, taken back and given up:
    /// when all are over, each cell is one end's, and every slot is free.
    #[test]
    fn cells_are_neither_lost_nor_doubled(
        turns in proptest::collection::vec((0..100u8, any::<u64>(), 1..400_000u64), 1..300),
    ) {
        let mut rings = pair();
        let mut messages: Vec<Message> = Vec::new();
        for (number, (what, any, bytes)) in turns.into_iter().enumerate() {
            if what < 10 {
                messages.extend(Message::new(&mut rings, number, bytes, any));
            }
            let in_flight = messages.len() as u64;
            let Some(message) = messages.get_mut((any % in_flight.max(1)) as usize) else { continue };
            match what {
                0..10 => {}
                10..55 => message.send(&mut rings, bytes),
                55..94 => message.receive(&mut rings, bytes),
                94..97 => message.stop_sending(&mut rings),
                _ if message.receiving.is_some() => {
                    // Its sender hears of that by a packet.
                    message.stop_receiving(&mut rings);
                    message.stop_sending(&mut rings);
                }
                _ => {}
            }
            messages.retain(|message| !message.is_over());
            assert_no_doubles(&rings);
        }
        for message in &mut messages {
            message.stop_receiving(&mut rings);
            message.stop_sending(&mut rings);
        }
        rings.iter_mut().for_each(PairRing::reap);
        prop_assert_eq!(owned(&rings), (0..CELLS as u8).collect::<Vec<_>>());
        for ring in &rings {
            prop_assert_eq!((ring.free_slots.len(), ring.ending.len()), (usize::from(SLOTS), 0));
            prop_assert_eq!((ring.held_cells, ring.unmatched_cells), (ring.own_cells(), 0));
        }
    }

    /// What has a receiver arrives, whatever waits for one, and whichever way the
    /// cells went before.
    #[test]
    fn what_has_a_receiver_arrives(
        messages in proptest::collection::vec((any::<u64>(), 1..800_000u64, any::<bool>()), 1..20),
        turns in proptest::collection::vec((any::<usize>(), any::<bool>()), 0..200),
    ) {
        let mut rings = pair();
        let made = messages.into_iter().enumerate().filter_map(|(number, (flags, bytes, is_matched))| {
            Some((Message::new(&mut rings, number, bytes, flags | 2)?, is_matched))
        });
        let mut messages: Vec<_> = made.collect();
        let count = messages.len();
        for (any, sends) in turns {
            let (message, is_matched) = &mut messages[any % count];
            match sends {
                true => message.send(&mut rings, u64::MAX),
                false if *is_matched => message.receive(&mut rings, u64::MAX),
                false => {}
            }
        }
        for _ in 0..200 {
            for (message, is_matched) in &mut messages {
                message.send(&mut rings, u64::MAX);
                if *is_matched {
                    message.receive(&mut rings, u64::MAX);
                }
            }
        }
        for (message, is_matched) in &messages {
            prop_assert_eq!(message.is_over(), *is_matched);
        }
    }

    /// Whatever a peer writes, the other end neither panics nor reaches beyond
    /// its ring, nor has more cells than there are.
    #[test]
    fn a_peer_that_writes_anything_does_no_harm(
        words in proptest::collection::vec((0..8u8, any::<u64>(), any::<u8>()), 1..100),
        cells_at_begin in prop_oneof![Just(0), Just(7), any::<u64>()],
    ) {
        let [mut honest, liar] = pair();
        let mut sending = at_once(&mut honest).unwrap();
        sending.start(interval(300_000));
        let (theirs, tag) = (sending.slot().unwrap(), sending.tag);
        liar.sending_slot(0).unwrap().open(3, cells_at_begin, u64::MAX, u64::MAX);
        let mut receiving = Receiving::start(&honest, 0, 3, interval(300_000), CopyOut::Cached).unwrap();
        let mut bytes = vec![0; 300_000];
        for (what, word, cell) in words {
            let (out, back) = (liar.sending_slot(0).unwrap(), liar.receiving_slot(theirs).unwrap());
            match what {
                0 => out.publish(word),
                1 => out.publish(word % 400_000),
                2 => out.name_cell(word, cell),
                3 => out.name_cell(word % 10, cell % CELLS as u8),
                4 => back.empty(word >> 1, word & 1 == 1),
                5 => back.empty(word % 10, true),
                6 => { back.close(tag ^ word & 1, word & 2 == 2); }
                _ => { back.attach(tag); }
            }
            lend(&mut [&mut bytes], Access::Write, |data| {
                let _ = receiving.step(&mut honest, data, word % 100_000);
                let _ = sending.step(&mut honest, data, word % 100_000);
            });
            prop_assert!(honest.own_cells() <= honest.cells());
        }
        receiving.close(&honest);
        sending.finish(&mut honest);
        prop_assert!(honest.own_cells() <= honest.cells());
    }
}

fn is_garbage<T: std::fmt::Debug>(result: Result<T, Fault>) -> bool {
    matches!(&result, Err(Fault::Demote { for_good: true, .. }))
}

#[test]
fn a_sender_that_lies_is_found_out() {
    for (number, lie) in [
        (|slot: &Slot| {
            slot.name_cell(0, CELLS as u8);
            slot.publish(100)
        }) as fn(&Slot),
        |slot| {
            slot.name_cell(0, 255);
            slot.publish(100)
        },
        |slot| slot.publish(CELLS_IN_FLIGHT * CELL_BYTES + 1),
        |slot| slot.publish(u64::MAX - 1),
    ]
    .into_iter()
    .enumerate()
    {
        let [mut honest, liar] = pair();
        let slot = liar.sending_slot(4).unwrap();
        slot.open(1, 0, 17, 100);
        let mut receiving = Receiving::start(&honest, 4, 1, interval(1 << 20), CopyOut::Cached).unwrap();
        lie(slot);
        let mut bytes = vec![0; 1 << 20];
        let step = lend(&mut [&mut bytes], Access::Write, |data| receiving.step(&mut honest, data, 1 << 20));
        assert!(is_garbage(step), "lie {number}");
    }
}

#[test]
fn a_sender_that_takes_bytes_back_is_found_out() {
    let [mut honest, liar] = pair();
    let slot = liar.sending_slot(0).unwrap();
    slot.open(1, 0, 17, 100);
    slot.name_cell(0, 3);
    slot.publish(100);
    let mut receiving = Receiving::start(&honest, 0, 1, interval(1000), CopyOut::Cached).unwrap();
    let mut bytes = [0; 1000];
    lend(&mut [&mut bytes], Access::Write, |data| {
        assert_eq!(receiving.step(&mut honest, data, 1000).unwrap().bytes, 100);
        slot.publish(99);
        assert!(is_garbage(receiving.step(&mut honest, data, 1000)));
    });
}

#[test]
fn a_receiver_that_lies_is_found_out() {
    for (number, lie) in [
        (|slot: &Slot, _: u64| slot.empty(1, true)) as fn(&Slot, u64),
        |slot, _| slot.empty(u64::MAX - 1, true),
        |slot, tag| {
            slot.close(tag + 1, true);
        },
    ]
    .into_iter()
    .enumerate()
    {
        let [mut honest, liar] = pair();
        let mut sending = at_once(&mut honest).unwrap();
        sending.start(interval(1000));
        let slot = liar.receiving_slot(sending.slot().unwrap()).unwrap();
        let (tag, mut bytes) = (sending.tag, [7; 1000]);
        lend(&mut [&mut bytes], Access::Read, |data| {
            assert_eq!(sending.step(&mut honest, data, 1000).unwrap().bytes, 1000);
            lie(slot, tag);
            assert!(is_garbage(sending.step(&mut honest, data, 1000)), "lie {number}");
        });
    }
}

#[test]
fn a_message_that_was_taken_back_has_no_receiver() {
    let [mut mine, theirs] = pair();
    let sending = at_once(&mut mine).unwrap();
    let (slot, tag) = (sending.slot().unwrap(), sending.tag);
    sending.finish(&mut mine);
    let fault = Receiving::start(&theirs, slot, tag, interval(10), CopyOut::Cached).unwrap_err();
    assert!(matches!(fault, Fault::Demote { for_good: false, .. }), "{fault:?}");
    assert_eq!(Receiving::find(&theirs, tag), None);
}

#[test]
fn messages_without_a_receive_leave_slots_and_cells_to_others() {
    let [mut mine, _theirs] = pair();
    let mut bytes = vec![1; 1 << 20];
    let mut waiting = Vec::new();
    lend(&mut [&mut bytes], Access::Read, |data| {
        while let Some(mut sending) = Sending::at_once(&mut mine, data, 0) {
            sending.start(interval(1 << 20));
            sending.step(&mut mine, data, 1 << 20).unwrap();
            waiting.push(sending);
        }
    });
    assert!(mine.own_cells() > 0 && mine.take_slot(0).is_some());
    for sending in waiting {
        sending.finish(&mut mine);
    }
    assert_eq!(mine.own_cells(), u64::from(CELLS / 2), "all come back");
}

#[test]
fn a_ring_is_leased_again_when_its_peer_has_gone() {
    let pool = Pool::new(LAYOUT).unwrap();
    let leases: Vec<_> = std::iter::from_fn(|| pool.lease().unwrap()).collect();
    assert_eq!(leases.len() as u32, LAYOUT.rings);
    drop(leases);
    assert!(pool.lease().unwrap().is_some());
}

/// One of 80 cells, through a ring of which all cells have come back.
#[test]
fn what_is_longer_than_the_ring_goes_through_cells_that_come_back() {
    let mut rings = pair();
    for _ in 0..rings[0].own_cells() {
        let cell = rings[0].take(true, true).unwrap().unwrap();
        rings[0].reclaim_cell(cell);
    }
    let message = Message::new(&mut rings, 0, 80 * CELL_BYTES, 10);
    let mut message = message.expect("there is a slot");
    while message.sending.is_some() {
        message.send(&mut rings, 1 << 20);
        message.receive(&mut rings, 1 << 20);
    }
    assert!(message.is_over());
    rings.iter_mut().for_each(PairRing::reap);
    assert_eq!(owned(&rings).len(), CELLS as usize, "no cell is lost");
}

/// A stream that goes one way, whose receiver sends nothing, goes through the cells that come back.
#[test]
fn a_stream_that_goes_one_way_takes_few_cells() {
    let mut rings = pair_of(Layout { cells: 64, ..LAYOUT });
    for number in 0..40 {
        let message = Message::new(&mut rings, number, 2 * CELL_BYTES, 10);
        let mut message = message.expect("there is a slot");
        while message.sending.is_some() {
            message.send(&mut rings, u64::MAX);
            message.receive(&mut rings, u64::MAX);
        }
    }
    let committed: u32 = rings[0].committed.iter().map(|word| word.count_ones()).sum();
    assert!(committed <= 8, "{committed} cells have taken memory");
    assert_eq!(rings[0].own_cells(), 32, "all came back");
}

/// Whoever sends: each message's cells stand behind one another, from the first on.
#[test]
fn cells_are_taken_in_the_order_in_which_they_stand() {
    const MESSAGE_CELLS: u64 = 6;
    let mut rings = pair_of(Layout { cells: 64, ..LAYOUT });
    for number in 0..8 {
        let from = number & 1;
        // Its receiver takes all of it, and it begins at once.
        let message = Message::new(&mut rings, number, MESSAGE_CELLS * CELL_BYTES, 10 | from as u64);
        let mut message = message.expect("there is a slot");
        message.send(&mut rings, u64::MAX);
        let slot = rings[1 - from].receiving_slot(message.slot.expect("it has begun")).expect("it is there");
        let cells: Vec<u8> = (0..MESSAGE_CELLS).map(|k| slot.cell(k)).collect();
        assert!(cells.windows(2).all(|two| two[1] == two[0] + 1), "message {number}: {cells:?}");
        while message.sending.is_some() {
            message.receive(&mut rings, u64::MAX);
            message.send(&mut rings, u64::MAX);
        }
    }
}

/// A receive with less room than the message has ends in the middle of a cell, which its sender
/// goes on filling: nobody else writes there before the message is over.
#[test]
fn a_cell_in_which_a_receive_ends_stays_the_senders() {
    const BYTES: u64 = 4 * CELL_BYTES;
    for room in [CELL_BYTES + 5000, CELL_BYTES, BYTES] {
        let mut rings = pair();
        // Its receiver keeps cells for what it sends itself.
        rings[1].next_tag();
        let mut sent = vec![7; BYTES as usize];
        let mut sending =
            lend(&mut [&mut sent], Access::Read, |data| Sending::at_once(&mut rings[0], data, 0))
                .expect("there is a slot");
        sending.start(interval(BYTES));
        let slot = sending.slot().expect("it has one");
        let all = interval(room);
        let mut receiving = Receiving::start(&rings[1], slot, sending.tag, all, CopyOut::Cached).unwrap();
        let produced = if room == BYTES { BYTES } else { CELL_BYTES + 8192 };
        lend(&mut [&mut sent], Access::Read, |data| sending.step(&mut rings[0], data, produced)).unwrap();
        let mut got = vec![0; room as usize];
        let step = lend(&mut [&mut got], Access::Write, |data| receiving.step(&mut rings[1], data, u64::MAX));
        assert!(step.unwrap().done);
        // Of what is cut the last cell is still in flight, if it ends within.
        let read = room / CELL_BYTES;
        let line = rings[1].receiving_slot(slot).expect("it is there");
        let named: Vec<u8> = (0..read + u64::from(room != BYTES)).map(|k| line.cell(k)).collect();
        let (emptied, cut) = named.split_at(read as usize);
        assert!(emptied.iter().any(|cell| rings[1].own.contains(cell)), "some are kept");
        assert!(!cut.iter().any(|cell| rings[1].own.contains(cell)), "{room}");
        receiving.close(&rings[1]);
        sending.finish(&mut rings[0]);
        rings.iter_mut().for_each(PairRing::reap);
        assert!(cut.iter().all(|cell| rings[0].own.contains(cell)), "it is the sender's again");
        assert_eq!(owned(&rings).len(), CELLS as usize);
    }
}
