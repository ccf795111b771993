//! What all parts of reading a file share: its text, the table of mechanisms,
//! and the problems found so far.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use lmt_core::mechanism::Model;
use lmt_core::selection::PathName;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::known::Known;
use super::problem::{Mark, Problem, line_and_column};
use super::value::{Wrong, not_whole, type_of, whole};
use crate::nearest::nearest;
use crate::rules::{Authority, Bound};
use crate::size;

/// The bound that is no number.
const DMA_MIN: &str = "DMAmin";

/// A key and its value, each with its place.
pub(super) type Field<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

/// A file that is being read.
pub(super) struct Reader<'f> {
    pub path: &'f Path,
    pub authority: Authority,
    pub source: Arc<str>,
    pub known: &'f Known,
    pub problems: Vec<Problem>,
    pub places: Places,
}

/// Where the parts of a file stand that are compared once all of it is read.
#[derive(Default)]
pub(super) struct Places {
    /// Of each rule.
    pub rules: Vec<RulePlace>,
    /// Whether some rule could not be read.
    pub lacks_rules: bool,
    /// Of each mechanism's range.
    pub ranges: Vec<RulePlace>,
    /// The keys of `[endpoint]`, by name.
    pub endpoint: Vec<(&'static str, Range<usize>)>,
}

/// Where a table with bounds of lengths stands.
pub(super) struct RulePlace {
    pub header: Range<usize>,
    /// Its bounds; of none, nothing.
    pub bounds: Vec<Range<usize>>,
}

/// Whether a text means that bound, however it is written.
fn is_like_dma_min(text: &str) -> bool {
    text.replace(['_', '-'], "").eq_ignore_ascii_case(DMA_MIN)
}

impl Reader<'_> {
    /// The line on which a byte stands, from 1.
    pub fn line(&self, at: usize) -> u32 {
        line_and_column(&self.source, at).0
    }

    /// Notes a problem; the first mark is its place.
    pub fn problem(&mut self, marks: Vec<Mark>, message: String, help: String) {
        self.problems.push(Problem::at(self.path, &self.source, marks, message, help));
    }

    /// Notes a problem with one place.
    pub fn wrong(&mut self, span: Range<usize>, label: &str, message: String, help: impl Into<String>) {
        self.problem(vec![Mark { span, label: label.to_owned() }], message, help.into());
    }

    /// Notes that a key's value is wrong.
    pub fn wrong_value(&mut self, field: Field<'_, '_>, wrong: &Wrong) {
        let message = format!("`{}` {}", field.0.get_ref(), wrong.is);
        self.wrong(field.1.span(), "this value", message, wrong.help.as_str());
    }

    /// Notes that a table has no such key.
    pub fn unknown_key(&mut self, key: &Spanned<DeString<'_>>, table: &str, known: &[&str]) {
        let near = nearest(key.get_ref(), known.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys of {table} are {}", known.join(", ")),
        };
        let message = format!("there is no key `{}` in {table}", key.get_ref());
        self.wrong(key.span(), "unknown key", message, help);
    }

    /// The value as a table.
    pub fn table<'a, 'i>(&mut self, field: Field<'a, 'i>, written: &str) -> Option<&'a DeTable<'i>> {
        let table = field.1.get_ref().as_table();
        if table.is_none() {
            let message = format!("`{}` is {}, not a table", field.0.get_ref(), type_of(field.1.get_ref()));
            self.wrong(field.1.span(), "this value", message, format!("write {written}"));
        }
        table
    }

    /// The value as a list of tables, each with its place.
    pub fn tables<'a, 'i>(
        &mut self,
        field: Field<'a, 'i>,
        written: &str,
    ) -> Vec<(Range<usize>, &'a DeTable<'i>)> {
        let value = field.1.get_ref();
        let help = format!("begin each with {written}");
        let Some(list) = value.as_array() else {
            let message = format!("`{}` is {}, not a list of tables", field.0.get_ref(), type_of(value));
            self.wrong(field.1.span(), "this value", message, help);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for element in list.iter() {
            match element.get_ref().as_table() {
                Some(table) => tables.push((element.span(), table)),
                None => {
                    let is = type_of(element.get_ref());
                    let message = format!("an element of `{}` is {is}, not a table", field.0.get_ref());
                    self.wrong(element.span(), "this element", message, help.as_str());
                }
            }
        }
        tables
    }

    /// The value as a text.
    pub fn text<'a>(&mut self, field: Field<'a, '_>, rule: &str) -> Option<&'a str> {
        let text = field.1.get_ref().as_str();
        if text.is_none() {
            let is = format!("is {}", type_of(field.1.get_ref()));
            self.wrong_value(field, &Wrong::new(is, format!("it must be {rule}")));
        }
        text
    }

    /// The value as one of some words.
    pub fn word<T: Copy>(&mut self, field: Field<'_, '_>, words: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let rule = format!("one of {}", names.join(", "));
        let text = self.text(field, &rule)?;
        let found = words.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            self.wrong_value(field, &Wrong::new(format!("is `{text}`"), meant(text, &names, &rule)));
        }
        found.map(|(_, value)| *value)
    }

