//! The options of `lmt explain`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lmt::mechanism::SharedEnds;
use lmt::{Hints, Reuse, Warmth};
use lmt_collectives::{Kind, MAX_RANKS};

use crate::model::parse_kind;
use crate::options::{SizeList, parse_cpus, parse_size_list};

/// The longest message of the table, as a power of two: 16 MiB.
const TABLE_LAST_SHIFT: u32 = 24;

/// `lmt explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Message lengths: 1MiB, 1KiB,64KiB or a range of powers of two, 1..16MiB.
    #[arg(long, value_name = "LIST", value_parser = parse_size_list, required_unless_present = "table")]
    pub bytes: Option<SizeList>,
    /// CPUs of the sender as 0,2 or 0-3 [default: all that this process may use].
    #[arg(long, value_name = "CPUS", value_parser = parse_cpu_list)]
    pub from: Option<CpuList>,
    /// CPUs of the receiver.
    #[arg(long, value_name = "CPUS", value_parser = parse_cpu_list)]
    pub to: Option<CpuList>,
    /// Whether the message is one piece of the sender's memory.
    #[arg(long, value_enum, default_value_t = Segments::One)]
    pub segments: Segments,
    /// Which ends' memory is in lmt's shared buffers.
    #[arg(long, value_enum, default_value_t = Shared::None, value_name = "ENDS")]
    pub shared: Shared,
    /// What the caller tells of the sender's cache.
    #[arg(long, value_enum)]
    pub sender: Option<Sender>,
    /// What the caller tells of the buffer's future.
    #[arg(long, value_enum)]
    pub reuse: Option<Future>,
    /// How many messages of the sender are being read already.
    #[arg(long, default_value = "0", value_name = "N")]
    pub readers: u32,
    /// How many processes the sender knows, itself among them; where the further ones run is not known.
    #[arg(long, default_value = "2", value_name = "N", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub processes: u32,
    /// A file of configuration, in place of those that LMT_CONFIG names.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Mechanisms that are taken to work, whatever this machine says: shm,cma.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub assume: Vec<String>,
    /// A collective operation in place of a message: which algorithm it takes. bcast, scatter, gather,
    /// allgather, alltoall, reduce, allreduce, reduce_scatter, scan, exscan or barrier; --bytes is the
    /// message, one rank's block or the vector.
    #[arg(long, value_name = "OPERATION", value_parser = parse_kind, requires = "ranks",
          conflicts_with_all = ["from", "to", "segments", "shared", "sender", "reuse", "readers", "processes", "assume"])]
    pub collective: Option<Kind>,
    /// With --collective: the ranks of the group.
    #[arg(short = 'n', long, value_name = "N", requires = "collective", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RANKS)))]
    pub ranks: Option<u32>,
    /// With --collective: some rank may not reach into another's memory.
    #[arg(long, requires = "collective")]
    pub denied: bool,
    /// One line for each length [default lengths: the powers of two up to 16 MiB].
    #[arg(long)]
    pub table: bool,
    /// How it is written.
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub format: ExplainFormat,
}

/// Which ends' memory is in shared buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shared {
    /// Neither.
    None,
    /// The sender's.
    Sender,
    /// The receiver's, which the sender has learnt.
    Receiver,
    /// Both.
    Both,
}

/// CPUs by the kernel's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

/// Whether a message is one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Segments {
    /// It is.
    One,
    /// It is several.
    Many,
}

/// Whether the message is in the sender's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sender {
    /// It has just been written.
    Warm,
    /// It was written long ago.
    Cold,
}

/// Whether the buffer is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Future {
    /// It is.
    Again,
    /// It is not.
    Once,
}

/// How explanations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Lines for people.
    Text,
    /// One JSON object.
    Json,
}

impl ExplainArgs {
    /// The lengths asked for.
    pub fn lengths(&self) -> Vec<u64> {
        match &self.bytes {
            Some(SizeList(lengths)) => lengths.clone(),
            None => (0..=TABLE_LAST_SHIFT).map(|shift| 1 << shift).collect(),
        }
    }

    /// Whether the message is one segment.
    pub fn contiguous(&self) -> bool {
        self.segments == Segments::One
    }

    /// Which ends' memory is in shared buffers.
    pub fn shared_ends(&self) -> SharedEnds {
        SharedEnds {
            sender: matches!(self.shared, Shared::Sender | Shared::Both),
            receiver: matches!(self.shared, Shared::Receiver | Shared::Both),
        }
    }

    /// What the caller tells.
    pub fn hints(&self) -> Hints {
        let warmth = match self.sender {
            None => Warmth::Unknown,
            Some(Sender::Warm) => Warmth::Warm,
            Some(Sender::Cold) => Warmth::Cold,
        };
        let reuse = match self.reuse {
            None => Reuse::Unknown,
            Some(Future::Again) => Reuse::Again,
            Some(Future::Once) => Reuse::Once,
        };
        Hints { warmth, reuse }
    }
}

fn parse_cpu_list(text: &str) -> Result<CpuList, String> {
    parse_cpus(text).map(CpuList).ok_or_else(|| format!("'{text}' is no list of CPUs such as 0,2 or 0-3"))
}
