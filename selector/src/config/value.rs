//! Values of keys: read from TOML and from the environment, and shown.

use lmt_core::config::{ConfigError, KEYS};
use lmt_core::config_key::{Kind, Value};
use toml::de::DeValue;

use crate::nearest::nearest;
use crate::size::{self, QuantityError};

/// What stands for nothing, where a key may have no value.
pub(super) const NONE: &str = "none";
/// What stands for all mechanisms.
pub(super) const AUTO: &str = "auto";

/// Why something is not a value: to follow the key's name, and what would be
/// right.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Follows the key's name.
    pub is: String,
    /// A sentence's second half.
    pub help: String,
}

impl Wrong {
    pub fn new(is: impl Into<String>, help: impl Into<String>) -> Self {
        Self { is: is.into(), help: help.into() }
    }

    /// As [`Self::quantity`], for a key that has other bounds than a quantity: a
    /// help that it would refuse next is none.
    pub fn quantity_of(kind: Kind, error: QuantityError) -> Self {
        let parse = if matches!(kind, Kind::Milliseconds { .. }) { size::parse_time } else { size::parse };
        let wrong = Self::quantity(error);
        match wrong.suggestion().and_then(|text| parse(text).ok()) {
            Some(number) if !kind.allows(&Value::Number(number)) => {
                Self { help: format!("it must be {}", rule(kind)), ..wrong }
            }
            _ => wrong,
        }
    }

    /// What the help says is to be written.
    pub fn suggestion(&self) -> Option<&str> {
        self.help.split_once("write \"")?.1.strip_suffix('"')
    }

    pub fn quantity(error: QuantityError) -> Self {
        match error {
            QuantityError::NoNumber { text, right } => {
                Self::new(format!("is `{text}`, which does not begin with a whole number"), right)
            }
            QuantityError::Unit { text, unit, right } if unit.is_empty() => {
                Self::new(format!("is the text `{text}`, which has no unit"), right)
            }
            QuantityError::Unit { text, unit, right } => {
                Self::new(format!("is `{text}`, whose unit `{unit}` is not known"), right)
            }
            QuantityError::TooLarge { text, right } => {
                Self::new(format!("is `{text}`, which is too large"), right)
            }
        }
    }
}

/// What a value of this kind must be, with sizes and times as people write
/// them; to follow "it must be".
pub(super) fn rule(kind: Kind) -> String {
    match kind {
        Kind::Bytes { least, most, multiple_of } => {
            let multiple = match multiple_of {
                1 => String::new(),
                of => format!(" that is a multiple of {}", size::written(of)),
            };
            format!("a size{multiple}{}", bounds(least, most, size::written))
        }
        Kind::Milliseconds { least, most } => format!("a time{}", bounds(least, most, size::written_time)),
        Kind::Cpu => format!("the number of a CPU, or \"{NONE}\""),
        Kind::Folder => format!("a folder, or \"{NONE}\""),
        Kind::Mechanisms => format!("a list of mechanisms, or \"{AUTO}\""),
        other => other.to_string(),
    }
}

/// The bounds in words, with a space or comma in front; nothing where there are
/// none.
pub(super) fn bounds(least: u64, most: u64, written: fn(u64) -> String) -> String {
    match (least, most) {
        (0, u64::MAX) => String::new(),
        (0, most) => format!(", at most {}", written(most)),
        (least, u64::MAX) => format!(", at least {}", written(least)),
        (least, most) => format!(" from {} to {}", written(least), written(most)),
    }
}

/// A value as a file has it, with a unit where its kind has one.
pub fn shown(kind: Kind, value: &Value) -> String {
    match (kind, value) {
        (Kind::Bytes { .. }, Value::Number(bytes)) => format!("\"{}\"", size::written(*bytes)),
        (Kind::Milliseconds { .. }, Value::Number(time)) => format!("\"{}\"", size::written_time(*time)),
        (Kind::Mechanisms, Value::Absent) => format!("\"{AUTO}\""),
        (_, Value::Absent) => format!("\"{NONE}\""),
        (_, Value::Text(text)) => super::write::quoted(text),
        (_, Value::Names(names)) => super::write::list(names),
        (_, value) => value.to_string(),
    }
}

/// What a TOML value is, with its article.
pub(super) fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A whole number that is not negative and fits 64 bits.
pub(super) fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Why a number of TOML is not one that can be used here.
pub(super) fn not_whole(value: &DeValue<'_>, rule: &str) -> Wrong {
    match value.as_integer() {
        Some(number) if number.as_str().starts_with('-') => {
            Wrong::new(format!("is {}, which is negative", number.as_str()), format!("it must be {rule}"))
        }
        Some(number) => {
            Wrong::new(format!("is {}, which is too large", number.as_str()), format!("it must be {rule}"))
        }
        None => Wrong::new(format!("is {}", type_of(value)), format!("it must be {rule}")),
    }
}

