//! Simulated traffic: what streams choose where it is known what each way costs.

use super::heard::Heard;
use super::meter::Send;
use super::stream::Stream;
use super::ways::{Way, Ways};
use crate::mechanism::Model;
use crate::rendezvous::{Candidates, Choice, MechanismTag};
use crate::selection::Alternatives;

/// Numbers that are the same in each run (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal, with mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// What disturbs all messages, whatever their way.
#[derive(Clone, Debug)]
pub struct Disturbances {
    /// The deviation of each message's time, as a part of it.
    pub noise: f64,
    /// One of so many takes ten times as long; 0 for none.
    pub outlier_every: u32,
    /// What the first use of a way takes longer at each end; the second half of
    /// that, and so on.
    pub first_use_ns: f64,
    /// By so many times a way costs more where the other end takes another.
    pub apart: f64,
    /// What the machine's speed is multiplied by, at some time in ns.
    pub speed: fn(f64) -> f64,
}

impl Disturbances {
    pub const FEW: Self =
        Self { noise: 0.04, outlier_every: 100, first_use_ns: 0.0, apart: 1.0, speed: |_| 1.0 };
}

pub const BYTES: u64 = 65_536;

pub fn candidates(count: usize) -> Candidates {
    let choice = |at: usize| Choice { mechanism: MechanismTag(at as u32 + 1), model: Model::Get };
    (0..count).map(choice).collect()
}

pub fn stream_of(count: usize, is_first: bool) -> Stream {
    let candidates = candidates(count);
    let alternatives: Alternatives = (0..count).collect();
    Stream::new(&Ways { candidates: &candidates, alternatives, has_cells: false }, is_first)
}

/// The number of a way of [`stream_of`].
pub fn number(way: Way) -> usize {
    match way {
        Way::By(choice) => choice.mechanism.0 as usize - 1,
        Way::Cells => usize::MAX,
    }
}

/// What has passed in a simulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// The messages' times without disturbances ...
    pub cost_ns: f64,
    /// ... and those of the best way for each of them.
    pub best_ns: f64,
    /// Messages that went another way than the one before.
    pub turns: u32,
}

impl Passed {
    /// By which part more than the best it took.
    pub fn loss(&self) -> f64 {
        self.cost_ns / self.best_ns - 1.0
    }
}

/// Two processes that send to one another in turn.
pub struct PingPong {
    pub ends: [Stream; 2],
    ways: usize,
    pub now_ns: f64,
    pub random: Random,
    pub disturbances: Disturbances,
    last: [usize; 2],
    sent: [u32; 2],
    /// For how many messages an end need not be asked, while those of the other
    /// come by this way.
    rests: [(u32, Option<Way>); 2],
    uses: [[u32; 16]; 2],
    events: u64,
}

impl PingPong {
    pub fn new(ways: usize, seed: u64, disturbances: Disturbances) -> Self {
        let ends = [stream_of(ways, true), stream_of(ways, false)];
        Self {
            ends,
            ways,
            now_ns: 1.0,
            random: Random(seed),
            disturbances,
            last: [0; 2],
            sent: [0; 2],
            rests: [(0, None); 2],
            uses: [[0; 16]; 2],
            events: 0,
        }
    }

    /// So many round trips, in which each way costs so much, in ns. Only the
    /// first end chooses if `is_alone`; the other takes the first way.
    pub fn run(&mut self, messages: u32, costs: &[f64], is_alone: bool) -> Passed {
        let mut passed = Passed::default();
        let best = costs.iter().copied().fold(f64::INFINITY, f64::min);
        for _ in 0..messages {
            for end in 0..2 {
                let way = if end == 1 && is_alone { 0 } else { self.send(end) };
                let is_apart = way != self.last[1 - end];
                let cost_ns = costs[way] * if is_apart { self.disturbances.apart } else { 1.0 };
                if end == 0 || !is_alone {
                    passed.cost_ns += cost_ns;
                    passed.best_ns += best;
                    passed.turns += u32::from(way != self.last[end]);
                }
                self.last[end] = way;
                self.sent[end] += 1;
                let cold_ns =
                    self.disturbances.first_use_ns * 0.5_f64.powi(self.uses[end][way].min(60) as i32);
                self.uses[end][way] += 1;
                self.now_ns += (cost_ns + cold_ns) * self.factor();
                self.events += 1;
            }
        }
        passed
    }

    fn send(&mut self, end: usize) -> usize {
        let now_ns = self.now_ns as u64;
        let send = Send { now_ns, bytes: BYTES, events: self.events, under_way: 0 };
        let other = 1 - end;
        let way = Way::By(candidates(self.ways).as_slice()[self.last[other]]);
        let heard = Heard { way: (self.sent[other] > 0).then_some(way), count: self.sent[other] };
        let rest = &mut self.rests[end];
        if rest.0 > 0 && rest.1 == heard.way {
            rest.0 -= 1;
            return self.last[end];
        }
        let way = self.ends[end].send(&send, &heard);
        *rest = (self.ends[end].rest(), heard.way);
        number(way)
    }

    fn factor(&mut self) -> f64 {
        let Disturbances { noise, outlier_every, speed, .. } = self.disturbances;
        let is_outlier = outlier_every > 0 && self.random.unit() * f64::from(outlier_every) < 1.0;
        let outlier = if is_outlier { 10.0 } else { 1.0 };
        (1.0 + noise * self.random.normal()).max(0.2) * outlier * speed(self.now_ns)
    }
}
