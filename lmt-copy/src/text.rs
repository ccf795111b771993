//! What copies are made by, as configuration files say it.

use std::fmt;
use std::str::FromStr;

use crate::copier::{Alignment, CLASSES, Copier, Distance, LARGEST_CLASS_BYTES, MIN_TABLE_BYTES, bounds};
use crate::routine::Routine;

/// What copies are to be made by: the value of the key `copy_routine`.
///
/// `auto`, or entries with commas between them, of which the first that fits a
/// copy speaks; what none fits is the C library's. An entry is a routine's name
/// and, in any order, an alignment, a distance and a range of lengths `A-B`:
/// longer than A, up to B, both powers of two from 2 KiB to 16 MiB, B left out
/// where there is no end.
///
/// ```
/// use lmt_copy::{Alignment, Distance, Plan, Routine};
/// let plan: Plan = "portable aliased 2KiB-512KiB, libc".parse()?;
/// let copier = plan.copier();
/// assert_eq!(copier.routine(Distance::Near, Alignment::Aliased, 4096), Routine::Portable);
/// assert_eq!(copier.routine(Distance::Near, Alignment::Other, 4096), Routine::Libc);
/// assert_eq!(copier.to_string(), "portable aliased 2KiB-512KiB");
/// # Ok::<(), lmt_copy::TextError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    /// [`Copier::usual`].
    Auto,
    /// This table.
    Table(Box<Copier>),
}

/// A text that says nothing to copy by, in one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError(String);

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TextError {}

impl Plan {
    /// The table.
    pub fn copier(&self) -> Copier {
        match self {
            Self::Auto => Copier::usual(),
            Self::Table(copier) => copier.as_ref().clone(),
        }
    }
}

/// One entry: where its routine holds.
struct Entry {
    routine: Routine,
    alignment: Option<Alignment>,
    distance: Option<Distance>,
    above_bytes: usize,
    up_to_bytes: usize,
}

impl FromStr for Plan {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        if text.trim() == "auto" {
            return Ok(Self::Auto);
        }
        let entries = text.split(',').map(entry).collect::<Result<Vec<_>, _>>()?;
        let mut copier = Copier::default();
        // The first that fits speaks: it is written last.
        for entry in entries.iter().rev() {
            for distance in Distance::ALL.into_iter().filter(|d| entry.distance.is_none_or(|only| only == *d))
            {
                for alignment in
                    Alignment::ALL.into_iter().filter(|a| entry.alignment.is_none_or(|only| only == *a))
                {
                    for class in (0..CLASSES).filter(|class| is_within(bounds(*class), entry)) {
                        copier.set(distance, alignment, class, entry.routine);
                    }
                }
            }
        }
        Ok(Self::Table(Box::new(copier)))
    }
}

fn is_within((above, up_to): (usize, usize), entry: &Entry) -> bool {
    above >= entry.above_bytes && up_to <= entry.up_to_bytes
}

fn entry(text: &str) -> Result<Entry, TextError> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let Some(routine) = Routine::named(name) else {
        let names: Vec<&str> = Routine::ALL.iter().map(|routine| routine.name()).collect();
        let names = names.join(", ");
        return Err(TextError(format!(
            "there is no copy routine `{name}`; it must be auto, or one of {names}"
        )));
    };
    let mut entry =
        Entry { routine, alignment: None, distance: None, above_bytes: 0, up_to_bytes: usize::MAX };
    for word in words {
        let alignment = Alignment::ALL.into_iter().find(|alignment| alignment.name() == word);
        let distance = Distance::ALL.into_iter().find(|distance| distance.name() == word);
        match (alignment, distance, range(word)) {
            (Some(_), ..) if entry.alignment.is_none() => entry.alignment = alignment,
            (_, Some(_), _) if entry.distance.is_none() => entry.distance = distance,
            (.., Some((above, up_to))) => (entry.above_bytes, entry.up_to_bytes) = (above, up_to),
            _ => {
                return Err(TextError(format!(
                    "`{word}` says nothing of copies by {name}; it must be same, aliased or other, near, peer \
                     or away, each once, or a range of powers of two such as 2KiB-512KiB, from 2KiB to 16MiB"
                )));
            }
        }
    }
    Ok(entry)
}

/// `A-B` or `A-`.
fn range(word: &str) -> Option<(usize, usize)> {
    let (above, up_to) = word.split_once('-')?;
    let above = size(above)?;
    let up_to = if up_to.is_empty() { usize::MAX } else { size(up_to)? };
    (above < up_to).then_some((above, up_to))
}

fn size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    let bytes = digits.parse::<usize>().ok()?.checked_mul(unit)?;
    let is_bound = bytes.is_power_of_two() && (MIN_TABLE_BYTES..=LARGEST_CLASS_BYTES).contains(&bytes);
    is_bound.then_some(bytes)
}

fn written(bytes: usize) -> String {
    match bytes {
        usize::MAX => String::new(),
        _ if bytes >= 1 << 20 => format!("{}MiB", bytes >> 20),
        _ => format!("{}KiB", bytes >> 10),
    }
}

/// As a [`Plan`] has it.
impl fmt::Display for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entries: Vec<String> = Vec::new();
        let row = |distance, alignment| runs(self, distance, alignment);
        for alignment in Alignment::ALL {
            let near = row(Distance::Near, alignment);
            let is_same = Distance::ALL.into_iter().all(|distance| row(distance, alignment) == near);
            for distance in Distance::ALL.into_iter().take(if is_same { 1 } else { Distance::ALL.len() }) {
                let of = if is_same { String::new() } else { format!("{} ", distance.name()) };
                entries.extend(row(distance, alignment).into_iter().map(|(routine, above, up_to)| {
                    let (above, up_to) = (written(above), written(up_to));
                    format!("{} {} {of}{above}-{up_to}", routine.name(), alignment.name())
                }));
            }
        }
        if entries.is_empty() {
            entries.push(Routine::Libc.name().to_owned());
        }
        f.write_str(&entries.join(", "))
    }
}

/// Where in a row which routine other than the C library's holds.
fn runs(copier: &Copier, distance: Distance, alignment: Alignment) -> Vec<(Routine, usize, usize)> {
    let mut runs: Vec<(Routine, usize, usize)> = Vec::new();
    for (above, up_to) in (0..CLASSES).map(bounds) {
        let routine = copier.routine(distance, alignment, above + 1);
        match runs.last_mut() {
            Some((last, _, end)) if *last == routine && *end == above => *end = up_to,
            _ if routine == Routine::Libc => {}
            _ => runs.push((routine, above, up_to)),
        }
    }
    runs
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
