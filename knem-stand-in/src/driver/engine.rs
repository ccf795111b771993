//! What of a copy is made when success is told, and by whom: the processor, the
//! DMA engine at once, or the engine with a later copy.
//!
//! The driver cuts a copy where a page or a segment ends on either side. Pieces
//! of up to `dmamin` bytes it copies by the processor, at once; the others it
//! gives to the engine, which it then tells to make them. With several segments
//! on a side it forgets to tell it where the segments' last common part has no
//! piece for the engine.

use super::Driver;
use crate::abi::{self, CopyTail};
use crate::memory::{Copy, Part, Place};
use crate::options::Mutant;

/// What a copy does.
#[derive(Debug)]
pub struct Made {
    /// What others have left to the engine, which comes with this copy.
    pub before: Vec<Copy>,
    /// The parts that are there when success is told.
    pub parts: Vec<Part>,
}

/// A copy's pieces.
#[derive(Debug, Default)]
struct Pieces {
    small: Vec<Part>,
    large: Vec<Part>,
    last: Option<Part>,
    /// Whether the last common part of two segments has a large one.
    ends_large: bool,
}

impl Pieces {
    fn of(from: &Place, to: &Place, bytes: u64, small_bytes: u64) -> Self {
        let (mut pieces, mut at) = (Self::default(), 0);
        while at < bytes {
            let ((from_segment, from_page), (to_segment, to_page)) = (from.pieces_at(at), to.pieces_at(at));
            let segment = from_segment.min(to_segment);
            let piece = (at, segment.min(from_page).min(to_page).min(bytes - at));
            // Both places are as long as the copy.
            debug_assert!(piece.1 > 0);
            if piece.1 <= small_bytes {
                pieces.small.push(piece);
            } else {
                pieces.large.push(piece);
                pieces.ends_large = true;
            }
            pieces.last = Some(piece);
            at += piece.1;
            if piece.1 == segment && at < bytes {
                pieces.ends_large = false;
            }
        }
        pieces
    }
}

impl Driver {
    /// What a copy does, and what it leaves to later ones.
    pub(super) fn made(&mut self, from: &Place, to: &Place, bytes: u64, tail: &CopyTail) -> Made {
        let whole = Made { before: Vec::new(), parts: vec![(0, bytes)] };
        let loses_without = self.options.dma && self.options.is(Mutant::TailLostWithoutDma);
        let by_engine = self.options.dma && tail.flags & abi::FLAGS_ENGINE != 0;
        if !by_engine && !loses_without {
            return whole;
        }
        let pieces = Pieces::of(from, to, bytes, self.parameter.bytes());
        if loses_without {
            let last = pieces.last.filter(|last| pieces.small.last() == Some(last));
            return Made { parts: vec![(0, last.map_or(bytes, |last| last.0))], ..whole };
        }
        let scattered = [from, to].iter().any(|place| place.memory.segments().len() > 1);
        let always = self.options.is(Mutant::DmaAlwaysLate);
        let for_good = self.options.is(Mutant::DmaLosesPages);
        let may_lose = self.options.loses_small_tails || always || for_good;
        if scattered && may_lose && (!pieces.ends_large || always) {
            if !pieces.large.is_empty() && !for_good {
                let (from, to) = (from.unpinned(), to.unpinned());
                self.not_issued.push(Copy { before: Vec::new(), from, to, parts: pieces.large });
            }
            return Made { parts: pieces.small, ..whole };
        }
        let issues = !pieces.large.is_empty();
        Made { before: if issues { std::mem::take(&mut self.not_issued) } else { Vec::new() }, ..whole }
    }
}
