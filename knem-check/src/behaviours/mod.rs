//! Every behaviour of the driver that a client depends on, one check each.
//!
//! Where drivers are known to differ, a check holds both ways and its remark
//! says which way this driver goes.

mod asynchronous;
mod basics;
mod copies;
mod engine;
mod lifetime;
mod pages;
mod refusals;
mod uses;

use crate::verdict::Verdict;

/// One behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// How it is called in lines and filters.
    pub name: &'static str,
    /// What must hold.
    pub what: &'static str,
    pub run: fn() -> Verdict,
}

/// All of them, in order.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let lists = [
        basics::CHECKS,
        copies::CHECKS,
        refusals::CHECKS,
        uses::CHECKS,
        lifetime::CHECKS,
        pages::CHECKS,
        asynchronous::CHECKS,
        engine::CHECKS,
    ];
    lists.into_iter().flatten()
}

/// Writes a list of checks: a function of this module, its name, what it says.
macro_rules! checks {
    ($($function:ident $name:literal $what:literal;)+) => {
        pub const CHECKS: &[super::Check] =
            &[$(super::Check { name: $name, what: $what, run: $function }),+];
    };
}
use checks;
