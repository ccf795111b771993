//! One file, read and checked.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use lmt_core::config::KEYS;
use lmt_core::config_key::Value;
use toml::de::{DeTable, DeValue};

use super::known::Known;
use super::parsed::{MechanismEntry, Parsed, Provenance};
use super::problem::Problem;
use super::reader::{Field, Places, Reader, RulePlace, meant, way};
use super::table::{self, BY_CORES, BY_PROCESSES, MAX_READERS, SINGLE_COPY};
use super::value::{Wrong, from_toml, is_plain_number, type_of, whole};
use crate::configuration::DmaMinSetting;
use crate::rules::{Authority, Layer, MechanismRange, SingleCopy};
use crate::size::{self, QuantityError};

/// The tables of a file.
const TABLES: [&str; 8] =
    ["endpoint", "selection", "mechanism", "rule", "collective", "calibration", "contention", "figure"];

/// Reads one file's text and checks it. A user's file that holds a table
/// `[calibration]` is a calibration.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text; while it is no
/// TOML, only that.
pub fn parse_file(
    path: &Path,
    text: &str,
    authority: Authority,
    known: &Known,
) -> Result<Parsed, Vec<Problem>> {
    let mut reader = Reader {
        path,
        authority,
        source: Arc::from(text),
        known,
        problems: Vec::new(),
        places: Places::default(),
    };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        syntax(&mut reader, error);
    }
    // With a key twice all else is as it was written.
    if !errors.iter().all(is_of_a_key_twice) {
        return Err(in_order(reader.problems));
    }
    let is_calibration = root.get_ref().iter().any(|field| field.0.get_ref() == "calibration");
    let authority = match authority {
        Authority::User if is_calibration => Authority::Calibration,
        other => other,
    };
    let layer = Layer {
        authority,
        path: path.to_owned(),
        rules: Vec::new(),
        ranges: Vec::new(),
        figures: Vec::new(),
    };
    let mut parsed = Parsed {
        endpoint: Vec::new(),
        dma_min: None,
        max_readers: None,
        single_copy: None,
        mechanisms: Vec::new(),
        layer,
        calibration: None,
        contention: None,
        collectives: Vec::new(),
        collective_problems: Vec::new(),
    };
    for field in root.get_ref() {
        top_level(&mut reader, &mut parsed, field);
    }
    super::compare::compare(&mut reader, &parsed);
    if parsed.calibration.is_none() && !parsed.layer.figures.is_empty() {
        let problem = "it has figures and no table [calibration] that says where they come from";
        reader.problems.push(Problem::of_file(path, problem.to_owned(), "run `lmt tune` to write it anew"));
    }
    if reader.problems.is_empty() { Ok(parsed) } else { Err(in_order(reader.problems)) }
}

fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems
}

fn is_of_a_key_twice(error: &toml::de::Error) -> bool {
    error.message().contains("duplicate key")
}

/// The parser's own errors.
fn syntax(reader: &mut Reader<'_>, error: &toml::de::Error) {
    let message = error.message().replace('\n', "; ");
    let (message, help) = match is_of_a_key_twice(error) {
        true => ("this key stands here a second time".to_owned(), "keep one of the two"),
        false => (format!("this is no TOML: {message}"), "see https://toml.io for what is"),
    };
    let span = error.span().unwrap_or_default();
    reader.wrong(span, "here", message, help);
}

fn top_level(reader: &mut Reader<'_>, parsed: &mut Parsed, field: Field<'_, '_>) {
    let name: &str = field.0.get_ref();
    match name {
        "endpoint" => endpoint(reader, parsed, field),
        "selection" => selection(reader, parsed, field),
        "mechanism" => mechanisms(reader, parsed, field),
        "rule" => parsed.layer.rules = super::read_rule::rules(reader, field),
        "collective" => collectives(reader, parsed, field),
        "figure" => parsed.layer.figures = super::read_rule::figures(reader, field),
        "calibration" => calibration(reader, parsed, field),
        "contention" => parsed.contention = super::read_contention::contention(reader, field),
        _ => {
            let is_of = |keys: &[&str]| keys.contains(&name);
            let help = if KEYS.iter().any(|key| key.name == name) {
                format!("`{name}` stands in [endpoint]")
            } else if is_of(&SELECTION_KEYS) {
                format!("`{name}` stands in [selection]")
            } else {
                meant(name, &TABLES, &format!("one of {}", TABLES.join(", ")))
            };
            reader.wrong(field.0.span(), "unknown", format!("there is no table or key `{name}`"), help);
        }
    }
}

