//! Lists that mostly have one entry: that one is kept without allocating.

use std::ops::Deref;

/// A list of entries.
#[derive(Debug, Default)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// Adds an entry behind the others.
    pub fn push(&mut self, entry: T) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(entry),
            Self::One(first) => Self::Many(vec![first, entry]),
            Self::Many(mut all) => {
                all.push(entry);
                Self::Many(all)
            }
        };
    }

    /// The entries, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::None => &mut [],
            Self::One(only) => std::slice::from_mut(only),
            Self::Many(all) => all,
        }
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(only) => std::slice::from_ref(only),
            Self::Many(all) => all,
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut all = Self::None;
        entries.into_iter().for_each(|entry| all.push(entry));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn entries_stay_in_order() {
        for count in 0..5 {
            let mut few: Few<u32> = (0..count).collect();
            assert!(few.iter().copied().eq(0..count));
            few.as_mut_slice().iter_mut().for_each(|entry| *entry += 1);
            few.push(9);
            assert!(few.iter().copied().eq((1..=count).chain([9])));
            assert_eq!(matches!(few, Few::One(_)), count == 0);
        }
    }
}
