//! Rules and figures of a file.

use std::ops::Range;

use lmt_core::config::EAGER_MAX_BYTES;
use lmt_core::selection::{Reuse, Warmth};
use toml::de::{DeTable, DeValue};

use super::reader::{Field, Reader, RulePlace};
use super::table;
use super::value::{Wrong, not_whole, type_of, whole};
use crate::rules::{Bound, Figure, Rule, SingleCopy, Take};
use crate::size;
use crate::topology::Place;

/// The most rules of one file: they are compared with each other whenever it is
/// read.
pub(super) const MAX_RULES: usize = 1024;

/// A rule and where it stands.
struct Placed {
    rule: Rule,
    place: RulePlace,
}

/// The rules of a file, checked one by one.
pub(super) fn rules(reader: &mut Reader<'_>, field: Field<'_, '_>) -> Vec<Rule> {
    let tables = reader.tables(field, "[[rule]]");
    if let Some((span, _)) = tables.get(MAX_RULES) {
        let message = format!("the file has {} rules", tables.len());
        reader.wrong(span.clone(), "one too many", message, format!("write at most {MAX_RULES}"));
        return Vec::new();
    }
    let count = tables.len();
    let placed: Vec<Placed> =
        tables.into_iter().filter_map(|(span, table)| rule(reader, span, table)).collect();
    reader.places.lacks_rules = placed.len() < count;
    let (rules, places) = placed.into_iter().map(|placed| (placed.rule, placed.place)).unzip();
    reader.places.rules = places;
    rules
}

fn rule(reader: &mut Reader<'_>, header: Range<usize>, table: &DeTable<'_>) -> Option<Placed> {
    let problems = reader.problems.len();
    let rule = Rule {
        above: None,
        up_to: None,
        places: Vec::new(),
        contiguous: None,
        warmth: None,
        reuse: None,
        min_processes: None,
        single_copy: None,
        take: Take::Eager,
        max_readers: None,
        line: reader.line(header.start),
    };
    let mut placed = Placed { rule, place: RulePlace { header, bounds: Vec::new() } };
    let mut take_span = None;
    for field in table {
        if field.0.get_ref() == "take" {
            take_span = Some(field.1.span());
        }
        rule_key(reader, &mut placed, field);
    }
    match take_span {
        None => {
            let message = "this rule does not say what is taken".to_owned();
            let example = reader.known.example();
            let help = format!("write take = \"eager\" or a list of paths, such as take = [\"{example}\"]");
            reader.wrong(placed.place.header.clone(), "`take` is missing", message, help);
        }
        Some(span) if reader.problems.len() == problems && placed.rule.take == Take::Eager => {
            eager(reader, &placed.rule, span)
        }
        Some(_) => {}
    }
    (reader.problems.len() == problems).then_some(placed)
}

fn rule_key(reader: &mut Reader<'_>, placed: &mut Placed, field: Field<'_, '_>) {
    let Placed { rule, place } = placed;
    match field.0.get_ref().as_ref() {
        "above" => {
            rule.above = reader.bound(field);
            place.bounds.push(field.1.span());
        }
        "up_to" => {
            rule.up_to = reader.bound(field);
            place.bounds.push(field.1.span());
        }
        "place" => rule.places = places(reader, field),
        "segments" => rule.contiguous = reader.word(field, &[("one", true), ("many", false)]),
        "sender" => rule.warmth = reader.word(field, &[("warm", Warmth::Warm), ("cold", Warmth::Cold)]),
        "reuse" => rule.reuse = reader.word(field, &[("again", Reuse::Again), ("once", Reuse::Once)]),
        "min_processes" => rule.min_processes = reader.count(field, 2, 65536),
        "single_copy" => {
            let words = [SingleCopy::Fast, SingleCopy::Slow].map(|speed| (speed.name(), speed));
            rule.single_copy = reader.word(field, &words);
        }
        "max_readers" => rule.max_readers = reader.count(field, 1, u32::MAX),
        "take" => rule.take = take(reader, field).unwrap_or(Take::Eager),
        _ => reader.unknown_key(field.0, "[[rule]]", &table::names(table::RULE)),
    }
}

/// What holds for rules that take cells.
fn eager(reader: &mut Reader<'_>, rule: &Rule, span: Range<usize>) {
    let begins_at_0 = matches!(rule.above, None | Some(Bound::Bytes(0)));
    let ends = matches!(rule.up_to, Some(Bound::Bytes(bytes)) if bytes <= EAGER_MAX_BYTES);
    if !begins_at_0 {
        let message = "a rule that takes \"eager\" begins at the shortest message".to_owned();
        reader.wrong(span.clone(), "taken by this rule", message, "leave `above` out");
    }
    if !ends {
        let message =
            format!("a rule that takes \"eager\" ends at {} at most", size::written(EAGER_MAX_BYTES));
        reader.wrong(
            span.clone(),
            "taken by this rule",
            message,
            "set `up_to` to a size within that, such as \"64 KiB\"",
        );
    }
    if rule.max_readers.is_some() {
        let message =
            "`max_readers` has no effect where cells are taken: nobody reads them out of the sender"
                .to_owned();
        reader.wrong(span.clone(), "taken by this rule", message, "leave `max_readers` out");
    }
    let of_a_message = [
        ("segments", rule.contiguous.is_some()),
        ("sender", rule.warmth.is_some()),
        ("reuse", rule.reuse.is_some()),
    ];
    for (key, _) in of_a_message.into_iter().filter(|(_, is_set)| *is_set) {
        let message = format!(
            "a rule that takes \"eager\" cannot ask for `{key}`: the length up to which cells are taken is the same for all messages to a peer"
        );
        reader.wrong(span.clone(), "taken by this rule", message, format!("leave `{key}` out"));
    }
}