/// A user's rules stop only those who make groups, where these are the ones to refuse
/// them.
fn collectives(reader: &mut Reader<'_>, parsed: &mut Parsed, field: Field<'_, '_>) {
    let before = reader.problems.len();
    parsed.collectives = super::read_collective::collectives(reader, &parsed.layer, field);
    if reader.known.collectives.is_none() && parsed.layer.authority == Authority::User {
        parsed.collective_problems = reader.problems.split_off(before);
    }
}

fn endpoint(reader: &mut Reader<'_>, parsed: &mut Parsed, field: Field<'_, '_>) {
    let Some(table) = reader.table(field, "[endpoint] on a line of its own, and keys below it") else {
        return;
    };
    for field in table {
        let Some(key) = KEYS.iter().find(|key| key.name == field.0.get_ref().as_ref()) else {
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            reader.unknown_key(field.0, "[endpoint]", &names);
            continue;
        };
        match from_toml(key.kind, field.1.get_ref()) {
            Ok(value) => {
                if let Value::Names(names) = &value {
                    ways(reader, field, names);
                }
                parsed.endpoint.push((key.name, value, reader.line(field.0.span().start)));
                reader.places.endpoint.push((key.name, field.0.span()));
            }
            Err(wrong) => reader.wrong_value(field, &wrong),
        }
    }
}

/// Checks the ways of a list of TOML, each at its own place.
fn ways(reader: &mut Reader<'_>, field: Field<'_, '_>, names: &[String]) {
    let Some(list) = field.1.get_ref().as_array() else { return };
    for (element, name) in list.iter().zip(names) {
        reader.way(element.span(), name);
    }
}

const SELECTION_KEYS: [&str; 3] = ["dma_min", MAX_READERS.name, SINGLE_COPY.name];

fn selection(reader: &mut Reader<'_>, parsed: &mut Parsed, field: Field<'_, '_>) {
    let Some(table) = reader.table(field, "[selection] on a line of its own, and keys below it") else {
        return;
    };
    for field in table {
        let line = reader.line(field.0.span().start);
        match field.0.get_ref().as_ref() {
            "dma_min" => match dma_min_of_toml(field.1.get_ref()) {
                Ok(setting) => parsed.dma_min = Some((setting, line)),
                Err(wrong) => reader.wrong_value(field, &wrong),
            },
            "max_readers" => match from_toml(MAX_READERS.kind, field.1.get_ref()) {
                // Within the key's bounds it fits 32 bits.
                Ok(Value::Number(readers)) => parsed.max_readers = Some((readers as u32, line)),
                Ok(_) => {}
                Err(wrong) => reader.wrong_value(field, &wrong),
            },
            "single_copy" => match from_toml(SINGLE_COPY.kind, field.1.get_ref()) {
                Ok(Value::Text(word)) => parsed.single_copy = Some((SingleCopy::from_name(&word), line)),
                Ok(_) => {}
                Err(wrong) => reader.wrong_value(field, &wrong),
            },
            _ => reader.unknown_key(field.0, "[selection]", &SELECTION_KEYS),
        }
    }
}

fn dma_min_of_toml(value: &DeValue<'_>) -> Result<DmaMinSetting, Wrong> {
    match value {
        DeValue::String(text) => dma_min(text),
        DeValue::Integer(_) => at_least_one(whole(value)),
        other => Err(Wrong::new(format!("is {}", type_of(other)), dma_min_rule())),
    }
}

fn dma_min_rule() -> String {
    format!("it must be \"{BY_CORES}\", \"{BY_PROCESSES}\" or a size such as \"1 MiB\"")
}

fn at_least_one(bytes: Option<u64>) -> Result<DmaMinSetting, Wrong> {
    match bytes {
        Some(bytes) if bytes > 0 => Ok(DmaMinSetting::Bytes(bytes)),
        _ => Err(Wrong::new("is no size from 1 B up", dma_min_rule())),
    }
}

/// A help that would be refused next is none.
fn dma_min_quantity(error: QuantityError) -> Wrong {
    let wrong = Wrong::quantity(error);
    match wrong.suggestion().and_then(|text| size::parse(text).ok()) {
        Some(0) => Wrong { help: dma_min_rule(), ..wrong },
        _ => wrong,
    }
}

/// How DMAmin is found, by a variable, in which a size needs no unit.
pub(super) fn dma_min_of_variable(text: &str) -> Result<DmaMinSetting, Wrong> {
    match text.trim() {
        number if is_plain_number(number) => at_least_one(number.parse().ok()),
        other => dma_min(other),
    }
}

/// How DMAmin is found, by its text.
fn dma_min(text: &str) -> Result<DmaMinSetting, Wrong> {
    match text.trim() {
        BY_CORES => Ok(DmaMinSetting::ByCores),
        BY_PROCESSES => Ok(DmaMinSetting::ByProcesses),
        size if size.starts_with(|first: char| first.is_ascii_digit()) => {
            at_least_one(Some(size::parse(size).map_err(dma_min_quantity)?))
        }
        other => Err(Wrong::new(
            format!("is `{other}`"),
            meant(other, &[BY_CORES, BY_PROCESSES], dma_min_rule().trim_start_matches("it must be ")),
        )),
    }
}

