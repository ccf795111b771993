//! The mappings of peers' arenas that are kept: the least recently used go when
//! there are too many, and what is in use stays.

use std::sync::Arc;

use crate::config::Config;

/// Names an arena of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    /// Which peer; no number is given twice.
    pub peer: u64,
    /// The arena's number there.
    pub arena: u32,
}

/// Something mapped, with its length.
pub(crate) trait Length {
    fn length_bytes(&self) -> u64;
}

/// Mappings by name, the one used last in front.
#[derive(Debug)]
pub(crate) struct Cache<M> {
    kept: Vec<(Name, Arc<M>)>,
    bytes: u64,
}

impl<M> Default for Cache<M> {
    fn default() -> Self {
        Self { kept: Vec::new(), bytes: 0 }
    }
}

impl<M: Length> Cache<M> {
    /// The mapping of this name.
    pub fn find(&mut self, name: Name) -> Option<Arc<M>> {
        let at = self.kept.iter().position(|(other, _)| *other == name)?;
        if at > 0 {
            self.kept[..=at].rotate_right(1);
        }
        Some(Arc::clone(&self.kept[0].1))
    }

    /// Keeps a mapping in place of one of the same name, at least until
    /// [`Self::trim`] or the next one: somebody has asked for it.
    pub fn insert(&mut self, name: Name, mapping: Arc<M>, bound: &Config) {
        self.remove(name);
        self.bytes += mapping.length_bytes();
        self.kept.insert(0, (name, mapping));
        self.trim_behind(1, bound);
    }

    /// Lets go of what is beyond the bound and not in use.
    pub fn trim(&mut self, bound: &Config) {
        self.trim_behind(0, bound);
    }

    fn trim_behind(&mut self, first: usize, bound: &Config) {
        let mut at = self.kept.len();
        while at > first && self.is_beyond(bound) {
            at -= 1;
            // Nobody else can get hold of it meanwhile: that needs the cache.
            if Arc::strong_count(&self.kept[at].1) == 1 {
                self.drop_at(at);
            }
        }
    }

    /// Whether more is kept than is to be.
    #[inline]
    pub fn is_beyond(&self, bound: &Config) -> bool {
        self.bytes > bound.kept_bytes || self.kept.len() as u64 > bound.kept_arenas
    }

    /// Lets go of one; those that use it keep it for themselves.
    pub fn remove(&mut self, name: Name) {
        if let Some(at) = self.kept.iter().position(|(other, _)| *other == name) {
            self.drop_at(at);
        }
    }

    /// Lets go of all of a peer's.
    pub fn forget(&mut self, peer: u64) {
        while let Some(at) = self.kept.iter().position(|(name, _)| name.peer == peer) {
            self.drop_at(at);
        }
    }

    fn drop_at(&mut self, at: usize) {
        let (_, mapping) = self.kept.remove(at);
        self.bytes -= mapping.length_bytes();
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
