//! Both sides with everything that can happen between them, at random: packets
//! and pipes that arrive late, messages matched in any order, sides that give
//! up at any moment.

use std::collections::VecDeque;

use super::*;

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[derive(Clone, Copy)]
enum Packet {
    Cts(usize),
    Demote(usize),
    Done(usize),
}

/// One message, as the rendezvous protocol would drive it.
struct Course {
    bytes: Vec<u8>,
    found: Vec<u8>,
    cookie: Cookie,
    out: Option<PipeTransfer>,
    into: Option<PipeTransfer>,
    agreed: Interval,
    out_active: bool,
    into_active: bool,
    received: u64,
    /// Whether a side of it was told to give up.
    spared: bool,
    whole: bool,
    /// Both sides have heard of its end.
    over: bool,
}

struct World<G: PipeWrite> {
    pair: Pair<G>,
    random: Random,
    courses: Vec<Course>,
    to_sender: VecDeque<Packet>,
    /// Words that the sender's side has failed.
    to_receiver: VecDeque<usize>,
    oob_messages: VecDeque<Hello>,
    loses_descriptors: bool,
}

fn value(message: usize, at: usize) -> u8 {
    (at * 31 + (at >> 8) * 7 + message * 101) as u8
}

impl<G: PipeWrite> World<G> {
    fn new(seed: u64, loses_descriptors: bool) -> Self {
        let mut world = Self {
            pair: Pair::new(),
            random: Random(seed),
            courses: Vec::new(),
            to_sender: VecDeque::new(),
            to_receiver: VecDeque::new(),
            oob_messages: VecDeque::new(),
            loses_descriptors,
        };
        for message in 0..8 {
            let length = 1 + world.random.below(60_000);
            let mut bytes: Vec<u8> = (0..length).map(|at| value(message, at)).collect();
            let plan = Plan::new(Role::Sender, Model::Cooperative, whole(length));
            let data = lend(&mut bytes, Access::Read);
            let (out, cookie) = world.pair.sender.prepare(&mut world.pair.to, &plan, &data).unwrap();
            let agreed =
                whole(if world.random.below(4) == 0 { 1 + world.random.below(length) } else { length });
            world.courses.push(Course {
                found: vec![0; length],
                bytes,
                cookie,
                out: Some(out),
                into: None,
                agreed,
                out_active: false,
                into_active: false,
                received: 0,
                spared: true,
                whole: false,
                over: false,
            });
        }
        world
    }

    /// Takes what the last call has for the peer, as the core does.
    fn collect(&mut self) {
        while let Some(mut oob_message) = self.pair.sender.oob_message(&mut self.pair.to) {
            if self.loses_descriptors && self.random.below(2) == 0 {
                oob_message.descriptors.clear();
            }
            self.oob_messages.push_back(oob_message);
        }
    }

    fn matched(&mut self, m: usize) {
        let course = &mut self.courses[m];
        if course.into.is_some() || course.into_active || course.over {
            return;
        }
        let plan = Plan::new(Role::Receiver, Model::Cooperative, course.agreed);
        let data = lend(&mut course.found, Access::Write);
        let (mut into, _) = self.pair.receiver.prepare(&mut self.pair.from, &plan, &data).unwrap();
        self.to_sender.push_back(Packet::Cts(m));
        self.pair.receiver.start(&mut self.pair.from, &mut into, &course.cookie, course.agreed).unwrap();
        course.into = Some(into);
        course.into_active = true;
    }

    /// The receiver's side is over, with this word to the sender.
    fn end_receive(&mut self, m: usize, packet: Packet) {
        if let Some(into) = self.courses[m].into.take() {
            self.pair.receiver.finish(&mut self.pair.from, into);
            self.courses[m].into_active = false;
            // Never matched again.
            self.courses[m].over = true;
            self.to_sender.push_back(packet);
        }
    }

    fn end_send(&mut self, m: usize) {
        if let Some(out) = self.courses[m].out.take() {
            self.pair.sender.finish(&mut self.pair.to, out);
            self.courses[m].out_active = false;
            self.collect();
        }
    }