fn mechanisms(reader: &mut Reader<'_>, parsed: &mut Parsed, field: Field<'_, '_>) {
    let example = format!("[mechanism.NAME], for instance [mechanism.{}]", reader.known.example());
    let Some(table) = reader.table(field, &example) else { return };
    for field in table {
        let name: &str = field.0.get_ref();
        let known = reader.known;
        let wrong = match way(known, name) {
            Err(wrong) => Some(wrong),
            Ok(way) if way.model.is_some() => Some(Wrong::new("says who copies", "leave that out")),
            Ok(_) => None,
        };
        if let Some(wrong) = wrong {
            reader.wrong(field.0.span(), "this name", format!("`{name}` {}", wrong.is), wrong.help);
            continue;
        }
        mechanism(reader, parsed, field);
    }
}

fn mechanism(reader: &mut Reader<'_>, parsed: &mut Parsed, field: Field<'_, '_>) {
    let name: &str = field.0.get_ref();
    let title = format!("[mechanism.{name}]");
    let Some(table) = reader.table(field, &format!("{title} on a line of its own")) else { return };
    let line = reader.line(field.0.span().start);
    let mut range = MechanismRange { mechanism: name.to_owned(), above: None, up_to: None, line };
    let mut bounds: Vec<Range<usize>> = Vec::new();
    for field in table {
        let key_name: &str = field.0.get_ref();
        match key_name {
            "above" => range.above = reader.bound(field),
            "up_to" => range.up_to = reader.bound(field),
            _ => {
                mechanism_key(reader, parsed, name, field);
                continue;
            }
        }
        bounds.push(field.1.span());
    }
    if range.above.is_some() || range.up_to.is_some() {
        parsed.layer.ranges.push(range);
        reader.places.ranges.push(RulePlace { header: field.0.span(), bounds });
    }
}

fn mechanism_key(reader: &mut Reader<'_>, parsed: &mut Parsed, name: &str, field: Field<'_, '_>) {
    let known = reader.known;
    let found =
        known.meant(name).flat_map(|facts| facts.keys).find(|key| key.name == field.0.get_ref().as_ref());
    let Some(key) = found else {
        let mut names: Vec<&str> =
            known.meant(name).flat_map(|facts| facts.keys).map(|key| key.name).collect();
        names.extend(table::names(table::RANGE));
        names.dedup();
        reader.unknown_key(field.0, &format!("[mechanism.{name}]"), &names);
        return;
    };
    match from_toml(key.kind, field.1.get_ref()) {
        Ok(value) => {
            let line = reader.line(field.0.span().start);
            parsed.mechanisms.push(MechanismEntry { mechanism: name.to_owned(), key: key.name, value, line });
        }
        Err(wrong) => reader.wrong_value(field, &wrong),
    }
}

fn calibration(reader: &mut Reader<'_>, parsed: &mut Parsed, field: Field<'_, '_>) {
    let Some(table) = reader.table(field, "[calibration] on a line of its own, and keys below it") else {
        return;
    };
    let mut provenance = Provenance { complete: true, ..Provenance::default() };
    let names = table::names(table::CALIBRATION);
    for field in table {
        let Some(name) = names.iter().find(|name| **name == field.0.get_ref().as_ref()) else {
            reader.unknown_key(field.0, "[calibration]", &names);
            continue;
        };
        let value = field.1.get_ref();
        let told = match (*name, value) {
            ("complete", DeValue::Boolean(complete)) => {
                provenance.complete = *complete;
                complete.to_string()
            }
            ("date", DeValue::Datetime(date)) => date.to_string(),
            ("complete", other) => {
                let is = format!("is {}", type_of(other));
                reader.wrong_value(field, &Wrong::new(is, "it must be true or false".to_owned()));
                continue;
            }
            ("skipped", DeValue::Array(sentences)) if sentences.iter().all(|s| s.get_ref().is_str()) => {
                sentences.iter().filter_map(|s| s.get_ref().as_str()).collect::<Vec<_>>().join("; ")
            }
            ("skipped", other) => {
                let is = format!("is {}", type_of(other));
                reader.wrong_value(field, &Wrong::new(is, "it must be a list of texts".to_owned()));
                continue;
            }
            _ => match reader.text(field, "a text") {
                Some(text) => text.to_owned(),
                None => continue,
            },
        };
        if *name == "machine" {
            provenance.machine = Some(told.clone());
        }
        provenance.told.push((name, told));
    }
    parsed.calibration = Some(provenance);
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
