//! Lists whose links stand in the entries of a slab, so that taking an entry
//! out of the middle costs the same as from an end and nothing is allocated.

use crate::base::slab::Slab;

/// An entry's neighbours, by their slots; 0 is nobody, 1 the first slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    older: u32,
    newer: u32,
}

/// The ends of a list, by their slots as in [`Link`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    oldest: u32,
    newest: u32,
}

/// Entries that stand in several lists at once.
pub(super) trait Linked {
    /// The link of list number `which`.
    fn link(&mut self, which: usize) -> &mut Link;
}

/// The slot that a link names; none for nobody.
const fn slot(link: u32) -> u32 {
    link.wrapping_sub(1)
}

const fn link_to(slot: u32) -> u32 {
    slot + 1
}

impl Link {
    /// The slot of the entry behind this one; of none that is used at the end.
    pub(super) const fn newer(&self) -> u32 {
        slot(self.newer)
    }
}

impl List {
    pub(super) const fn is_empty(&self) -> bool {
        self.oldest == 0
    }

    /// The slot of the oldest entry; of none that is used in an empty list.
    pub(super) const fn oldest(&self) -> u32 {
        slot(self.oldest)
    }

    /// Puts the entry in slot `index` behind all others.
    pub(super) fn push<T: Linked>(&mut self, slab: &mut Slab<T>, which: usize, index: u32) {
        if let Some(entry) = slab.at_mut(index) {
            *entry.link(which) = self.last_link();
        }
        self.append(slab, which, index);
    }

    /// The link of an entry that is about to be put behind all others.
    pub(super) const fn last_link(&self) -> Link {
        Link { older: self.newest, newer: 0 }
    }

    /// Puts the entry in slot `index`, which has that link, behind all others.
    #[inline]
    pub(super) fn append<T: Linked>(&mut self, slab: &mut Slab<T>, which: usize, index: u32) {
        let own = link_to(index);
        match slab.at_mut(slot(self.newest)) {
            Some(newest) => newest.link(which).newer = own,
            None => self.oldest = own,
        }
        self.newest = own;
    }

    /// Takes an entry out that had `link` in this list.
    #[inline]
    pub(super) fn unlink<T: Linked>(&mut self, slab: &mut Slab<T>, which: usize, link: Link) {
        match slab.at_mut(slot(link.older)) {
            Some(older) => older.link(which).newer = link.newer,
            None => self.oldest = link.newer,
        }
        match slab.at_mut(slot(link.newer)) {
            Some(newer) => newer.link(which).older = link.older,
            None => self.newest = link.older,
        }
    }
}
