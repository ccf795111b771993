//! The mechanisms that `lmt` brings, as tests ask for them.

use lmt_core::mechanism::{Mechanisms, Reach};

/// The names of those that move messages of any memory. What reaches shared
/// buffers only would leave all others to nobody.
///
/// ```
/// let all = lmt::mechanism_names();
/// let some = lmt_conformance::mechanisms::of_any_memory();
/// assert!(some.contains(&"shm") && some.len() < all.len());
/// ```
pub fn of_any_memory() -> Vec<&'static str> {
    let mut list = Mechanisms::new();
    lmt::list::register_all(&mut list);
    let all = list.descriptions().into_iter();
    all.filter(|one| one.reach == Reach::AnyMemory).map(|one| one.name).collect()
}
