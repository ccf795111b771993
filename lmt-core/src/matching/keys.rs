//! By what receives and messages are looked up: a hash table of lists, one for
//! each shape of pattern and what a pattern of that shape asks for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::list::{Link, Linked, List};
use super::mix_hasher::MixHasher;
use super::{Pattern, comparisons};
use crate::base::slab::Slab;
use crate::vocabulary::identity::PeerKey;

/// What patterns have in common: whether they name a source, and which bits of
/// the tag they ignore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub names_source: bool,
    pub ignore: u64,
}

impl Shape {
    pub const fn of(pattern: &Pattern) -> Self {
        Self { names_source: pattern.source.is_some(), ignore: pattern.ignore }
    }

    /// What a pattern of this shape asks for if it accepts such a message.
    pub fn key(self, source: PeerKey, tag: u64) -> Key {
        let source = if self.names_source { u64::from(source) } else { ANY_SOURCE };
        Key { source, tag: tag & !self.ignore, ignore: self.ignore }
    }
}

/// No peer's number.
const ANY_SOURCE: u64 = u64::MAX;

/// A shape, and what is asked for: two messages have the same key in a shape if
/// the same patterns of that shape accept them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    source: u64,
    tag: u64,
    ignore: u64,
}

impl Key {
    /// Under which a receive with this pattern stands.
    pub fn of(pattern: &Pattern) -> Self {
        let Pattern { source, tag, ignore } = *pattern;
        Self { source: source.map_or(ANY_SOURCE, u64::from), tag: tag & !ignore, ignore }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Shapes are few and sources small: one word for both will do.
        state.write_u64(self.source ^ self.ignore.rotate_left(32));
        state.write_u64(self.tag);
    }
}

/// Every list of entries with the same key; empty ones are not kept.
#[derive(Debug, Default)]
pub(super) struct Lists {
    table: HashMap<Key, List, BuildHasherDefault<MixHasher>>,
}

impl Lists {
    /// The slot of the oldest entry with this key.
    pub fn oldest(&self, key: Key) -> Option<u32> {
        comparisons::note();
        self.table.get(&key).map(List::oldest)
    }

    /// Puts the entry in slot `index` behind those with the same key.
    pub fn push<T: Linked>(&mut self, key: Key, slab: &mut Slab<T>, which: usize, index: u32) {
        comparisons::note();
        self.table.entry(key).or_default().push(slab, which, index);
    }

    /// Takes an entry out of the list of its key.
    pub fn unlink<T: Linked>(&mut self, key: Key, slab: &mut Slab<T>, which: usize, link: Link) {
        comparisons::note();
        if let Entry::Occupied(mut list) = self.table.entry(key) {
            list.get_mut().unlink(slab, which, link);
            if list.get().is_empty() {
                list.remove();
            }
        }
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }
}
