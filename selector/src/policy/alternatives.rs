//! Among which of a message's ways the endpoint may choose by what it times.
//!
//! What a user has said is kept: of a rule in the user's file, and of mechanisms
//! that are named by a call, the environment or a file, only what they name is
//! tried. Where a calibration or the built-in rules speak, the first few of all
//! that works are: their order is by what was measured.

use lmt_core::config::EAGER_MOST_BYTES;
use lmt_core::selection::{Alternatives, Source, Variant, Warmth};

use super::pair::Pair;
use super::ways::{Origin, Plan, Spoke, Way};
use crate::rules::{Authority, Take};

/// Of ways that no user has named so many are tried: each costs the time of some
/// messages, and what stands behind so many others is hardly the best.
const MOST_UNNAMED: usize = 6;

impl Pair<'_> {
    /// Among which ways of the plan the endpoint may choose.
    pub(super) fn alternatives(&self, plan: &Plan<'_>, variant: Variant) -> Alternatives {
        let only_named = match plan.spoke {
            Spoke::Names(_) => true,
            Spoke::Rule(layer, _) => layer.authority == Authority::User,
            Spoke::Nobody => false,
        };
        let is_open = |way: &Way<'_>| {
            way.is_in_range() && way.known.shows_in_time && (!only_named || way.origin == Origin::Named)
        };
        let says_who_copies = variant.hints().warmth != Warmth::Unknown;
        let is_first_of_its = |at: usize| {
            let name = plan.ways[at].known.name;
            !plan.ways[..at].iter().any(|before| before.known.name == name)
        };
        let ways = plan.ways.iter().enumerate();
        let open = ways.filter(|(at, way)| is_open(way) && (!says_who_copies || is_first_of_its(*at)));
        let most = if only_named { usize::MAX } else { MOST_UNNAMED };
        let open: Alternatives = open.map(|(at, _)| at).take(most).collect();
        // What is taken first is not to be left where it is not one of them.
        if open.contains(0) { open } else { Alternatives::NONE }
    }

    /// Up to where cells may be tried for what is announced: nowhere beyond the
    /// limit where a call, the environment or the user's files speak of it or of
    /// the ways, or the peer gives no fast box.
    pub(super) fn try_eager_max_bytes(&self) -> u64 {
        let Some(eager) = self.eager() else { return 0 };
        let is_users =
            |source: &Source| !matches!(source, Source::Default { .. } | Source::Calibration { .. });
        let named = self.situation.config.mechanisms.is_some() && is_users(&self.names_source());
        let of_key = is_users(&self.source_of("eager_max_bytes"));
        let mut users = self.layers().iter().filter(|layer| layer.authority == Authority::User);
        let by_rule = users.any(|layer| {
            layer
                .rules
                .iter()
                .any(|rule| self.holds_here(rule) && matches!(rule.take, Take::Eager | Take::Ways(_)))
        });
        if named || of_key || by_rule || !self.situation.has_box { eager.bytes } else { EAGER_MOST_BYTES }
    }
}

#[cfg(test)]
#[path = "alternatives_tests.rs"]
mod tests;
