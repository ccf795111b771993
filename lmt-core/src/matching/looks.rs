//! In tests, how much the matcher has looked at: what takes the same time for
//! any number of receives and messages looks at the same number of things.

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One more list was looked up, or one more entry passed.
#[inline]
pub(super) fn note() {
    #[cfg(test)]
    LOOKS.with(|looks| looks.set(looks.get() + 1));
}

/// How many there were in `f`, on this thread.
#[cfg(test)]
pub(super) fn of(f: impl FnOnce()) -> u64 {
    let before = LOOKS.with(std::cell::Cell::get);
    f();
    LOOKS.with(std::cell::Cell::get) - before
}
