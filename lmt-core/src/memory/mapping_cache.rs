//! The mappings of peers' memory that a mechanism keeps: the least recently used go when
//! there are too many, and what is in use stays.

use std::sync::Arc;

/// Something mapped, with its length.
pub trait Length {
    /// How many bytes of address space it takes.
    fn length_bytes(&self) -> u64;
}

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Bytes of address space.
    pub bytes: u64,
    /// Mappings.
    pub number: u64,
}

/// Mappings by name, the one used last in front.
#[derive(Debug)]
pub struct MappingCache<N, M> {
    kept: Vec<(N, Arc<M>)>,
    bytes: u64,
}

impl<N, M> Default for MappingCache<N, M> {
    fn default() -> Self {
        Self { kept: Vec::new(), bytes: 0 }
    }
}

impl<N: PartialEq, M: Length> MappingCache<N, M> {
    /// The mapping of this name.
    pub fn find(&mut self, name: &N) -> Option<Arc<M>> {
        let at = self.kept.iter().position(|(other, _)| other == name)?;
        if at > 0 {
            self.kept[..=at].rotate_right(1);
        }
        Some(Arc::clone(&self.kept[0].1))
    }

    /// Keeps a mapping in place of one of the same name, at least until
    /// [`Self::trim`] or the next one: somebody has asked for it.
    pub fn insert(&mut self, name: N, mapping: Arc<M>, bound: Bound) {
        self.remove(&name);
        self.bytes += mapping.length_bytes();
        self.kept.insert(0, (name, mapping));
        self.trim_behind(1, bound);
    }

    /// Lets go of what is beyond the bound and not in use.
    pub fn trim(&mut self, bound: Bound) {
        self.trim_behind(0, bound);
    }

    fn trim_behind(&mut self, first: usize, bound: Bound) {
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
    pub fn is_beyond(&self, bound: Bound) -> bool {
        self.bytes > bound.bytes || self.kept.len() as u64 > bound.number
    }

    /// Lets go of one; those that use it keep it for themselves.
    pub fn remove(&mut self, name: &N) {
        self.remove_all(|other| other == name);
    }

    /// Lets go of all with such names.
    pub fn remove_all(&mut self, is_such: impl Fn(&N) -> bool) {
        while let Some(at) = self.kept.iter().position(|(name, _)| is_such(name)) {
            self.drop_at(at);
        }
    }

    fn drop_at(&mut self, at: usize) {
        let (_, mapping) = self.kept.remove(at);
        self.bytes -= mapping.length_bytes();
    }
}

#[cfg(test)]
#[path = "mapping_cache_tests.rs"]
mod tests;
