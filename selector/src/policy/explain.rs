//! Why one message takes its way.

use lmt_core::selection::{Explanation, Message, Source, Taken, Warmth};

use super::authority::Eager;
use super::pair::{DMA_MIN_UNKNOWN_BYTES, INBOX_EAGER_KEY, Pair, Threshold, is_for_all_messages};
use super::ways::{DecidedBy, Plan};
use super::words::{self, heading, in_order, length};
use crate::rules::{Layer, Take};

/// A message, its way and who said so.
pub(super) struct Case<'p, 'a> {
    pub pair: &'p Pair<'a>,
    pub message: &'p Message,
    /// The ways in the order in which they are tried.
    pub plan: Plan<'a>,
    /// Set when the message travels in cells.
    pub eager: Option<Eager<'a>>,
    /// The limit of cells, whether it is within it or not.
    pub limit: Option<Eager<'a>>,
}

pub(super) fn explain(pair: &Pair<'_>, message: &Message) -> Explanation {
    let mut plan = pair.plan(message.bytes, message.variant());
    plan.apply_reader_limit(message.readers);
    let limit = pair.eager();
    let eager = limit.filter(|eager| message.bytes <= eager.bytes);
    let case = Case { pair, message, plan, eager, limit };
    let (rule, source) = case.rule_and_source();
    Explanation {
        bytes: message.bytes,
        place: place(pair),
        taken: case.taken(),
        then: case.then(),
        rule,
        source,
        notes: case.notes(),
        not_taken: case.not_taken(),
    }
}

fn place(pair: &Pair<'_>) -> String {
    match &pair.machine {
        Some(Ok(_)) if pair.situation.here.is_empty() || pair.situation.there.is_empty() => {
            "place of the peer not known".to_owned()
        }
        Some(Ok(_)) => heading(pair.place),
        _ => "topology not known".to_owned(),
    }
}

impl Case<'_, '_> {
    fn taken(&self) -> Taken {
        match self.plan.ways.first() {
            _ if self.eager.is_some() => Taken::Eager,
            Some(way) => Taken::By { mechanism: way.known.name.to_owned(), model: way.model },
            None if !self.pair.situation.is_connected => Taken::Unknown,
            None => Taken::Nothing,
        }
    }

    /// Where short messages are announced for want of room, all ways follow.
    fn then(&self) -> Vec<String> {
        let first = usize::from(self.eager.is_none());
        self.plan.ways.iter().skip(first).map(|way| way.name()).collect()
    }

    fn rule_and_source(&self) -> (String, Source) {
        let by_rule = |layer: &Layer, line| words::source(layer, line);
        if let Some(eager) = &self.eager {
            return match eager.rule {
                _ if eager.lacks_fast_box => {
                    let limit = length(eager.bytes);
                    let rule =
                        format!("messages up to {limit} travel in cells of an inbox ({INBOX_EAGER_KEY})");
                    (rule, self.pair.source_of(INBOX_EAGER_KEY))
                }
                Some((layer, rule)) => (self.pair.rule(rule), by_rule(layer, rule.line)),
                None => {
                    let rule =
                        format!("messages up to {} travel in cells (eager_max_bytes)", length(eager.bytes));
                    (rule, self.pair.source_of("eager_max_bytes"))
                }
            };
        }
        let taken = self.plan.ways.first();
        match self.plan.decided_by {
            DecidedBy::Names(names) => (
                match self.pair.rank_of_names() {
                    None => format!("mechanisms by name, whatever the rules say: {}", in_order(names)),
                    Some(_) => format!(
                        "mechanisms by name, before the rules of the same file and of lower ones: {}",
                        in_order(names)
                    ),
                },
                self.pair.names_source(),
            ),
            _ if taken.is_some_and(|way| way.origin == super::ways::Origin::Own) => (
                "a mechanism that the program brings goes before the built-in rules".to_owned(),
                Source::Call,
            ),
            DecidedBy::Rule(layer, rule) => (self.pair.rule(rule), by_rule(layer, rule.line)),
            DecidedBy::Nobody => {
                let rule = "no rule holds for it: the mechanisms in their order, the first that works";
                (rule.to_owned(), Source::Default { line: None })
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![self.where_they_run()];
        if let Some(Err(why)) = &self.pair.machine {
            notes.push(format!("the topology is not known: {why}"));
        }
        if !self.pair.situation.is_connected {
            notes.push(
                "the two are not connected: what works between them is found out by the first message"
                    .to_owned(),
            );
        }
        notes.push(self.dma_min());
        notes.extend(self.without_fast_box());
        notes.extend(self.cut());
        notes.extend(self.without_a_rule());
        notes.extend(self.restricted());
        notes.extend(self.unusual());
        notes.extend(self.out_of_range());
        notes.extend(self.single_copy());
        notes.extend(self.cap());
        notes.extend(self.direction());
        notes.extend(self.passed_over());
        notes.extend(self.pair.policy.configuration.remarks.iter().cloned());
        notes
    }

    fn where_they_run(&self) -> String {
        let cpus = |set: &lmt_core::cpu_set::CpuSet| match set.count() {
            0 => "unknown CPUs".to_owned(),
            1 => format!("CPU {set}"),
            _ => format!("CPUs {set}"),
        };
        let situation = self.pair.situation;
        let on = match &self.pair.machine {
            Some(Ok(machine)) if !machine.is_this_system() => format!(" of {}", machine.source()),
            _ => String::new(),
        };
        format!("from {} to {}{on}", cpus(situation.here), cpus(situation.there))
    }

    fn dma_min(&self) -> String {
        match &self.pair.threshold {
            Threshold::Derived(dma_min) => dma_min.to_string(),
            Threshold::Given(bytes) => {
                format!("DMAmin {}, as set by {}", length(*bytes), self.pair.source_of("dma_min"))
            }
            Threshold::Unknown => format!(
                "DMAmin {}, as on the machine of the paper, for no cache is known here",
                length(DMA_MIN_UNKNOWN_BYTES)
            ),
        }
    }

    fn cap(&self) -> Option<String> {
        let Plan { max_readers, cap_source, .. } = &self.plan;
        // How many copy at once is up to who calls gets and puts.
        if self.eager.is_some() || *max_readers == u32::MAX || self.pair.situation.is_one_sided {
            return None;
        }
        let readers = self.message.readers;
        let now = match self.plan.is_at_reader_limit(readers) {
            true => format!("{readers} now, so paths by which the receiver reads come last"),
            false => format!("{readers} now"),
        };
        Some(format!("at most {max_readers} other processes read this one at once ({cap_source}); {now}"))
    }

    /// Rules that take cells and ask for what is not known when a message is
    /// written into them.
    fn passed_over(&self) -> impl Iterator<Item = String> {
        let rules =
            self.pair.layers().iter().flat_map(|layer| layer.rules.iter().map(move |rule| (layer, rule)));
        let useless = rules.filter(|(_, rule)| rule.take == Take::Eager && !is_for_all_messages(rule));
        useless.map(|(layer, rule)| {
            let source = words::source(layer, rule.line);
            format!("{source} is passed over: what takes cells cannot depend on segments, sender or reuse")
        })
    }

    fn direction(&self) -> Option<String> {
        if self.eager.is_some() {
            return None;
        }
        match self.message.hints.warmth {
            Warmth::Unknown => None,
            Warmth::Warm => {
                Some("the sender has just written it: where no rule says who copies, put goes before get")
            }
            Warmth::Cold => {
                Some("it is out of the sender's cache: where no rule says who copies, get goes before put")
            }
        }
        .map(str::to_owned)
    }
}
