//! Why each other mechanism is not taken.

use lmt_core::selection::{KnownMechanism, NOT_SHARED, NotTaken, Source, Warmth, Why};

use super::explain::Case;
use super::pair::means;
use super::ways::{DecidedBy, Origin, Way};
use super::words::{self, length, time};
use crate::rules::{Authority, Figure, Layer, Take};

type Reason = (Why, String);

impl<'a> Case<'_, 'a> {
    /// All mechanisms but the one that is taken.
    pub(super) fn not_taken(&self) -> Vec<NotTaken> {
        let taken = self.plan.ways.first().filter(|_| self.eager.is_none());
        let known = self.pair.situation.mechanisms;
        let others = known.iter().filter(|known| taken.is_none_or(|way| way.known.tag != known.tag));
        let mut all: Vec<NotTaken> = others.map(|known| self.why_not(known, taken)).collect();
        let is_known = |name: &str| known.iter().any(|known| known.name == name);
        let left_out = self.pair.policy.existing.iter().filter(|name| !is_known(name));
        all.extend(left_out.map(|name| NotTaken {
            mechanism: name.clone(),
            why: Why::LeftOut,
            sentence: self.left_out("does not name it"),
            errno: None,
        }));
        all
    }

    fn left_out(&self, how: &str) -> String {
        match self.pair.names_source() {
            Source::Call => format!("the program's own call {how}"),
            Source::Environment { variable } => format!("{variable} in the environment {how}"),
            other => format!("`mechanisms` of {other} {how}"),
        }
    }

    fn why_not(&self, known: &'a KnownMechanism, taken: Option<&Way<'a>>) -> NotTaken {
        let refused = known.standing.reason.as_ref().filter(|_| !known.is_available());
        let errno = refused.map(|reason| reason.errno).filter(|errno| *errno != 0);
        let (why, sentence) = self.never(known).unwrap_or_else(|| self.not_now(known, taken));
        let errno = errno.filter(|_| why == Why::Unavailable);
        NotTaken { mechanism: known.name.to_owned(), why, sentence, errno }
    }

    /// Why no message of this kind goes by it.
    fn never(&self, known: &KnownMechanism) -> Option<Reason> {
        if !self.pair.situation.is_connected {
            return Some((Why::Unknown, "the two are not connected yet".to_owned()));
        }
        if !known.is_available() {
            let reason = known.standing.reason.as_ref();
            let other = || "it does not work in the peer's process, which alone knows why".to_owned();
            return Some((Why::Unavailable, reason.map_or_else(other, ToString::to_string)));
        }
        if self.eager.is_some() {
            return Some((Why::NotNeeded, "the message is short enough for cells".to_owned()));
        }
        if self.ways_of(known).next().is_some() {
            return None;
        }
        if !known.reaches(self.message.shared) {
            return Some((Why::NotShared, NOT_SHARED.to_owned()));
        }
        let is_beyond = self.plan.beyond.iter().any(|way| way.known.tag == known.tag);
        Some(match is_beyond {
            true => (Why::Later, "there are more paths than one message can try".to_owned()),
            false => (Why::LeftOut, self.left_out("does not name what of it works")),
        })
    }

    fn ways_of(&self, known: &KnownMechanism) -> impl Iterator<Item = &Way<'a>> {
        self.plan.ways.iter().filter(move |way| way.known.tag == known.tag)
    }

    /// Why this message goes by another, though it could go by this.
    fn not_now(&self, known: &'a KnownMechanism, taken: Option<&Way<'a>>) -> Reason {
        let Some(taken) = taken else {
            return (Why::Later, "it comes later in the order".to_owned());
        };
        let figures = self.measured(known, taken);
        let measured = figures.as_ref().map(|figures| figures.sentence.as_str());
        let with_figures = |sentence: String| match measured {
            Some(measured) => format!("{sentence} (measured: {measured})"),
            None => sentence,
        };
        if let Some(reason) = self.crowded(known, taken) {
            return reason;
        }
        if let Some(reason) = self.out_of_own_range(known, taken) {
            return reason;
        }
        if let DecidedBy::Rule(layer, _) = self.plan.decided_by
            && layer.authority == Authority::Calibration
            && let Some(figures) = figures.as_ref().filter(|figures| figures.is_slower)
        {
            return (Why::Slower, format!("slower: {}", figures.sentence));
        }
        if let Some(sentence) = self.out_of_rules(known) {
            return (Why::OutOfRange, with_figures(sentence));
        }
        let is_of = |origin| self.ways_of(known).any(|way| way.origin == origin);
        let sentence = match self.plan.decided_by {
            DecidedBy::Names(_) => "it is named later",
            DecidedBy::Rule(..) if is_of(Origin::Named) => "the rule names it later",
            DecidedBy::Rule(..) if is_of(Origin::Listed) => {
                "the rule does not name it, and it is later in the list of mechanisms"
            }
            DecidedBy::Rule(..) => "the rule does not name it; it is tried after those that it names",
            DecidedBy::Nobody => "it comes later in the order",
        };
        (Why::Later, with_figures(sentence.to_owned()))
    }

    /// It would stand before the one that is taken, by a way by which the
    /// receiver reads, which too many do.
    fn crowded(&self, known: &KnownMechanism, taken: &Way<'_>) -> Option<Reason> {
        let readers = self.message.readers;
        if taken.model.reads_sender() || !self.plan.is_at_reader_limit(readers) {
            return None;
        }
        let uncrowded = self.pair.plan(self.message.bytes, self.message.variant()).ways;
        let before = uncrowded.iter().take_while(|way| way.choice() != taken.choice());
        before.into_iter().find(|way| way.known.tag == known.tag && way.model.reads_sender())?;
        let cap = self.plan.max_readers;
        let sentence =
            format!("{readers} messages of this process are being read already, and the cap is {cap}");
        Some((Why::Crowded, sentence))
    }

    /// Its own section bounds it, and the one that is taken is within its own.
    fn out_of_own_range(&self, known: &KnownMechanism, taken: &Way<'_>) -> Option<Reason> {
        if !taken.is_in_range() || self.ways_of(known).any(Way::is_in_range) {
            return None;
        }
        let (layer, range) = self.ways_of(known).find_map(|way| way.out_of)?;
        let lengths = self.pair.range_lengths(range);
        let source = words::source(layer, range.line);
        let sentence = format!("[mechanism.{}] has it for {lengths} only ({source})", range.mechanism);
        Some((Why::OutOfRange, sentence))
    }

    /// The rule that spoke does not name it, and one beside that would, for
    /// other lengths.
    fn out_of_rules(&self, known: &KnownMechanism) -> Option<String> {
        let DecidedBy::Rule(layer, decided_by) = self.plan.decided_by else { return None };
        if self.ways_of(known).any(|way| way.origin == Origin::Named) {
            return None;
        }
        let names_it = |take: &Take| matches!(take, Take::Ways(ways) if ways.iter().any(|way| means(&way.name, known.name)));
        let variant = self.message.variant();
        let bytes = self.message.bytes;
        let other = layer.rules.iter().find(|rule| {
            rule.line != decided_by.line
                && names_it(&rule.take)
                && self.pair.holds_for(rule, variant)
                && !self.pair.is_within(rule.above, rule.up_to, bytes)
        })?;
        let source = words::source(layer, other.line);
        Some(format!("the rules name it for {} ({source})", self.pair.lengths(other)))
    }
}