fn place(reader: &mut Reader<'_>, span: Range<usize>, text: &str) -> Option<Place> {
    let found = text.parse().ok();
    if found.is_none() {
        let names = Place::ALL.map(Place::name);
        let help = super::reader::meant(text, &names, &format!("one of {}", names.join(", ")));
        reader.wrong(span, "this place", format!("there is no place `{text}`"), help);
    }
    found
}

/// Texts of a list, each with its place; a single text stands for a list of it.
fn texts<'a>(reader: &mut Reader<'_>, field: Field<'a, '_>, rule: &str) -> Vec<(Range<usize>, &'a str)> {
    match field.1.get_ref() {
        DeValue::String(text) => vec![(field.1.span(), text.as_ref())],
        DeValue::Array(list) if !list.is_empty() => {
            let mut texts = Vec::new();
            for element in list.iter() {
                match element.get_ref().as_str() {
                    Some(text) => texts.push((element.span(), text)),
                    None => {
                        let is = type_of(element.get_ref());
                        let message = format!("an element of `{}` is {is}", field.0.get_ref());
                        reader.wrong(element.span(), "this element", message, format!("it must be {rule}"));
                    }
                }
            }
            texts
        }
        DeValue::Array(_) => {
            reader
                .wrong_value(field, &Wrong::new("is an empty list", format!("name {rule}, or leave it out")));
            Vec::new()
        }
        other => {
            reader.wrong_value(
                field,
                &Wrong::new(format!("is {}", type_of(other)), format!("it must be {rule}")),
            );
            Vec::new()
        }
    }
}

fn places(reader: &mut Reader<'_>, field: Field<'_, '_>) -> Vec<Place> {
    let mut places = Vec::new();
    for (span, text) in texts(reader, field, "a place or a list of places") {
        let Some(place) = place(reader, span.clone(), text) else { continue };
        if places.contains(&place) {
            reader.wrong(span, "again", format!("the place `{text}` is named twice"), "name it once");
        }
        places.push(place);
    }
    places
}

fn take(reader: &mut Reader<'_>, field: Field<'_, '_>) -> Option<Take> {
    if field.1.get_ref().as_str() == Some("eager") {
        return Some(Take::Eager);
    }
    let mut ways = Vec::new();
    let rule = format!("\"eager\" or a list of paths, such as [\"{}\"]", reader.known.example());
    for (span, text) in texts(reader, field, &rule) {
        if text == "eager" {
            let message = "\"eager\" cannot stand in a list of paths".to_owned();
            reader.wrong(span, "this path", message, "write take = \"eager\", or name mechanisms only");
            continue;
        }
        let Some(way) = reader.way(span.clone(), text) else { continue };
        if ways.contains(&way) {
            reader.wrong(span, "again", format!("the path `{text}` is named twice"), "name it once");
        }
        ways.push(way);
    }
    (!ways.is_empty()).then_some(Take::Ways(ways))
}

/// The figures of a calibration.
pub(super) fn figures(reader: &mut Reader<'_>, field: Field<'_, '_>) -> Vec<Figure> {
    let tables = reader.tables(field, "[[figure]]");
    tables.into_iter().filter_map(|(span, table)| figure(reader, span, table)).collect()
}

fn figure(reader: &mut Reader<'_>, header: Range<usize>, table: &DeTable<'_>) -> Option<Figure> {
    let problems = reader.problems.len();
    let (mut place_of, mut pairs, mut off_cache) = (None, None, None);
    let (mut bytes, mut way, mut median_ns) = (None, None, None);
    let mut seen: Vec<&str> = Vec::new();
    for field in table {
        seen.push(field.0.get_ref());
        match field.0.get_ref().as_ref() {
            "place" => {
                let text = reader.text(field, "a place");
                place_of = text.and_then(|text| place(reader, field.1.span(), text));
            }
            "pairs" => pairs = reader.count(field, 1, u32::MAX),
            "off_cache" => off_cache = flag(reader, field),
            "bytes" => bytes = reader.size(field),
            // What a mechanism was called when it was measured need not be
            // known any more.
            "way" => {
                let rule = format!("a path such as \"{}\", or \"eager\"", reader.known.example());
                way = reader.text(field, &rule).map(str::to_owned);
            }
            "median_ns" => {
                median_ns = whole(field.1.get_ref());
                if median_ns.is_none() {
                    let wrong = not_whole(field.1.get_ref(), "a whole number of nanoseconds");
                    reader.wrong_value(field, &wrong);
                }
            }
            _ => reader.unknown_key(field.0, "[[figure]]", &table::names(table::FIGURE)),
        }
    }
    let names = table::names(table::FIGURE);
    let missing: Vec<&str> = names.into_iter().filter(|name| !seen.contains(name)).collect();
    if !missing.is_empty() {
        let message = format!("this figure lacks {}", missing.join(", "));
        reader.wrong(header, "this figure", message, "run `lmt tune` to write it anew");
    }
    if reader.problems.len() > problems {
        return None;
    }
    Some(Figure {
        place: place_of?,
        pairs: pairs?,
        off_cache: off_cache?,
        bytes: bytes?,
        way: way?,
        median_ns: median_ns?,
    })
}

fn flag(reader: &mut Reader<'_>, field: Field<'_, '_>) -> Option<bool> {
    let flag = field.1.get_ref().as_bool();
    if flag.is_none() {
        let is = format!("is {}", type_of(field.1.get_ref()));
        reader.wrong_value(field, &Wrong::new(is, "it must be true or false, without quotes"));
    }
    flag
}
