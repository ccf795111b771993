//! What a process sends again, unchanged: by what such a message is known, when it is worth
//! while to keep what it said, and where the cores have to be for that.
//!
//! Memory that two processes share and that says already what a message says need not be
//! written again. Its lines are in the caches of both, who only read them, and none crosses.
//! That costs more than other ways where a message has changed, for then lines that both have
//! read are to be taken from the other before they are written. So it is done for messages
//! that came often without a change.
#![forbid(unsafe_code)]

mod hop;

pub use hop::Hop;

const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a message is known by: its length and some of its first words, mixed. Two that have
/// the same may still differ: what is not known to be the same is compared.
///
/// ```
/// use lmt_core::again::Mark;
/// let mut message = [7u8; 4096];
/// let mark = Mark::of(4096, &message);
/// assert_eq!(Mark::of(4096, &message), mark);
/// message[0] = 8;
/// assert_ne!(Mark::of(4096, &message), mark);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark(u64);

impl Mark {
    /// Where the words begin that are looked at: in the lines that are copied first.
    const WORDS: [usize; 4] = [0, 72, 144, 216];
    /// So many of a message's first bytes are to be there.
    pub const BYTES: usize = Self::WORDS[Self::WORDS.len() - 1] + size_of::<u64>();

    /// That of a message of so many bytes that begins with these; `None` if they are too few.
    #[inline]
    pub fn of(bytes: u64, first: &[u8]) -> Option<Self> {
        let first = first.first_chunk::<{ Self::BYTES }>()?;
        let mut mixed = bytes.wrapping_mul(MIX);
        for (number, at) in Self::WORDS.into_iter().enumerate() {
            let word = u64::from_le_bytes(*first[at..].first_chunk::<8>()?);
            // An odd factor, so that no word is lost, and another turn for each of them.
            mixed ^= word.wrapping_mul(MIX).rotate_left(number as u32 * 13);
        }
        Some(Self(mixed))
    }
}

/// A message is kept the so many-th time that it comes, at first.
const FIRST_WANTED: u32 = 3;
/// And so often at most, where that was in vain.
const MOST_WANTED: u32 = 1 << 12;
/// It was worth it if it was found so often.
const WORTH: u32 = 8;
/// It has changed if more than one byte of so many was written.
const CHANGED_PART: u64 = 4;

/// How often a message is to come before it is kept: ever later where that was in vain.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    wanted: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { wanted: FIRST_WANTED }
    }
}

impl Patience {
    /// One that was kept and found so often is kept no more.
    pub fn lost(&mut self, found: u32) {
        if found < WORTH {
            self.wanted = (self.wanted * 4).min(MOST_WANTED);
        }
    }

    /// One was found for the so many-th time.
    #[inline]
    pub fn found(&mut self, found: u32) {
        if found == WORTH {
            self.wanted = FIRST_WANTED;
        }
    }
}

/// What is known of one message: how often it came, and was found where it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    came: u32,
    found: u32,
    patience: Patience,
}

impl Record {
    /// Of one that has come for the first time.
    pub fn new(patience: Patience) -> Self {
        Self { came: 1, found: 0, patience }
    }

    /// It comes again; whether that is often enough to keep it.
    #[inline]
    pub fn comes(&mut self) -> bool {
        self.came = self.came.saturating_add(1);
        self.came >= self.patience.wanted
    }

    /// Whether it is often enough when it comes the next time; if not, it has come once more.
    #[inline]
    pub fn is_next_kept(&mut self) -> bool {
        let is_next = self.came.saturating_add(1) >= self.patience.wanted;
        if !is_next {
            self.came += 1;
        }
        is_next
    }

    /// It was kept, and came with so many bytes, of which so many had to be written; whether
    /// it is found, which it is not if more than a quarter had to be.
    #[inline]
    pub fn is_found(&mut self, bytes: u64, written_bytes: u64) -> bool {
        if written_bytes > bytes / CHANGED_PART {
            return false;
        }
        self.found = self.found.saturating_add(1);
        self.patience.found(self.found);
        true
    }

    /// How often it was found since it is kept.
    #[inline]
    pub const fn found(&self) -> u32 {
        self.found
    }

    /// It is kept no more, since it has changed: it is to come more often before it is again.
    pub fn has_changed(&mut self) {
        self.patience.lost(self.found);
        self.is_kept_no_more();
    }

    /// It is kept no more, through no fault of its own.
    pub fn is_kept_no_more(&mut self) {
        (self.came, self.found) = (0, 0);
    }
}

#[cfg(test)]
#[path = "again_tests.rs"]
mod tests;
