//! In tests, how many comparisons the matcher has made: what takes the same time for
//! any number of receives and messages makes the same number.

#[cfg(test)]
thread_local! {
    static COMPARISONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One more list was looked up, or one more entry passed.
#[inline]
pub(super) fn note() {
    #[cfg(test)]
    COMPARISONS.with(|made| made.set(made.get() + 1));
}

/// How many there were in `f`, on this thread.
#[cfg(test)]
pub(super) fn of(f: impl FnOnce()) -> u64 {
    let before = COMPARISONS.with(std::cell::Cell::get);
    f();
    COMPARISONS.with(std::cell::Cell::get) - before
}
