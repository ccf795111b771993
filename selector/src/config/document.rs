//! The table of all keys, as Markdown.

use super::known::Known;
use super::table::{Entry, all_keys};

/// All keys with these mechanisms, as `lmt config --document` prints them and
/// `docs/configuration.md` has them.
pub fn document(known: &Known) -> String {
    let mut text = String::new();
    for section in all_keys(known) {
        text.push_str(&format!("### `{}`\n\n{}.\n\n", section.title, capital(section.meaning)));
        text.push_str("| Key | Type | Default | May be | Variable | Meaning | Why this default |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        for entry in &section.keys {
            text.push_str(&row(entry));
        }
        text.push('\n');
    }
    text
}

fn row(entry: &Entry) -> String {
    let kind = match entry.unit {
        "" => entry.kind.to_owned(),
        unit => format!("{} ({unit})", entry.kind),
    };
    let variable = entry.variable.as_ref().map_or(String::new(), |name| format!("`{name}`"));
    let cells: [&str; 7] = [
        &format!("`{}`", entry.name),
        &kind,
        &format!("`{}`", entry.default),
        &entry.bounds,
        &variable,
        entry.meaning,
        entry.reason,
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn capital(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}
