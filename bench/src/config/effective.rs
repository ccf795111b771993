//! What is configured, each part with where it comes from.

use std::fmt;

use lmt_core::config::KEYS;
use lmt_core::config_key::{Key, Value};
use lmt_core::selection::{Reuse, Source, Warmth};
use lmt_selector::config::{
    Known, contention_keys, dma_min_key, max_readers_key, shown, single_copy_key, single_copy_value,
};
use lmt_selector::configuration::{Configuration, DmaMinSetting};
use lmt_selector::contention::write_contention;
use lmt_selector::rules::{Authority, Bound, Rule, Take};
use lmt_selector::size;

/// One key with its value.
pub struct Line {
    /// Its name.
    pub key: &'static str,
    /// Its value, as a file has it.
    pub shown: String,
    /// Who set it.
    pub source: Source,
}

/// A table of a file with all its keys.
pub struct Table {
    /// Its name, without brackets.
    pub name: String,
    /// Its keys.
    pub lines: Vec<Line>,
}

/// All that is configured.
pub struct Effective<'c> {
    /// Keys, by table.
    pub tables: Vec<Table>,
    /// The rest.
    pub configuration: &'c Configuration,
}

impl<'c> Effective<'c> {
    /// What is configured, with the mechanisms' keys that nobody has set.
    pub fn new(configuration: &'c Configuration, known: &Known) -> Self {
        let source =
            |key: &str| configuration.sources.get(key).cloned().unwrap_or(Source::Default { line: None });
        let line = |key: &'static Key, value: &Value| Line {
            key: key.name,
            shown: shown(key.kind, value),
            source: source(key.name),
        };
        let endpoint =
            KEYS.iter().map(|key| line(key, &configuration.config.get(key.name).unwrap_or(Value::Absent)));
        let dma_min = Line {
            key: dma_min_key(),
            shown: match configuration.selection.dma_min {
                DmaMinSetting::ByCores => "\"by-cores\"".to_owned(),
                DmaMinSetting::ByProcesses => "\"by-processes\"".to_owned(),
                DmaMinSetting::Bytes(bytes) => format!("\"{}\"", size::written(bytes)),
            },
            source: source(dma_min_key()),
        };
        let readers = line(max_readers_key(), &Value::Number(configuration.selection.max_readers.into()));
        let single_copy = line(single_copy_key(), &single_copy_value(&configuration.selection));
        let mut tables = vec![
            Table { name: "endpoint".to_owned(), lines: endpoint.collect() },
            Table { name: "selection".to_owned(), lines: vec![dma_min, readers, single_copy] },
        ];
        for facts in known.mechanisms.iter().filter(|facts| !facts.keys.is_empty()) {
            let lines = facts.keys.iter().zip(&facts.defaults).map(|(key, default)| {
                let set =
                    configuration.mechanisms.iter().find(|s| s.mechanism == facts.name && s.key == key.name);
                let (value, source) = set.map_or((default, Source::Default { line: None }), |set| {
                    (&set.value, set.source.clone())
                });
                Line { key: key.name, shown: shown(key.kind, value), source }
            });
            tables.push(Table { name: format!("mechanism.{}", facts.name), lines: lines.collect() });
        }
        tables.extend(contention(configuration));
        Self { tables, configuration }
    }
}

/// What single copy costs, if a file tells it: all from the same one.
fn contention(configuration: &Configuration) -> Option<Table> {
    let text = write_contention(configuration.contention.as_ref()?);
    let source = configuration.sources.get("contention").cloned().unwrap_or(Source::Default { line: None });
    let line = |key: &&'static str| {
        let written = text.lines().find_map(|line| line.strip_prefix(*key)?.strip_prefix(" = "))?;
        Some(Line { key, shown: written.to_owned(), source: source.clone() })
    };
    Some(Table { name: "contention".to_owned(), lines: contention_keys().iter().filter_map(line).collect() })
}

/// Whose rules they are, for people.
pub const fn whose(authority: Authority) -> &'static str {
    match authority {
        Authority::User => "the user's file",
        Authority::Calibration => "a calibration",
        Authority::Default => "built in",
    }
}

/// A rule in one line: what it fits, and what it takes.
pub fn in_words(rule: &Rule) -> String {
    let mut conditions = vec![range(rule.above, rule.up_to)];
    if !rule.places.is_empty() {
        let places: Vec<String> = rule.places.iter().map(ToString::to_string).collect();
        conditions.push(places.join(" or "));
    }
    conditions
        .extend(rule.contiguous.map(|one| if one { "one segment" } else { "many segments" }.to_owned()));
    conditions.extend(rule.warmth.map(|warmth| match warmth {
        Warmth::Warm => "a warm sender".to_owned(),
        Warmth::Cold => "a cold sender".to_owned(),
        Warmth::Unknown => "a sender that says nothing".to_owned(),
    }));
    conditions.extend(rule.reuse.map(|reuse| match reuse {
        Reuse::Again => "a buffer used again".to_owned(),
        Reuse::Once => "a buffer used once".to_owned(),
        Reuse::Unknown => "a buffer of which nothing is said".to_owned(),
    }));
    conditions.extend(rule.min_processes.map(|least| format!("{least} processes or more")));
    conditions.extend(rule.single_copy.map(|speed| format!("{} single copies", speed.name())));
    let take = match &rule.take {
        Take::Eager => "eager".to_owned(),
        Take::Ways(ways) => ways.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let cap = rule.max_readers.map(|cap| format!(", at most {cap} readers")).unwrap_or_default();
    format!("{}: {take}{cap}", conditions.join(", "))
}

fn range(above: Option<Bound>, up_to: Option<Bound>) -> String {
    match (above, up_to) {
        (None, None) => "any length".to_owned(),
        (Some(above), None) => format!("above {above}"),
        (None, Some(up_to)) => format!("up to {up_to}"),
        (Some(above), Some(up_to)) => format!("above {above} up to {up_to}"),
    }
}

impl fmt::Display for Effective<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            writeln!(f, "[{}]", table.name)?;
            let width = |of: fn(&Line) -> usize| table.lines.iter().map(of).max().unwrap_or_default();
            let (keys, values) = (width(|line| line.key.len()), width(|line| line.shown.len()));
            for line in &table.lines {
                writeln!(f, "{:keys$} = {:values$}  # {}", line.key, line.shown, line.source)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "Rules, of which the first that fits speaks:")?;
        for layer in &self.configuration.layers {
            writeln!(f, "  {} ({})", layer.path.display(), whose(layer.authority))?;
            for rule in &layer.rules {
                writeln!(f, "    line {:3}  {}", rule.line, in_words(rule))?;
            }
            for of in &layer.ranges {
                writeln!(f, "    line {:3}  {} only {}", of.line, of.mechanism, range(of.above, of.up_to))?;
            }
            if layer.rules.is_empty() && layer.ranges.is_empty() {
                writeln!(f, "    no rules")?;
            }
        }
        if !self.configuration.collectives.is_empty() {
            writeln!(f, "Rules of collective operations, of which the first that fits and can speaks:")?;
            for rule in &self.configuration.collectives {
                writeln!(f, "  {rule}  # {}", rule.source)?;
            }
        }
        for remark in &self.configuration.remarks {
            writeln!(f, "Note: {remark}.")?;
        }
        Ok(())
    }
}
