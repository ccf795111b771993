//! The mechanisms of this build.

use lmt::mechanism::{Mechanisms, Reach};

/// Every mechanism, as its defaults make it.
pub fn all_of_this_build() -> Mechanisms {
    let mut list = Mechanisms::new();
    lmt::list::register_all(&mut list);
    list
}

pub(crate) fn reaches_shared_only(way: &str) -> bool {
    let name = way.split(':').next().unwrap_or(way);
    let all = all_of_this_build().descriptions();
    all.iter().any(|of| of.name == name && of.reach == Reach::SharedBuffers)
}
