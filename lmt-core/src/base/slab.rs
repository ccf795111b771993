//! A table whose entries keep their place and are named by index and
//! generation, so that a name outlives its entry without ever naming another.
#![forbid(unsafe_code)]

/// What a name turns out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotStatus {
    /// The entry is there.
    Live,
    /// It was there and has gone.
    Stale,
    /// No such name was ever given out.
    Never,
}

#[derive(Debug)]
enum Content<T> {
    /// The next free slot, or [`NONE`].
    Free(u32),
    Used(T),
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    content: Content<T>,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// The table. Memory grows to the most entries there were at once and is then
/// reused.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    used: usize,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, used: 0 }
    }

    /// How many entries there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// How many slots there are, used or not: the bound for [`Self::id_at`].
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The name of the entry in slot `index`, if the slot is used.
    pub(crate) fn id_at(&self, index: u32) -> Option<u64> {
        match self.slots.get(index as usize)? {
            Slot { generation, content: Content::Used(_) } => Some(name(index, *generation)),
            _ => None,
        }
    }

    /// Takes an entry in and names it; 0 is never a name.
    ///
    /// # Panics
    /// Past 2^32 - 1 entries.
    #[inline(always)] // The entry is moved to its place at once, without a stop on the stack.
    pub(crate) fn insert(&mut self, entry: T) -> u64 {
        self.insert_mut(entry).0
    }

    /// The same, and the entry, to be changed where it stays.
    ///
    /// # Panics
    /// Past 2^32 - 1 entries.
    #[inline(always)] // As `insert`.
    pub(crate) fn insert_mut(&mut self, entry: T) -> (u64, &mut T) {
        if self.free == NONE {
            self.grow();
        }
        let index = self.free;
        let Slot { generation, content } = &mut self.slots[index as usize];
        if let Content::Free(next) = *content {
            self.free = next;
            self.used += 1;
            *content = Content::Used(entry);
        }
        match content {
            Content::Used(entry) => (name(index, *generation), entry),
            Content::Free(_) => unreachable!("it was filled"),
        }
    }

    /// Makes a free slot where there is none.
    #[cold]
    fn grow(&mut self) {
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 entries");
        assert_ne!(index, NONE, "fewer than 2^32 entries");
        self.slots.push(Slot { generation: 1, content: Content::Free(NONE) });
        self.free = index;
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        match self.slots.get(id as u32 as usize)? {
            Slot { generation, content: Content::Used(entry) } if *generation == generation_of(id) => {
                Some(entry)
            }
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        match self.slots.get_mut(id as u32 as usize)? {
            Slot { generation, content: Content::Used(entry) } if *generation == generation_of(id) => {
                Some(entry)
            }
            _ => None,
        }
    }

    /// The entry in slot `index`, if the slot is used.
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        match self.slots.get(index as usize)? {
            Slot { content: Content::Used(entry), .. } => Some(entry),
            _ => None,
        }
    }

    /// As [`Self::at`], to be changed.
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        match self.slots.get_mut(index as usize)? {
            Slot { content: Content::Used(entry), .. } => Some(entry),
            _ => None,
        }
    }

    /// Takes an entry out.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let (content, free) = self.vacate(id)?;
        match std::mem::replace(content, free) {
            Content::Used(entry) => Some(entry),
            Content::Free(_) => None,
        }
    }

    /// Drops an entry where it lies, which moves nothing.
    #[inline(always)] // The path of a short message.
    pub(crate) fn discard(&mut self, id: u64) {
        if let Some((content, free)) = self.vacate(id) {
            *content = free;
        }
    }

    /// Gives an entry's slot back: where it lies, and what is to be there from now on.
    #[inline]
    fn vacate(&mut self, id: u64) -> Option<(&mut Content<T>, Content<T>)> {
        let index = id as u32;
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != generation_of(id) || matches!(slot.content, Content::Free(_)) {
            return None;
        }
        // Never 0, so that 0 stays nobody's name.
        slot.generation = slot.generation.wrapping_add(1).max(1);
        let free = Content::Free(self.free);
        self.free = index;
        self.used -= 1;
        Some((&mut slot.content, free))
    }

    /// What `id`, which may be anything, names.
    pub(crate) fn standing(&self, id: u64) -> SlotStatus {
        let Some(slot) = self.slots.get(id as u32 as usize) else {
            return SlotStatus::Never;
        };
        // Generations wrap, so they are compared by their distance. A name with
        // a free slot's generation has not been given out yet.
        let ahead = generation_of(id).wrapping_sub(slot.generation) as i32;
        match &slot.content {
            Content::Used(_) if ahead == 0 => SlotStatus::Live,
            _ if ahead < 0 && generation_of(id) != 0 => SlotStatus::Stale,
            _ => SlotStatus::Never,
        }
    }
}

const fn name(index: u32, generation: u32) -> u64 {
    (generation as u64) << 32 | index as u64
}

const fn generation_of(id: u64) -> u32 {
    (id >> 32) as u32
}

#[cfg(test)]
#[path = "slab_tests.rs"]
mod tests;
