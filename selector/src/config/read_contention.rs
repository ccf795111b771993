//! The table `[contention]` of a file.

use toml::de::{DeTable, DeValue};

use super::reader::{Field, Reader};
use super::table;
use super::value::{Wrong, type_of, whole};
use crate::contention::{Gamma, MessageCost, Parameters, Quadratic};

/// A file's figures and the line on which they begin.
pub(super) fn contention(reader: &mut Reader<'_>, field: Field<'_, '_>) -> Option<(Parameters, u32)> {
    let written = "[contention] on a line of its own, and keys below it";
    let table = reader.table(field, written)?;
    let before = reader.problems.len();
    let names = table::names(table::CONTENTION);
    for field in table {
        if !names.contains(&field.0.get_ref().as_ref()) {
            reader.unknown_key(field.0, "[contention]", &names);
        }
    }
    let mut keys = Keys { reader, table, header: field };
    let parameters = keys.parameters();
    if keys.reader.problems.len() > before {
        return None;
    }
    let parameters = parameters?;
    if let Err(wrong) = parameters.check() {
        let message = format!("these figures mean nothing: {wrong}");
        reader.wrong(field.0.span(), "this table", message, "run `lmt tune` to write it anew");
        return None;
    }
    Some((parameters, reader.line(field.0.span().start)))
}

/// The keys of the table that is being read.
struct Keys<'r, 'f, 'a, 'i> {
    reader: &'r mut Reader<'f>,
    table: &'a DeTable<'i>,
    header: Field<'a, 'i>,
}

impl<'a, 'i> Keys<'_, '_, 'a, 'i> {
    fn parameters(&mut self) -> Option<Parameters> {
        let [alpha_us, byte_ns, lock_us] = ["alpha_us", "byte_ns", "lock_us"].map(|key| self.needed(key));
        let [line_us, copy_ns, combine_ns] = ["line_us", "copy_ns", "combine_ns"].map(|key| self.needed(key));
        let page_bytes = self.whole("page_bytes");
        if page_bytes.is_none() && self.field("page_bytes").is_none() {
            self.missing("page_bytes");
        }
        let message = match [self.number("message_us"), self.number("message_byte_ns")] {
            [Some(start_us), Some(byte_ns)] => Some(MessageCost { start_us, byte_ns }),
            _ => None,
        };
        let cpus = self.whole("cpus").map(|cpus| u32::try_from(cpus).unwrap_or(u32::MAX));
        let measured = self.numbers("gamma").unwrap_or_default().into();
        Some(Parameters {
            alpha_us: alpha_us?,
            byte_ns: byte_ns?,
            lock_us: lock_us?,
            page_bytes: page_bytes?,
            gamma: Gamma { measured, fit: self.fit() },
            cpus,
            line_us: line_us?,
            copy_ns: copy_ns?,
            combine_ns: combine_ns?,
            message,
        })
    }

    fn field(&self, key: &str) -> Option<Field<'a, 'i>> {
        self.table.iter().find(|field| field.0.get_ref().as_ref() == key)
    }

    fn missing(&mut self, key: &str) {
        let message = format!("the table has no `{key}`");
        self.reader.wrong(self.header.0.span(), "this table", message, "run `lmt tune` to write it anew");
    }

    fn needed(&mut self, key: &str) -> Option<f64> {
        if self.field(key).is_none() {
            self.missing(key);
        }
        self.number(key)
    }

    fn number(&mut self, key: &str) -> Option<f64> {
        let field = self.field(key)?;
        let number = number(field.1.get_ref());
        if number.is_none() {
            self.refused(field, "a number");
        }
        number
    }

    fn whole(&mut self, key: &str) -> Option<u64> {
        let field = self.field(key)?;
        let number = whole(field.1.get_ref());
        if number.is_none() {
            self.refused(field, "a whole number from 1 up");
        }
        number
    }

    fn numbers(&mut self, key: &str) -> Option<Vec<f64>> {
        let field = self.field(key)?;
        let list = field.1.get_ref().as_array();
        let numbers: Option<Vec<f64>> =
            list.and_then(|list| list.iter().map(|element| number(element.get_ref())).collect());
        if numbers.is_none() {
            self.refused(field, "a list of numbers");
        }
        numbers
    }

    fn fit(&mut self) -> Option<Quadratic> {
        match self.numbers("gamma_fit")?[..] {
            [squared, linear] => Some(Quadratic { squared, linear }),
            _ => {
                let field = self.field("gamma_fit")?;
                let is = "has not two numbers";
                let rule = "it must be those of the square and of the number of readers";
                self.reader.wrong_value(field, &Wrong::new(is, rule));
                None
            }
        }
    }

    fn refused(&mut self, field: Field<'_, '_>, rule: &str) {
        let is = format!("is {}", type_of(field.1.get_ref()));
        self.reader.wrong_value(field, &Wrong::new(is, format!("it must be {rule}")));
    }
}

/// A number with or without a point.
fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        value => whole(value).map(|whole| whole as f64),
    }
}

#[cfg(test)]
#[path = "read_contention_tests.rs"]
mod tests;
