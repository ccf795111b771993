//! What every mechanism must keep, tested between real processes through a real
//! engine in which there is no other mechanism.

mod boundary;
mod data;
mod death;
mod ending;
mod faults;
mod fork;
mod link;
mod moving;
mod pretender;
mod threads;
mod wrapper;

use std::time::Duration;

use lmt_core::config::Config;
use lmt_core::mechanism::{Lmt, Mechanisms, Model};

use crate::group::{Group, Parent, Test};
use crate::require;
use link::Link;
use wrapper::Wrapper;

pub use boundary::past_2_gib;
pub use death::{death_of_receivers, death_of_senders};
pub use ending::{cancel, cancel_too_late, truncation};
pub use faults::{demotion, demotion_for_good, no_mechanism_left};
pub use fork::{child_outlives_its_parent, forked_children};
pub use moving::{alignment, both_directions, many_at_once, order, segments, sizes};
pub use threads::two_endpoints_in_one_process;

/// Makes the tests of one mechanism: a module of the given name with a `#[test]`
/// for each case. The expression makes a new instance.
///
/// `LMT_REQUIRE` (see [`crate::require`]) goes by the mechanism's own name.
#[macro_export]
macro_rules! suite {
    ($module:ident, $make:expr) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $crate::suite!(@cases $make; sizes alignment segments both_directions order many_at_once
                past_2_gib cancel cancel_too_late truncation demotion demotion_for_good no_mechanism_left
                death_of_receivers death_of_senders forked_children child_outlives_its_parent
                two_endpoints_in_one_process);
        }
    };
    (@cases $make:expr; $($case:ident)+) => {
        $(#[test]
        fn $case() {
            $crate::suite::$case(&$crate::suite::Under::new($crate::test_name!(), || $make));
        })+
    };
}

/// No case takes longer; those that take long on an idle machine need a tenth.
const LIMIT: Duration = Duration::from_secs(60);

/// A mechanism under test.
pub struct Under<F> {
    test: &'static str,
    make: F,
}

impl<M: Lmt, F: Fn() -> M> Under<F> {
    /// The mechanism that `make` makes, in the test of this name
    /// ([`crate::test_name!`]).
    pub fn new(test: &'static str, make: F) -> Self {
        data::fit(make().description().reach);
        Self { test, make }
    }

    fn models(&self) -> &'static [Model] {
        (self.make)().description().models
    }

    fn name(&self) -> &'static str {
        (self.make)().description().name
    }

    /// Two ranks for each model, in which only this mechanism in only this
    /// model is there. At the end it must have carried what `body` has said.
    fn each_model(&self, config: &Config, body: impl Fn(&Link<'_>)) {
        for &model in self.models() {
            self.in_group(
                Test::new(self.test, 2),
                |_| {},
                |group| {
                    let only = Wrapper::only((self.make)(), model);
                    self.with_link(group, config, only, model, &body);
                },
            );
        }
    }

    /// Sets up one rank with this one mechanism in this one model.
    fn with_link(
        &self,
        group: &Group,
        config: &Config,
        mechanism: Wrapper<M>,
        model: Model,
        body: impl Fn(&Link<'_>),
    ) {
        let name = mechanism.description().name;
        let mut mechanisms = Mechanisms::new();
        mechanisms.register(mechanism);
        self.with_mechanisms(group, config, mechanisms, (name, model), body);
    }

    /// Sets up one rank with these mechanisms, of which the one of this name
    /// must work in this model and must carry what `body` has said.
    fn with_mechanisms(
        &self,
        group: &Group,
        config: &Config,
        mechanisms: Mechanisms,
        (name, model): (&str, Model),
        body: impl Fn(&Link<'_>),
    ) {
        let link = Link::open(group, mechanisms, config.clone());
        match link.lacks(name, model) {
            Some(why) => skip(group, &why),
            None => {
                body(&link);
                link.prove(name);
            }
        }
        link.close();
    }

    /// Runs a group, and tells why if its ranks skipped it.
    fn in_group(&self, test: Test, drive: impl FnOnce(&mut Parent), body: impl FnOnce(&Group)) {
        // Made here first: what that sets up for the process, the ranks inherit.
        let name = self.name();
        let results = test.time_limit(LIMIT).run_with(drive, body);
        let skips = results.reports.iter().flatten().find_map(|line| line.strip_prefix(SKIP));
        if let Some(why) = skips {
            require::skipped(name, why);
        }
    }
}

/// How a rank's report of a skip begins.
const SKIP: &str = "skip: ";

fn skip(group: &Group, why: &str) {
    group.report(format_args!("{SKIP}{why}"));
}

/// Everything by rendezvous, so that the mechanism moves it.
fn rendezvous() -> Config {
    Config { eager_max_bytes: 0, ..Config::default() }
}
