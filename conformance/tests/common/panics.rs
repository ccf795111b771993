//! Panics that tests of the tests wait for.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic of the helper is awaited here.
    static AWAITED: Cell<bool> = const { Cell::new(false) };
}

/// Lets the panics that are awaited go unprinted: who looks for the failure in
/// what a run printed would find these.
fn without_awaited_ones() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // The parent's; a rank's own words are for its parent.
            let helpers = info.location().is_some_and(|at| at.file().ends_with("group/parent.rs"));
            if !(helpers && AWAITED.get()) {
                usual(info);
            }
        }));
    });
}

/// The message of the panic that `run` in the parent ends with. In a rank, the
/// closure within ends the process.
pub fn panic_of(run: impl FnOnce()) -> String {
    without_awaited_ones();
    AWAITED.set(true);
    let ran = catch_unwind(AssertUnwindSafe(run));
    AWAITED.set(false);
    let panic = ran.expect_err("the test must fail");
    panic.downcast_ref::<String>().cloned().expect("a message in words")
}
