//! The mechanisms that `lmt` brings, as tests ask for them.

use lmt_core::mechanism::Reach;
use lmt_core::mechanisms::Mechanisms;

/// The names of those that move messages of any memory. What reaches shared
/// buffers only would leave all others to nobody.
///
/// ```
/// let all = lmt::mechanism_names();
/// let some = lmt_conformance::mechanisms::of_any_memory();
/// assert!(some.contains(&"shm") && some.len() < all.len());
/// ```
pub fn of_any_memory() -> Vec<&'static str> {
    /// What a mechanism says of itself is the same with every peer, and before
    /// there is one.
    const NOBODY: u32 = 0;
    let mut list = Mechanisms::new();
    lmt::list::register_all(&mut list);
    list.known(NOBODY)
        .iter()
        .filter(|known| known.reach == Reach::AnyMemory)
        .map(|known| known.name)
        .collect()
}