    fn step_receiver(&mut self, m: usize) {
        let quota = 1 + self.random.below(30_000) as u64;
        let course = &mut self.courses[m];
        let Some(into) = course.into.as_mut().filter(|_| course.into_active) else { return };
        let mut data = lend(&mut course.found, Access::Write);
        match self.pair.receiver.step(&mut self.pair.from, into, &mut data, quota) {
            Ok(step) => {
                course.received += step.bytes;
                if step.done {
                    course.whole = true;
                    self.end_receive(m, Packet::Done(m));
                }
            }
            Err(Fault::Demote { .. }) => self.end_receive(m, Packet::Demote(m)),
            Err(fault) => panic!("{fault}"),
        }
    }

    fn step_sender(&mut self, m: usize) {
        let quota = 1 + self.random.below(30_000) as u64;
        let course = &mut self.courses[m];
        let Some(out) = course.out.as_mut().filter(|_| course.out_active) else { return };
        let mut data = lend(&mut course.bytes, Access::Read);
        let step = self.pair.sender.step(&mut self.pair.to, out, &mut data, quota).unwrap();
        course.out_active = !step.done;
        self.collect();
    }

    fn deliver_to_sender(&mut self) {
        match self.to_sender.pop_front() {
            Some(Packet::Cts(m)) => {
                let course = &mut self.courses[m];
                let agreed = course.agreed;
                if let Some(out) = course.out.as_mut() {
                    self.pair.sender.start(&mut self.pair.to, out, &Cookie::empty(), agreed).unwrap();
                    course.out_active = true;
                }
            }
            Some(Packet::Demote(m) | Packet::Done(m)) => {
                self.end_send(m);
                // The application, or the next mechanism, goes on.
                self.courses[m].bytes.fill(0xee);
            }
            None => {}
        }
    }

    fn happen(&mut self) {
        let m = self.random.below(self.courses.len());
        match self.random.below(64) {
            0..4 => self.matched(m),
            4..12 => self.deliver_to_sender(),
            12..16 => {
                if let Some(oob_message) = self.oob_messages.pop_front() {
                    self.pair.receiver.take_oob_message(&mut self.pair.from, oob_message);
                }
            }
            16..20 => {
                if let Some(m) = self.to_receiver.pop_front() {
                    self.end_receive(m, Packet::Demote(m));
                }
            }
            20..40 => self.step_sender(m),
            40..62 => self.step_receiver(m),
            // One side gives up, now and then.
            62 if self.random.below(3) == 0 && self.courses[m].into_active => {
                self.courses[m].spared = false;
                self.end_receive(m, Packet::Demote(m));
            }
            63 if self.random.below(3) == 0 && self.courses[m].out_active => {
                self.courses[m].spared = false;
                self.end_send(m);
                self.to_receiver.push_back(m);
            }
            _ => {}
        }
    }

    fn run(mut self, seed: u64) {
        self.collect();
        let mut turns = 0;
        while !self.courses.iter().all(|course| course.over && course.out.is_none()) {
            self.happen();
            turns += 1;
            assert!(turns < 1_000_000, "seed {seed}: a message stands still");
        }
        for (m, course) in self.courses.iter().enumerate() {
            let received = course.received as usize;
            let right = (0..course.found.len()).all(|at| {
                let expected = if at < received { value(m, at) } else { 0 };
                course.found[at] == expected
            });
            assert!(right, "seed {seed}: message {m} has a wrong byte among its first {received}");
            assert!(!course.whole || course.received == course.agreed.end, "seed {seed}");
            assert!(
                course.whole || !course.spared || self.loses_descriptors,
                "seed {seed}: message {m} failed with another one",
            );
        }
    }
}

fn run_all<G: PipeWrite>() {
    for seed in 0..300 {
        World::<G>::new(seed, false).run(seed);
        World::<G>::new(seed, true).run(seed);
    }
}

#[test]
fn by_vmsplice() {
    run_all::<ByVmsplice>();
}

#[test]
fn by_writev() {
    run_all::<ByWritev>();
}
