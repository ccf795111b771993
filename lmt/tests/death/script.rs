//! What happens in a round, the same for all processes, drawn from its number;
//! and the bytes of messages.

use std::time::Duration;

use lmt::mechanism::Model;

use super::page::Phase;

/// Tags of messages.
pub mod tag {
    /// Third rank to survivor; the next tag ends the exchange.
    pub const THIRD: u64 = 0x100;
    pub const THIRD_END: u64 = 0x101;
    /// Survivor to third rank.
    pub const REPLY: u64 = 0x200;
    /// The message whose phases are counted.
    pub const DATA: u64 = 0x300;
    /// What the other side never receives.
    pub const NEVER: u64 = 0x400;
    /// An eager message of a victim that nobody knows.
    pub const STRANGER: u64 = 0x500;
    /// A flood that nobody receives.
    pub const FLOOD: u64 = 0x600;
    /// A stream of short messages that the survivor receives.
    pub const STREAM: u64 = 0x700;
}

/// When the survivor begins its operations with the victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// Before the victim's process is there.
    AtOnce,
    /// When it listens: both connect, as it comes.
    Listening,
    /// When the victim has connected.
    Connected,
    /// When the victim is dead.
    Dead,
    /// Never: the victim connects and is not known.
    Never,
}

/// What the victim does beside the counted messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Plain,
    /// It stops making progress, so that what is sent to it blocks.
    Deaf,
    /// It sends more than the survivor takes, so that its own sends block.
    Flooding,
    /// It sends short messages as fast as it can, so that it often dies in the
    /// middle of writing a cell.
    Streaming,
}

/// How the victim dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kill {
    /// By another process, so long after it listens.
    Outside(Duration),
    /// By its own hand at the nth mark of a phase.
    Inside(Phase, u64),
}

/// Most often: the two ends depend on each other more than in the other models.
const BOTH: &[Model] = &[Model::Both];

#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub victim_sends: bool,
    /// Whether the victim connects by itself, or waits for the survivor.
    pub victim_connects: bool,
    pub begin: Begin,
    pub manner: Manner,
    pub mechanism: &'static str,
    /// The model of that mechanism, if the victim sends: the receiver reads, the
    /// sender writes, or both do.
    pub models: &'static [Model],
    pub kill: Kill,
    pub data_bytes: usize,
    /// Whether the victim's quota lets it receive a message in one step.
    pub is_hasty: bool,
}

impl Script {
    /// Whether both ends copy what the victim sends.
    pub fn is_sent_by_both(&self) -> bool {
        self.victim_sends && self.mechanism == "cma" && self.models == BOTH
    }

    pub fn of(seed: u64, round: usize) -> Self {
        let mut random = Random(seed ^ (round as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let kill = match Phase::COUNTED.get(round % 10) {
            Some(&phase) => Kill::Inside(phase, 1 + random.below(max_marks(phase))),
            None => Kill::Outside(Duration::from_nanos(random.below(6_000_000))),
        };
        let inside = matches!(kill, Kill::Inside(..));
        let mut begin = match random.below(10) {
            0 | 1 => Begin::AtOnce,
            2..=4 => Begin::Listening,
            5 | 6 => Begin::Connected,
            7 => Begin::Never,
            8 if !inside => Begin::Dead,
            _ => Begin::Listening,
        };
        // Nobody receives from a stranger, so its message is never copied.
        if begin == Begin::Never && matches!(kill, Kill::Inside(Phase::Chunk | Phase::Finish, _)) {
            begin = Begin::Connected;
        }
        let known = matches!(begin, Begin::AtOnce | Begin::Listening);
        let manner = match random.below(8) {
            0 if !inside => Manner::Deaf,
            1 if !inside => Manner::Flooding,
            2..=4 if !inside && !matches!(begin, Begin::Never | Begin::Dead) => Manner::Streaming,
            _ => Manner::Plain,
        };
        let mut script = Self {
            victim_sends: begin == Begin::Never || random.below(2) == 0,
            victim_connects: !known || random.below(2) == 0,
            begin,
            manner,
            mechanism: if random.below(2) == 0 { "cma" } else { "shm" },
            models: [&[Model::Get][..], &[Model::Put], BOTH, BOTH][random.below(4) as usize],
            kill,
            data_bytes: 65_536 + random.below(1 << 19) as usize,
            is_hasty: random.below(4) == 0,
        };
        // A sender can help only when its peer's lines have come; some must live so long.
        if let Kill::Outside(after) = script.kill
            && script.is_sent_by_both()
        {
            script.kill = Kill::Outside(after * 5);
        }
        script
    }
}

/// How many marks each phase can be relied on to have.
fn max_marks(phase: Phase) -> u64 {
    match phase {
        Phase::Connect => 3,
        Phase::Handshake => 4,
        Phase::Rts => 6,
        Phase::Chunk => 40,
        _ => 5,
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The bytes of the `number`th message of a stream.
pub fn content(stream: u64, number: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    fill(stream, number, &mut data);
    data
}

fn fill(stream: u64, number: u64, data: &mut [u8]) {
    let mut random = Random(stream.rotate_left(32) ^ number);
    for chunk in data.chunks_mut(8) {
        chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]);
    }
}

/// Whether these are the bytes of that message.
pub fn is_content(stream: u64, number: u64, data: &[u8]) -> bool {
    let mut random = Random(stream.rotate_left(32) ^ number);
    data.chunks(8).all(|chunk| *chunk == random.next().to_le_bytes()[..chunk.len()])
}

/// Lengths of the exchange with the third rank: 0 to 300 KiB.
pub fn exchange_bytes(stream: u64, number: u64) -> usize {
    let mut random = Random(stream.wrapping_mul(31) ^ number.wrapping_mul(0x5851_f42d_4c95_7f2d));
    match random.below(4) {
        0 => random.below(64) as usize,
        1 => random.below(8 << 10) as usize,
        _ => random.below((300 << 10) + 1) as usize,
    }
}