    /// The value as a bound of lengths.
    pub fn bound(&mut self, field: Field<'_, '_>) -> Option<Bound> {
        match field.1.get_ref() {
            DeValue::String(text) if text == DMA_MIN => Some(Bound::DmaMin),
            DeValue::String(text) if is_like_dma_min(text) => {
                self.wrong_value(field, &Wrong::new(format!("is `{text}`"), "it is written \"DMAmin\""));
                None
            }
            _ => self.bytes(field, "a size such as \"64 KiB\", or \"DMAmin\"").map(Bound::Bytes),
        }
    }

    /// The value as a size; DMAmin is none.
    pub fn size(&mut self, field: Field<'_, '_>) -> Option<u64> {
        let rule = "a size such as \"64 KiB\"";
        match field.1.get_ref() {
            DeValue::String(text) if is_like_dma_min(text) => {
                self.wrong_value(field, &Wrong::new(format!("is `{text}`"), format!("it must be {rule}")));
                None
            }
            _ => self.bytes(field, rule),
        }
    }

    fn bytes(&mut self, field: Field<'_, '_>, rule: &str) -> Option<u64> {
        let value = field.1.get_ref();
        let wrong = match value {
            DeValue::String(text) => match size::parse(text) {
                Ok(bytes) => return Some(bytes),
                Err(error) => Wrong::quantity(error),
            },
            DeValue::Integer(_) => match whole(value) {
                Some(bytes) => return Some(bytes),
                None => not_whole(value, rule),
            },
            other => Wrong::new(format!("is {}", type_of(other)), format!("it must be {rule}")),
        };
        self.wrong_value(field, &wrong);
        None
    }

    /// The value as a whole number within bounds.
    pub fn count(&mut self, field: Field<'_, '_>, least: u32, most: u32) -> Option<u32> {
        let rule = format!("a whole number from {least} to {most}");
        let value = field.1.get_ref();
        let wrong = match whole(value) {
            Some(number) => match u32::try_from(number) {
                Ok(number) if (least..=most).contains(&number) => return Some(number),
                _ => Wrong::new(format!("is {number}"), format!("it must be {rule}")),
            },
            None => not_whole(value, &rule),
        };
        self.wrong_value(field, &wrong);
        None
    }

    /// The way of this name, if a mechanism that is known has it.
    /// The built-in rules may name ways that a program's own mechanism of the
    /// same name does not have.
    pub fn way(&mut self, span: Range<usize>, text: &str) -> Option<PathName> {
        let way = if self.authority == Authority::Default { path_of_mechanism } else { way };
        match way(self.known, text) {
            Ok(way) => Some(way),
            Err(wrong) => {
                self.wrong(span, "this path", format!("`{text}` {}", wrong.is), wrong.help);
                None
            }
        }
    }
}

/// A help for a word that is none of some.
pub(super) fn meant(word: &str, known: &[&str], rule: &str) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? It must be {rule}"),
        None => format!("it must be {rule}"),
    }
}

/// A way by its name, whose mechanism is one that there is.
fn path_of_mechanism(known: &Known, text: &str) -> Result<PathName, Wrong> {
    let names = known.names();
    let way: PathName = text.parse().map_err(|_| {
        let models = Model::ALL.map(Model::name).join(", ");
        Wrong::new("names no model", format!("after the colon comes one of {models}"))
    })?;
    if known.meant(&way.name).next().is_none() {
        let help = match nearest(&way.name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the mechanisms are {}", names.join(", ")),
        };
        return Err(Wrong::new("is no mechanism", help));
    }
    Ok(way)
}

/// A way by its name, checked against the mechanisms that there are.
pub(super) fn way(known: &Known, text: &str) -> Result<PathName, Wrong> {
    let way = path_of_mechanism(known, text)?;
    if let Some(model) = way.model
        && !known.meant(&way.name).any(|facts| facts.models.contains(&model))
    {
        let mut can: Vec<String> = Vec::new();
        for model in known.meant(&way.name).flat_map(|facts| facts.models) {
            let name = format!("`{}:{model}`", way.name);
            if !can.contains(&name) {
                can.push(name);
            }
        }
        return Err(Wrong::new("is no model of this mechanism", format!("it has {}", can.join(", "))));
    }
    Ok(way)
}

/// Notes that a range holds no length.
pub(super) fn empty_range(reader: &mut Reader<'_>, bounds: &[Range<usize>]) {
    let label = |span: &Range<usize>| Mark { span: span.clone(), label: "bound of the range".to_owned() };
    let message = "no length is in this range".to_owned();
    reader.problem(
        bounds.iter().map(label).collect(),
        message,
        "`up_to` must be more than `above`".to_owned(),
    );
}
