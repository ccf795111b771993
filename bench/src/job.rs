//! What a group of ranks is asked to measure, and what it answers.

use serde::{Deserialize, Serialize};

use crate::apps::job::Outcome;
use crate::memory::Memory;
use crate::patterns::Pattern;

/// One benchmark run: data, handed to every rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What the ranks do.
    pub pattern: Pattern,
    /// The mechanisms that take turns in it; none for the machine's limits.
    pub mechanisms: Vec<String>,
    /// Message sizes in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Processes in the group.
    pub ranks: u32,
    /// Iterations of each repetition; chosen by time when absent.
    pub iterations: Option<u64>,
    /// Measurements of each size and mechanism.
    pub repetitions: u32,
    /// Whether each message is written as a whole before it is sent and read as a whole after it was
    /// received, inside the timed part; else it is never modified.
    pub in_use: bool,
    /// What the messages lie in.
    #[serde(default)]
    pub buffers: Memory,
    /// Bytes of each buffer through which the messages rotate; absent when
    /// the same bytes are used again and again.
    pub rotation_bytes: Option<u64>,
    /// Whether every message of an extra, untimed pass is checked.
    pub verify: bool,
    /// The CPU of each rank; empty when they are not pinned.
    pub cpus: Vec<usize>,
    /// Whether the machine's limits are measured in between.
    pub limits: bool,
    /// Bytes that are read again and again around a transfer, where that is
    /// what is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// What differs for single mechanisms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub particulars: Vec<Particular>,
}

/// What one of a job's mechanisms has of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Particular {
    /// The mechanism, as the job names it.
    pub mechanism: String,
    /// What its messages lie in.
    pub buffers: Memory,
    /// The shortest message it takes part with, in bytes.
    pub least_bytes: u64,
    /// The longest, in bytes.
    pub most_bytes: u64,
}

impl Job {
    fn particular(&self, mechanism: &str) -> Option<&Particular> {
        self.particulars.iter().find(|particular| particular.mechanism == mechanism)
    }

    /// What the messages of a mechanism lie in.
    pub fn buffers_of(&self, mechanism: &str) -> Memory {
        self.particular(mechanism).map_or(self.buffers, |particular| particular.buffers)
    }

    /// Whether a mechanism takes part at a size.
    pub fn has_turn(&self, mechanism: &str, bytes: u64) -> bool {
        self.particular(mechanism)
            .is_none_or(|particular| (particular.least_bytes..=particular.most_bytes).contains(&bytes))
    }

    /// Every kind of memory in which messages lie: first that of most.
    pub fn kinds_of_memory(&self) -> Vec<Memory> {
        let mut kinds = vec![self.buffers];
        for particular in &self.particulars {
            if !kinds.contains(&particular.buffers) {
                kinds.push(particular.buffers);
            }
        }
        kinds
    }

    /// Bytes of the two buffers of one rank together, in one kind of memory.
    pub fn buffer_bytes(&self) -> u64 {
        let largest = self.sizes.iter().map(|&bytes| {
            let window = self.pattern.window(bytes, self.ranks) as u64;
            stride_bytes(bytes).saturating_mul(window)
        });
        let one = largest.max().unwrap_or(0).max(self.rotation_bytes.unwrap_or(0));
        one.saturating_mul(2)
    }
}

/// Distance of two messages in a buffer: whole cache lines, so that no line
/// belongs to two of them.
pub fn stride_bytes(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(64)
}

/// How near a mechanism comes to one bare method, in the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The bare method.
    pub method: String,
    /// The bare method's time as percent of the mechanism's: 100 is as fast,
    /// more is faster. The median over the repetitions' pairs.
    pub percent: f64,
}

