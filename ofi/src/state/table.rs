//! Objects by number.

/// Few objects that keep their numbers; a number is given out again when its
/// object was removed.
#[derive(Debug)]
pub struct Table<T>(Vec<Option<T>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Table<T> {
    /// Takes an object in; gives its number.
    pub fn insert(&mut self, object: T) -> usize {
        match self.0.iter().position(Option::is_none) {
            Some(number) => {
                self.0[number] = Some(object);
                number
            }
            None => {
                self.0.push(Some(object));
                self.0.len() - 1
            }
        }
    }

    /// The object with this number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number)?.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.0.get_mut(number)?.as_mut()
    }

    /// Takes an object out.
    pub fn remove(&mut self, number: usize) -> Option<T> {
        self.0.get_mut(number)?.take()
    }

    /// All objects.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}