/// What a calibration knows of two ways.
struct Figures {
    is_slower: bool,
    /// "31 us against 15 us at 256 KiB".
    sentence: String,
}

impl Case<'_, '_> {
    /// The figures of the mechanism's best way and of the one that is taken, at
    /// the measured length that is nearest to the message's.
    fn measured(&self, known: &KnownMechanism, taken: &Way<'_>) -> Option<Figures> {
        let layers = self.pair.layers().iter();
        let calibrations = layers.filter(|layer| layer.authority == Authority::Calibration);
        calibrations.into_iter().find_map(|layer| self.measured_by(layer, known, taken))
    }

    fn measured_by(&self, layer: &Layer, known: &KnownMechanism, taken: &Way<'_>) -> Option<Figures> {
        let place = self.pair.place;
        // A rule speaks of what was measured for messages like this.
        let (is_many, is_cold) = match self.plan.decided_by {
            DecidedBy::Rule(_, rule) => (rule.min_processes.is_some(), rule.warmth == Some(Warmth::Cold)),
            _ => (false, false),
        };
        let fits = |figure: &&Figure| {
            figure.place == place && (figure.pairs > 1) == is_many && figure.off_cache == is_cold
        };
        let taken_path = taken.name();
        let theirs = layer.figures.iter().filter(fits).filter(|figure| figure.way == taken_path);
        let ways: Vec<String> = self.ways_of(known).map(Way::name).collect();
        let best_at = |bytes| {
            let ours =
                layer.figures.iter().filter(fits).filter(|f| f.bytes == bytes && ways.contains(&f.way));
            ours.map(|figure| figure.median_ns).min()
        };
        let both = theirs.filter_map(|figure| Some((figure.bytes, best_at(figure.bytes)?, figure.median_ns)));
        // Near means in ratio: 1 MiB is as far from 2 MiB as from 512 KiB.
        let distance = |bytes: u64| (bytes.max(1) as f64 / self.message.bytes.max(1) as f64).ln().abs();
        let nearest = both.min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
        let (bytes, this_ns, taken_ns) = nearest?;
        let sentence = format!("{} against {} at {}", time(this_ns), time(taken_ns), length(bytes));
        Some(Figures { is_slower: this_ns > taken_ns, sentence })
    }
}
