//! The table from a copy's length, alignment and distance to a routine.

use crate::routine::Routine;

/// Who reads the target next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum Distance {
    /// This core, soon: as after a receive. Also what is taken where nothing is
    /// known.
    #[default]
    Near,
    /// Another core, soon: as after a copy into shared memory.
    Peer,
    /// Nobody soon: a copy in the background, of something large.
    Away,
}

impl Distance {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Near, Self::Peer, Self::Away];

    /// Its word in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Peer => "peer",
            Self::Away => "away",
        }
    }
}

/// How source and target stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Alignment {
    /// They begin at the same place of a cache line.
    Same,
    /// The target is 1 to 63 bytes behind the source, modulo 4 KiB: so what is
    /// read next looks, by the lower bits of its address, as if it had just been
    /// written. Some CPUs wait then, `rep movsb` on some of them for each byte.
    Aliased,
    /// Neither.
    Other,
}

impl Alignment {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Same, Self::Aliased, Self::Other];

    /// That of these two addresses.
    ///
    /// ```
    /// use lmt_copy::Alignment;
    /// assert_eq!(Alignment::of(0x5010, 0x1000), Alignment::Aliased);
    /// assert_eq!(Alignment::of(0x1000, 0x5010), Alignment::Other);
    /// assert_eq!(Alignment::of(0x1050, 0x5010), Alignment::Same);
    /// ```
    #[inline]
    pub const fn of(target: usize, source: usize) -> Self {
        let difference = target.wrapping_sub(source);
        if difference.is_multiple_of(64) {
            Self::Same
        } else if difference % 4096 < 64 {
            Self::Aliased
        } else {
            Self::Other
        }
    }

    /// Its word in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Aliased => "aliased",
            Self::Other => "other",
        }
    }
}

/// Copies of up to so many bytes are not the table's: what the fastest routine
/// gains over the C library's there is less than a look into a table costs.
pub const MIN_TABLE_BYTES: usize = 2048;
/// The last class of lengths begins behind this, in bytes, and has no end.
pub const LARGEST_CLASS_BYTES: usize = 16 << 20;

const MIN_POWER: u32 = MIN_TABLE_BYTES.ilog2();
/// Up to each power of two above the least, and one for what is longer.
pub(crate) const CLASSES: usize = (LARGEST_CLASS_BYTES.ilog2() - MIN_POWER) as usize + 1;

/// The class of a length above [`MIN_TABLE_BYTES`].
#[inline]
pub(crate) fn class_of(bytes: usize) -> usize {
    // The exponent of the power of two that is at least `bytes`, less one.
    let power = ((bytes - 1) | MIN_TABLE_BYTES).ilog2();
    ((power - MIN_POWER) as usize).min(CLASSES - 1)
}

/// The lengths of a class: more than the first, up to the second.
pub(crate) const fn bounds(class: usize) -> (usize, usize) {
    let above = MIN_TABLE_BYTES << class;
    (above, if class + 1 == CLASSES { usize::MAX } else { above * 2 })
}

/// The routines of all classes in one word: four bits each, from the lowest on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row(pub(crate) u64);

const ROUTINE_BITS: usize = 4;
const _: () =
    assert!(CLASSES * ROUTINE_BITS <= u64::BITS as usize && Routine::ALL.len() <= 1 << ROUTINE_BITS);

impl Row {
    /// The C library's for all.
    pub(crate) const LIBC: Self = Self(Routine::Libc as u64);

    /// That of a class below [`CLASSES`].
    #[inline]
    pub(crate) fn routine(self, class: usize) -> Routine {
        Routine::of_code((self.0 >> (class * ROUTINE_BITS)) & ((1 << ROUTINE_BITS) - 1))
    }

    fn with(self, class: usize, routine: Routine) -> Self {
        let others = self.0 & !(((1 << ROUTINE_BITS) - 1) << (class * ROUTINE_BITS));
        Self(others | (routine as u64) << (class * ROUTINE_BITS))
    }
}

impl Default for Row {
    fn default() -> Self {
        Self::LIBC
    }
}

/// Which routine copies what: all the C library's, unless set otherwise.
///
/// ```
/// use lmt_copy::{Alignment, Copier, Distance, Routine};
/// let plain = Copier::default();
/// assert_eq!(plain.routine(Distance::Near, Alignment::Same, 4096), Routine::Libc);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Copier {
    rows: [[Row; Alignment::ALL.len()]; Distance::ALL.len()],
}

/// The longest aliased copies that are not the C library's, in bytes.
const ALIASED_MAX_BYTES: usize = 256 << 10;

impl Copier {
    /// What is best on every machine that is known: the C library's, but from 2 KiB up
    /// to 256 KiB AVX2's for aliased copies, where a C library's string instruction
    /// copies byte by byte (`docs/copy.md`).
    ///
    /// ```
    /// use lmt_copy::{Alignment, Copier, Distance, Routine};
    /// let usual = Copier::usual();
    /// assert_eq!(usual.routine(Distance::Near, Alignment::Same, 4096), Routine::Libc);
    /// ```
    pub fn usual() -> Self {
        let mut usual = Self::default();
        for class in (0..CLASSES).filter(|class| bounds(*class).1 <= ALIASED_MAX_BYTES) {
            for distance in Distance::ALL {
                usual.set(distance, Alignment::Aliased, class, Routine::Avx2);
            }
        }
        usual
    }

    /// What copies `bytes` bytes; up to [`MIN_TABLE_BYTES`] the C library, or
    /// no routine at all.
    pub fn routine(&self, distance: Distance, alignment: Alignment, bytes: usize) -> Routine {
        if bytes <= MIN_TABLE_BYTES {
            return Routine::Libc;
        }
        self.row(distance, alignment).routine(class_of(bytes))
    }

    /// The lengths, more than the first and up to the second, out of which the C
    /// library's copies all of this distance; if it does not copy all.
    pub(crate) fn hull(&self, distance: Distance) -> Option<(usize, usize)> {
        let is_libc = |class: usize| {
            Alignment::ALL.into_iter().all(|a| self.row(distance, a).routine(class) == Routine::Libc)
        };
        let mut others = (0..CLASSES).filter(|class| !is_libc(*class));
        let first = others.next()?;
        Some((bounds(first).0, bounds(others.next_back().unwrap_or(first)).1))
    }

    pub(crate) fn row(&self, distance: Distance, alignment: Alignment) -> Row {
        self.rows[distance as usize][alignment as usize]
    }

    /// Sets what copies the lengths of one class, below [`CLASSES`]. What this
    /// machine cannot run is left out: every routine of a table is available.
    pub(crate) fn set(&mut self, distance: Distance, alignment: Alignment, class: usize, routine: Routine) {
        if routine.is_available() {
            let row = &mut self.rows[distance as usize][alignment as usize];
            *row = row.with(class, routine);
        }
    }
}

#[cfg(test)]
#[path = "copier_tests.rs"]
mod tests;
