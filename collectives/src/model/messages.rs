//! What goes through shared memory: slots and messages. The paper has no formulas
//! of them; these count what is copied.

use super::formulas::{Model, log_ceil};
use crate::algorithm::Kind;
use crate::algorithms::{is_swap_of, piece_bytes};
use crate::choice::CACHED_BYTES;

impl Model<'_> {
    /// What is copied into slots, all meet, and what is copied out of them.
    pub(super) fn slots_us(&self, kind: Kind, ranks: u32, bytes: u64) -> f64 {
        let others = u64::from(ranks - 1);
        let all = bytes.saturating_mul(others);
        // By the busiest rank: into its slot, out of others', and combined.
        let (posted, taken, combined) = match kind {
            Kind::Barrier => (0, 0, 0),
            Kind::Broadcast => (bytes, bytes, 0),
            Kind::Scatter => (all, bytes, 0),
            Kind::Gather | Kind::Allgather => (bytes, all, 0),
            Kind::Alltoall => (all, all, 0),
            Kind::ReduceScatter => (all, all, all),
            Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan => (bytes, all, all),
        };
        // With a root, and in the scans, not all have this to do at once.
        let busy = match kind {
            Kind::Gather | Kind::Reduce => 1,
            _ => ranks,
        };
        let work = self.own_copy_us(posted) + self.own_copy_us(taken) + self.combine_us(combined);
        self.shared_us(ranks) + work * self.parameters.sharing(busy)
    }

    /// A message, where messages were measured.
    fn message_us(&self, bytes: u64) -> Option<f64> {
        let cost = self.parameters.message?;
        Some(cost.start_us + bytes as f64 * cost.byte_ns / 1e3)
    }

    /// Piece by piece through slots, where messages were measured, whose bytes go the
    /// same way: what the busiest rank copies, and the first piece, for which the others
    /// wait. Nothing beyond what caches hold.
    pub(super) fn pipelined_us(&self, kind: Kind, piece_kib: u32, ranks: u32, bytes: u64) -> Option<f64> {
        let byte_us = self.parameters.message?.byte_ns / 1e3;
        let through = |bytes: u64| bytes as f64 * byte_us;
        let all = bytes.saturating_mul(u64::from(ranks - 1));
        let slot_bytes = crate::create::slot_bytes(ranks);
        let piece_bytes = piece_bytes(kind, ranks, slot_bytes, u64::from(piece_kib) << 10);
        let first = through(bytes.min(piece_bytes));
        let pieces = bytes.div_ceil(piece_bytes) as f64;
        // Each is told by a line of its own.
        let told = |partners: u32| pieces * f64::from(partners) * self.parameters.line_us;
        let busy = match kind {
            Kind::Broadcast => first + (through(bytes) + told(1)) * self.parameters.sharing(ranks),
            Kind::Scatter | Kind::Gather => first + through(all) + told(ranks - 1),
            Kind::Allgather | Kind::Alltoall => {
                let copied = through(all) + self.own_copy_us(bytes) + told(ranks - 1);
                first + copied * self.parameters.sharing(ranks)
            }
            _ => return None,
        };
        (bytes <= CACHED_BYTES).then(|| self.shared_us(ranks) + busy)
    }

    /// What two ranks hand each other in cells, where messages were measured, whose bytes
    /// go the same way. Nothing where it is not for that.
    pub(super) fn swap_us(&self, kind: Kind, ranks: u32, bytes: u64) -> Option<f64> {
        let through_us = bytes as f64 * self.parameters.message?.byte_ns / 1e3;
        let copied_us = (through_us + self.own_copy_us(bytes)) * self.parameters.sharing(ranks);
        is_swap_of(kind, ranks, bytes).then(|| self.shared_us(ranks) + copied_us)
    }

    /// The usual algorithms by messages alone (Thakur et al., 2005): binomial trees
    /// where there is a root, of which the longest way is counted; a ring; pairwise
    /// exchange; recursive doubling of reductions.
    pub(super) fn messages_us(&self, kind: Kind, ranks: u32, bytes: u64) -> Option<f64> {
        let steps = f64::from(log_ceil(2, ranks));
        let others = f64::from(ranks - 1);
        let sharing = self.parameters.sharing(ranks);
        let (start, whole) = (self.message_us(0)?, self.message_us(bytes)?);
        // What a subtree needs goes through its first rank.
        let tree = start * steps + others * (whole - start);
        Some(match kind {
            Kind::Barrier => steps * start * sharing,
            Kind::Broadcast => steps * whole,
            Kind::Scatter | Kind::Gather => tree,
            Kind::Allgather | Kind::Alltoall => others * whole * sharing,
            Kind::Reduce => steps * (whole + self.combine_us(bytes)),
            Kind::Allreduce | Kind::Scan | Kind::Exscan => steps * (whole + self.combine_us(bytes)) * sharing,
            Kind::ReduceScatter => others * (whole + self.combine_us(bytes)) * sharing,
        })
    }

    /// In each step a message to one rank and one from another.
    pub(super) fn pairwise_messages_us(&self, ranks: u32, bytes: u64) -> Option<f64> {
        self.messages_us(Kind::Alltoall, ranks, bytes)
    }

    /// Bruck's, by messages.
    pub(super) fn bruck_messages_us(&self, kind: Kind, ranks: u32, bytes: u64) -> Option<f64> {
        let steps = f64::from(log_ceil(2, ranks));
        let (start, whole) = (self.message_us(0)?, self.message_us(bytes)?);
        let moved = match kind {
            Kind::Alltoall => steps * f64::from(ranks / 2),
            _ => f64::from(ranks - 1),
        };
        let copied = match kind {
            Kind::Alltoall => 2.0 * moved + 2.0 * f64::from(ranks),
            _ => moved,
        };
        let time = start * steps + moved * (whole - start) + copied * self.own_copy_us(bytes);
        Some(time * self.parameters.sharing(ranks))
    }
}
