//! Lists whose links stand in the entries of a slab, so that taking an entry
//! out of the middle costs the same as from an end and nothing is allocated.

use crate::slab::Slab;

/// An entry's neighbours; 0 is nobody, as no slab name is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    older: u64,
    pub(super) newer: u64,
}

/// The ends of a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    pub(super) oldest: u64,
    newest: u64,
}

/// Entries that stand in up to two lists at once.
pub(super) trait Linked {
    /// The link of list number `which`.
    fn link(&mut self, which: usize) -> &mut Link;
}

impl List {
    pub(super) fn is_empty(&self) -> bool {
        self.oldest == 0
    }

    /// Puts the entry named `id` behind all others.
    pub(super) fn push<T: Linked>(&mut self, slab: &mut Slab<T>, which: usize, id: u64) {
        if let Some(entry) = slab.get_mut(id) {
            *entry.link(which) = Link { older: self.newest, newer: 0 };
        }
        match slab.get_mut(self.newest) {
            Some(newest) => newest.link(which).newer = id,
            None => self.oldest = id,
        }
        self.newest = id;
    }

    /// Takes an entry out that had `link` in this list.
    pub(super) fn unlink<T: Linked>(&mut self, slab: &mut Slab<T>, which: usize, link: Link) {
        match slab.get_mut(link.older) {
            Some(older) => older.link(which).newer = link.newer,
            None => self.oldest = link.newer,
        }
        match slab.get_mut(link.newer) {
            Some(newer) => newer.link(which).older = link.older,
            None => self.newest = link.older,
        }
    }
}
