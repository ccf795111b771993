//! Who outranks whom where a key and rules speak of the same thing.

use lmt_core::config::EAGER_MAX_BYTES;
use lmt_core::selection::Source;

use super::pair::{Pair, is_for_all_messages};
use crate::rules::{Authority, Layer, Rule, Take};

/// Where a key that some file sets stands among the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rank {
    /// So many layers are of higher files.
    pub above: usize,
    /// So many are of higher files or of its own.
    pub up_to: usize,
}

/// Up to where messages travel in cells, and who says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eager<'a> {
    pub bytes: u64,
    /// The rule, with its layer; the key `eager_max_bytes` when there is none.
    pub rule: Option<(&'a Layer, &'a Rule)>,
    /// Up to where it would be without the earlier rule, which has what is
    /// longer announced; `None` where no such rule stands in the way.
    pub cut: Option<Cut<'a>>,
    /// Whether all these would say more if the peer gave a fast box.
    pub lacks_fast_box: bool,
}

/// What keeps messages out of cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut<'a> {
    /// What the limit would be.
    pub uncut_bytes: u64,
    pub layer: &'a Layer,
    pub rule: &'a Rule,
}

/// The least bound that an earlier rule has set.
type Bounded<'a> = Option<(u64, &'a Layer, &'a Rule)>;

fn lower<'a>(one: Bounded<'a>, other: Bounded<'a>) -> Bounded<'a> {
    match (one, other) {
        // Of equal bounds that of the earlier rule, which is `one`.
        (Some(one), Some(other)) if other.0 < one.0 => Some(other),
        (one, other) => one.or(other),
    }
}

impl<'a> Eager<'a> {
    fn new(uncut_bytes: u64, rule: Option<(&'a Layer, &'a Rule)>, bound: Bounded<'a>) -> Self {
        match bound {
            Some((bytes, layer, cutting)) if bytes < uncut_bytes => {
                let cut = Some(Cut { uncut_bytes, layer, rule: cutting });
                Self { bytes, rule, cut, lacks_fast_box: false }
            }
            _ => Self { bytes: uncut_bytes, rule, cut: None, lacks_fast_box: false },
        }
    }

    /// What is left of it where cells carry so much at most.
    fn within(self, most_bytes: u64) -> Self {
        if self.bytes <= most_bytes {
            return self;
        }
        Self { bytes: most_bytes, lacks_fast_box: true, ..self }
    }
}

impl<'a> Pair<'a> {
    /// Where what this source sets stands among the files; `None` for calls and
    /// the environment, which outrank all of them.
    pub(super) fn rank(&self, source: &Source) -> Option<Rank> {
        let layers = self.layers();
        let higher_than = |authority| layers.iter().filter(|layer| layer.authority < authority).count();
        let (authority, path) = match source {
            Source::File { path, .. } => (Authority::User, path),
            Source::Calibration { path, .. } => (Authority::Calibration, path),
            Source::Default { .. } => {
                return Some(Rank { above: higher_than(Authority::Default), up_to: layers.len() });
            }
            _ => return None,
        };
        let is_it = |layer: &Layer| layer.authority == authority && layer.path.display().to_string() == *path;
        let above = higher_than(authority);
        let found = layers.iter().position(is_it).map(|at| Rank { above: at, up_to: at + 1 });
        Some(found.unwrap_or(Rank { above, up_to: above }))
    }

    /// Where `mechanisms` stands among the files; `None` where it outranks all.
    /// Where the policy was not told who has set it, only the call that gave the
    /// configuration can have done it.
    pub(super) fn rank_of_names(&self) -> Option<Rank> {
        self.rank(&self.names_source())
    }

    /// Who has named mechanisms.
    pub(super) fn names_source(&self) -> Source {
        self.policy.configuration.sources.get("mechanisms").cloned().unwrap_or(Source::Call)
    }

    /// Up to where messages travel in cells. That is one length for a peer: it
    /// is asked before anything else is known of a message, so rules with
    /// conditions on the message say nothing here.
    ///
    /// What is said first ends where an earlier rule for ways begins, and where a
    /// peer without a fast box would get more than its inbox is good for.
    pub(super) fn eager(&self) -> Option<Eager<'a>> {
        let most_bytes = self.situation.largest_eager_bytes();
        let has_cells = self.policy.has_eager && !self.situation.is_one_sided;
        has_cells.then(|| self.eager_with_fast_box().within(most_bytes))
    }

    fn eager_with_fast_box(&self) -> Eager<'a> {
        let key_bytes = self.situation.config.eager_max_bytes;
        let Some(rank) = self.rank(&self.source_of("eager_max_bytes")) else {
            return Eager::new(key_bytes, None, None);
        };
        let mut bound: Bounded<'a> = None;
        for layer in &self.layers()[..rank.up_to] {
            // A rule that begins at 0 leaves no room for a later one of its
            // file. It says nothing of other files' cells: it speaks of what is
            // announced, and not of what is.
            let mut from_zero: Bounded<'a> = None;
            for rule in &layer.rules {
                if self.is_eager_here(rule) {
                    let bytes = rule.up_to.map_or(EAGER_MAX_BYTES, |up_to| self.bytes_of(up_to));
                    let bound = lower(bound, from_zero);
                    return Eager::new(bytes.min(EAGER_MAX_BYTES), Some((layer, rule)), bound);
                }
                if !self.announces_here(rule) {
                    continue;
                }
                match rule.above {
                    Some(above) => bound = lower(bound, Some((self.bytes_of(above), layer, rule))),
                    None => from_zero = from_zero.or(Some((0, layer, rule))),
                }
            }
        }
        Eager::new(key_bytes, None, bound)
    }

    fn is_eager_here(&self, rule: &Rule) -> bool {
        rule.take == Take::Eager && is_for_all_messages(rule) && self.holds_here(rule)
    }

    /// Whether a rule has all messages of some length announced between the two.
    fn announces_here(&self, rule: &Rule) -> bool {
        let is_empty = match (rule.above, rule.up_to) {
            (Some(above), Some(up_to)) => self.bytes_of(above) >= self.bytes_of(up_to),
            (Some(above), None) => self.bytes_of(above) == u64::MAX,
            _ => false,
        };
        matches!(rule.take, Take::Ways(_)) && is_for_all_messages(rule) && self.holds_here(rule) && !is_empty
    }

    /// How many messages of one process may be read at once where this rule
    /// has spoken, and who says so. The key outranks rules of lower files, the
    /// rule that of its own.
    pub(super) fn cap(&self, decided_by: Option<(usize, &Rule)>) -> (u32, Source) {
        let source = self.source_of("max_readers");
        if let Some((at, rule)) = decided_by
            && let Some(max_readers) = rule.max_readers
            && self.rank(&source).is_some_and(|rank| at < rank.up_to)
        {
            return (max_readers, super::words::source(&self.layers()[at], rule.line));
        }
        (self.policy.configuration.selection.max_readers, source)
    }

    /// The cap where mechanisms were named: an order that was asked for yields
    /// only to a cap that somebody has set who could as well have named them.
    pub(super) fn cap_of_names(&self) -> (u32, Source) {
        let (max_readers, source) = self.cap(None);
        let is_chosen = match (&source, self.rank_of_names()) {
            (Source::Default { .. }, _) => false,
            (Source::Calibration { .. }, None) => false,
            (Source::Calibration { .. }, Some(names)) => {
                self.rank(&source).is_none_or(|rank| rank.above <= names.above)
            }
            _ => true,
        };
        (if is_chosen { max_readers } else { u32::MAX }, source)
    }
}