/// One line of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The pattern's name; `limits` for a bare method.
    pub pattern: String,
    /// The mechanism or the bare method.
    pub mechanism: String,
    /// Processes in the group.
    pub ranks: u32,
    /// Message size.
    pub bytes: u64,
    /// Iterations in each repetition.
    pub iterations: u64,
    /// Time as the pattern defines it, median over the repetitions.
    pub usec_median: f64,
    /// The fastest repetition.
    pub usec_min: f64,
    /// The slowest repetition.
    pub usec_max: f64,
    /// The quartiles; absent where too few repetitions were made to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usec_quartiles: Option<(f64, f64)>,
    /// Throughput at the median; absent where no bytes are moved.
    pub mb_per_s: Option<f64>,
    /// How often it was measured.
    pub repetitions: u32,
    /// Messages whose every byte was checked.
    pub verified_messages: u64,
    /// How much of what rank 0 received its senders copied, in percent, where
    /// both ends copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_percent: Option<f64>,
    /// Bytes of it that the senders copied, in all repetitions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_bytes: Option<u64>,
    /// The rest of them, which rank 0 copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_bytes: Option<u64>,
    /// What its messages went by in the timed repetitions, as rank 0 counted them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathCount>,
    /// Against the bare methods, where they were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// What is measured besides the time of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// What a row has besides, in patterns that have figures of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// Which of the pattern's cases: the side or the kind of memory.
    pub case: String,
    /// Regions that were declared at once, where there are any.
    pub regions: Option<u64>,
    /// Who ran where, as seen after the repetitions.
    pub placement: String,
    /// In the order of the pattern's definition.
    pub figures: Vec<Figure>,
}

/// One figure over the repetitions. A ratio is the median of the repetitions'
/// ratios, not the ratio of medians.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name in the pattern's definition.
    pub name: String,
    /// The median; absent where it cannot be measured.
    pub median: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The most.
    pub max: Option<f64>,
}

/// The pattern name in rows that hold a bare method.
pub const LIMITS: &str = "limits";

/// What a rank tells the command while it works, one JSON line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// What the others need to reach this rank.
    Card(RankCard),
    /// So many of all repetitions are done.
    Progress {
        /// Done so far.
        done: u64,
        /// All there are.
        total: u64,
    },
    /// Something worth a line on standard error.
    Note(String),
    /// The rows of one size.
    Rows(Vec<Row>),
    /// The rank has its memory, and all know each other: it can take turns.
    Ready {
        /// The bare methods that work here.
        bare: Vec<String>,
    },
    /// A turn is over.
    Timed {
        /// What it took, where this rank's clock counts.
        seconds: f64,
    },
    /// Messages that have gone each way so far, from rank 0.
    Ways(Vec<PathCount>),
    /// Messages whose every byte was checked, from rank 0.
    Verified(u64),
    /// A run of an application has ended, from rank 0.
    Outcome(Outcome),
    /// This rank has nothing left to do.
    Done,
    /// It cannot go on; one sentence.
    Failed(String),
    /// A mechanism has failed, so it cannot go on with that one.
    MechanismFailed {
        /// As the job names it.
        name: String,
        /// What it said.
        sentence: String,
    },
}

/// Messages that one rank has sent and received by one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCount {
    /// The way: cells, or a mechanism.
    pub way: String,
    /// How many.
    pub messages: u64,
    /// Their lengths together.
    pub bytes: u64,
}

impl PathCount {
    /// What messages have gone by since `before`.
    pub fn since(before: &[Self], after: Vec<Self>) -> impl Iterator<Item = Self> {
        after.into_iter().map(|after| {
            let known = before.iter().find(|known| known.way == after.way);
            let (messages, bytes) = known.map_or((0, 0), |known| (known.messages, known.bytes));
            Self { messages: after.messages - messages, bytes: after.bytes - bytes, ..after }
        })
    }

    /// Adds what was counted elsewhere to the same way in a list.
    pub fn add_to(self, ways: &mut Vec<Self>) {
        match ways.iter_mut().find(|known| known.way == self.way) {
            Some(known) => {
                known.messages += self.messages;
                known.bytes += self.bytes;
            }
            None => ways.push(self),
        }
    }
}

/// How the other ranks reach one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankCard {
    /// One address for each mechanism of the job, in its order.
    pub addresses: Vec<Vec<u8>>,
    /// Where the memory of the bare methods is; from rank 0, when asked for.
    pub limits: Option<String>,
    /// Where the two ends of the bell are; from rank 0, where one is needed.
    pub doorbell: Option<[String; 2]>,
}