/// A value of this kind out of TOML.
pub(super) fn from_toml(kind: Kind, value: &DeValue<'_>) -> Result<Value, Wrong> {
    let rule = rule(kind);
    let wrong_type = || {
        let quoted = match value {
            DeValue::String(text) if from_text(kind, text).is_ok() => " without quotes",
            _ => "",
        };
        Wrong::new(format!("is {}", type_of(value)), format!("it must be {rule}{quoted}"))
    };
    let read = match (kind, value) {
        (Kind::Bytes { .. }, DeValue::String(text)) => {
            size::parse(text).map(Value::Number).map_err(|error| Wrong::quantity_of(kind, error))?
        }
        (Kind::Milliseconds { .. }, DeValue::String(text)) => {
            size::parse_time(text).map(Value::Number).map_err(|error| Wrong::quantity_of(kind, error))?
        }
        (Kind::Cpu | Kind::Folder, DeValue::String(text)) if text == NONE => Value::Absent,
        (Kind::Mechanisms, DeValue::String(text)) if text == AUTO => Value::Absent,
        (Kind::Folder, DeValue::String(text)) if text.is_empty() => {
            return Err(Wrong::new("is empty", format!("it must be {rule}")));
        }
        (Kind::Folder | Kind::Copies | Kind::Word(_), DeValue::String(text)) => {
            Value::Text(text.clone().into_owned())
        }
        (Kind::Mechanisms, DeValue::Array(list)) => {
            let names = list.iter().map(|name| name.get_ref().as_str().map(str::to_owned));
            Value::Names(names.collect::<Option<_>>().ok_or_else(|| {
                Wrong::new("is a list of more than names", format!("it must be {rule}, each name in quotes"))
            })?)
        }
        (Kind::Flag, DeValue::Boolean(flag)) => Value::Flag(*flag),
        (
            Kind::Bytes { .. }
            | Kind::Count { .. }
            | Kind::PowerOfTwo { .. }
            | Kind::Milliseconds { .. }
            | Kind::Cpu,
            DeValue::Integer(_),
        ) => Value::Number(whole(value).ok_or_else(|| not_whole(value, &rule))?),
        _ => return Err(wrong_type()),
    };
    within(kind, read)
}

/// The value of one of an endpoint's keys ([`lmt_core::config::KEYS`]), written as
/// in its environment variable.
///
/// ```
/// use lmt_core::config_key::Value;
/// use lmt_selector::config::value_of;
///
/// assert_eq!(value_of("eager_max_bytes", "8KiB"), Ok(Value::Number(8192)));
/// let error = value_of("eager_max_bytes", "much").unwrap_err();
/// assert!(error.starts_with("the key eager_max_bytes is `much`"), "{error}");
/// ```
///
/// # Errors
/// One sentence: there is no such key, or it cannot have that value.
pub fn value_of(key: &str, text: &str) -> Result<Value, String> {
    let Some(known) = KEYS.iter().find(|known| known.name == key) else {
        return Err(ConfigError::UnknownKey { key: key.to_owned() }.to_string());
    };
    from_text(known.kind, text).map_err(|wrong| format!("the key {key} {}; {}", wrong.is, wrong.help))
}

/// Whether a text is a number without sign or unit.
pub(super) fn is_plain_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A value of this kind out of the environment, where numbers need no unit, and
/// blanks around a value mean nothing unless it is a path.
pub(super) fn from_text(kind: Kind, text: &str) -> Result<Value, Wrong> {
    let rule = rule(kind);
    let text = if matches!(kind, Kind::Folder) { text } else { text.trim() };
    let wrong = || Wrong::new(format!("is `{text}`"), format!("it must be {rule}"));
    let quantity = |error| Wrong::quantity_of(kind, error);
    let read = match kind {
        Kind::Bytes { .. } if !is_plain_number(text) => Value::Number(size::parse(text).map_err(quantity)?),
        Kind::Milliseconds { .. } if !is_plain_number(text) => {
            Value::Number(size::parse_time(text).map_err(quantity)?)
        }
        Kind::Cpu | Kind::Folder if text == NONE => Value::Absent,
        Kind::Mechanisms if text == AUTO => Value::Absent,
        Kind::Mechanisms => Value::Names(text.split(',').map(|name| name.trim().to_owned()).collect()),
        Kind::Folder | Kind::Copies | Kind::Word(_) => Value::Text(text.to_owned()),
        Kind::Flag => match text {
            "true" | "1" => Value::Flag(true),
            "false" | "0" => Value::Flag(false),
            _ => return Err(wrong()),
        },
        _ if !is_plain_number(text) => return Err(wrong()),
        _ => {
            let too_large =
                || Wrong::new(format!("is {text}, which is too large"), format!("it must be {rule}"));
            Value::Number(text.parse().map_err(|_| too_large())?)
        }
    };
    within(kind, read)
}

/// The value, if it is within its kind's bounds.
fn within(kind: Kind, value: Value) -> Result<Value, Wrong> {
    if kind.allows(&value) {
        return Ok(value);
    }
    let mut help = format!("it must be {}", rule(kind));
    if let (Kind::Word(words), Value::Text(word)) = (kind, &value)
        && let Some(near) = nearest(word, words.iter().copied())
    {
        help = format!("did you mean \"{near}\"? It must be {}", rule(kind));
    }
    let what = match &value {
        Value::Names(names) if names.is_empty() => "an empty list".to_owned(),
        other => shown(kind, other),
    };
    Err(Wrong::new(format!("is {what}"), help))
}
