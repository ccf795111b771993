//! What is wrong with a synthetic description, in words: hwloc says only that
//! something is.

/// More CPUs than this are a slip of the finger: hwloc's time grows with their
/// square, to 2 s for these and to minutes beyond.
const MAX_CPUS: u64 = 8192;

/// The types that hwloc takes as levels, besides the caches.
const TYPES: [&str; 9] = ["numanode", "package", "socket", "group", "core", "node", "tile", "module", "die"];

/// Says what is wrong with a description, as far as can be told without hwloc:
/// a level without type or count, a count of nothing, a type that hwloc does
/// not know, a description that does not end in PUs or describes too many.
pub(super) fn check(description: &str) -> Result<(), String> {
    let mut last = None;
    let mut cpus: u64 = 1;
    for level in levels(description)? {
        let (object_type, count) = match level.split_once(':') {
            Some((object_type, count)) => (Some(object_type), count),
            None if level.starts_with(|c: char| c.is_ascii_digit()) => (None, level.as_str()),
            None => return Err(format!("the level '{level}' has no ':' and count")),
        };
        let count =
            count.parse::<u64>().map_err(|_| format!("the count of '{level}' is not a whole number"))?;
        if let Some(name) = object_type.filter(|name| !is_known(name)) {
            return Err(format!(
                "'{name}' is not a type (package, die, numanode, group, l1 to l5, core, pu)"
            ));
        }
        if count == 0 {
            return Err(format!("the count of '{level}' is 0"));
        }
        cpus = cpus.saturating_mul(count);
        if cpus > MAX_CPUS {
            return Err(format!("it describes more than {MAX_CPUS} CPUs"));
        }
        last = Some(object_type.map(str::to_ascii_lowercase));
    }
    match last {
        None => Err("it has no levels".to_owned()),
        Some(Some(name)) if !name.starts_with("pu") => {
            Err(format!("its last level is '{name}' and must be pu"))
        }
        Some(_) => Ok(()),
    }
}

/// The levels, without what stands in parentheses (sizes) and in brackets
/// (memory attached, which is no level).
fn levels(description: &str) -> Result<Vec<String>, String> {
    let mut plain = String::new();
    let mut open = Vec::new();
    for c in description.chars() {
        match (c, open.last()) {
            ('(', _) => open.push(')'),
            ('[', _) => open.push(']'),
            (')' | ']', last) if last == Some(&c) => {
                open.pop();
                plain.push(' ');
            }
            (')' | ']', _) => return Err(format!("a '{c}' closes nothing")),
            (_, None) => plain.push(c),
            _ => {}
        }
    }
    match open.last() {
        Some(close) => Err(format!("a '{close}' is missing")),
        None => Ok(plain.split_whitespace().map(str::to_owned).collect()),
    }
}

/// Whether hwloc may know a type of this name. It compares beginnings, so that
/// "pack" will do, and takes "l2", "L2d" and "L2Cache"; in doubt it is asked.
fn is_known(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let begins = |known: &str| name.len() >= 2 && (known.starts_with(&name) || name.starts_with(known));
    let is_cache = name.strip_prefix('l').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_cache || name.starts_with("pu") || TYPES.into_iter().any(begins)
}

#[cfg(test)]
#[path = "synthetic_tests.rs"]
mod tests;
