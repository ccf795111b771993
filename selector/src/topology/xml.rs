//! What is wrong with a machine's XML, in words, and before hwloc reads it:
//! hwloc 2.9 crashes on an object that lacks one of its sets.

/// The sets that every object has, devices and remarks excepted.
const SETS: [&str; 4] = ["cpuset", "complete_cpuset", "nodeset", "complete_nodeset"];

/// Types of objects that have no sets.
const WITHOUT_SETS: [&str; 4] = ["Bridge", "PCIDev", "OSDev", "Misc"];

/// Says what is wrong, as far as it would harm hwloc: another format, an object
/// without one of its sets, a set that is none.
pub(super) fn check(xml: &str) -> Result<(), String> {
    let mut objects = 0;
    let mut is_topology = false;
    for (line, tag) in tags(xml) {
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        match name {
            "topology" => {
                let version = attribute(attributes, "version").unwrap_or("1");
                if version.split('.').next() != Some("2") {
                    return Err(format!("line {line}: the format has version {version}, and 2.x is read"));
                }
                is_topology = true;
            }
            "object" => {
                check_object(attributes.trim_end_matches('/')).map_err(|e| format!("line {line}: {e}"))?;
                objects += 1;
            }
            _ => {}
        }
    }
    match (is_topology, objects) {
        (false, _) => Err("it has no <topology>".to_owned()),
        (true, 0) => Err("it has no <object>".to_owned()),
        _ => Ok(()),
    }
}

fn check_object(attributes: &str) -> Result<(), String> {
    let object_type = attribute(attributes, "type").ok_or("an object has no type")?;
    if WITHOUT_SETS.contains(&object_type) {
        return Ok(());
    }
    for set in SETS {
        let value = attribute(attributes, set).ok_or_else(|| format!("a {object_type} has no {set}"))?;
        if !is_set(value) {
            return Err(format!("the {set} '{value}' of a {object_type} is no set of bits"));
        }
    }
    Ok(())
}

/// Whether this is a set as hwloc writes it: 32 bits each in hexadecimal, with
/// commas between, "0xf...f" first where all bits beyond are set.
fn is_set(value: &str) -> bool {
    let is_word = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        digits.len() <= 8 && digits.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let finite = value.strip_prefix("0xf...f").map_or(value, |rest| rest.trim_start_matches(','));
    finite.split(',').all(is_word)
}

/// The tags that open an element, without the brackets, each with its line.
fn tags(xml: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = xml;
    let mut line = 1;
    std::iter::from_fn(move || {
        loop {
            let (before, from) = rest.split_once('<')?;
            line += before.matches('\n').count();
            let at = line;
            let end = if from.starts_with("!--") { "-->" } else { ">" };
            let (tag, after) = from.split_once(end)?;
            line += tag.matches('\n').count();
            rest = after;
            if tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Some((at, tag));
            }
        }
    })
}

/// The value of an attribute, as it is written.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        let (found, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, next) = after.get(1..)?.split_once(quote)?;
        if found.trim() == name {
            return Some(value);
        }
        rest = next;
    }
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
