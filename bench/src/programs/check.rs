//! Whether a program's result is right.

use super::pattern::Pattern;
use super::table::Program;

/// What a run prints that must agree with another run: the captures of each pattern.
pub type Printed = Vec<Vec<String>>;

/// Checks what a run has printed by itself.
///
/// # Errors
/// What is missing, or what should not be there: a sentence.
pub fn check(program: &Program, text: &str) -> Result<(), String> {
    if let Some(pattern) = program.must_match.iter().find(|pattern| !pattern.0.is_match(text)) {
        return Err(format!("its result is wrong: nothing that it prints matches '{}'", pattern.0.as_str()));
    }
    let found = program.must_not_match.iter().find_map(|pattern| pattern.0.find(text));
    match found {
        Some(found) => Err(format!("its result is wrong: it prints '{}'", found.as_str().trim())),
        None => Ok(()),
    }
}

/// What is to be compared with another run.
///
/// # Errors
/// Something of it is missing: a sentence.
pub fn printed(program: &Program, text: &str) -> Result<Printed, String> {
    program.agree.iter().map(|pattern| captures(pattern, text)).collect()
}

fn captures(pattern: &Pattern, text: &str) -> Result<Vec<String>, String> {
    let found = pattern.0.captures_iter(text).filter_map(|found| found.get(1));
    let all: Vec<String> = found.map(|one| one.as_str().to_owned()).collect();
    if all.is_empty() {
        return Err(format!("its result is wrong: nothing that it prints matches '{}'", pattern.0.as_str()));
    }
    let is_no_number = |text: &&String| text.parse::<f64>().is_ok_and(|number| !number.is_finite());
    match all.iter().find(is_no_number) {
        Some(text) => Err(format!("its result is wrong: it prints {text}, which is no number")),
        None => Ok(all),
    }
}

/// Compares what two runs have printed.
///
/// # Errors
/// Where they differ: a sentence.
pub fn agree(ours: &Printed, own: &Printed) -> Result<(), String> {
    for (ours, own) in ours.iter().zip(own) {
        if ours.len() != own.len() {
            return Err(format!(
                "it prints {} numbers, and {} over its own transport",
                ours.len(),
                own.len()
            ));
        }
        if let Some((one, other)) = ours.iter().zip(own).find(|(one, other)| !same(one, other)) {
            return Err(format!("it prints {one}, and {other} over its own transport"));
        }
    }
    Ok(())
}

/// Whether two printed numbers differ by one unit of the last digit at most.
fn same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Ok(first), Ok(second)) = (one.parse::<f64>(), other.parse::<f64>()) else { return false };
    let unit = last_digit_unit(one).max(last_digit_unit(other));
    // A little more, since decimal fractions are no binary ones.
    (first - second).abs() <= unit * 1.01
}

/// What one more in the last digit of a printed number is.
fn last_digit_unit(number: &str) -> f64 {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
    10f64.powi(exponent.parse::<i32>().unwrap_or(0) - decimals)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
