//! Explanations for people and programs.

use lmt::Explanation;
use lmt::selection::{Source, Taken};

use super::Answer;
use crate::sizes::human;

/// What holds for all lengths, above them.
fn preamble(answer: &Answer) -> String {
    let this = if answer.is_this_machine { "" } else { "; it is not this machine" };
    format!("machine     {}{this}\nmechanisms  {}\n", answer.machine, answer.availability)
}

/// Each explanation in full.
pub fn text(answer: &Answer) -> String {
    let mut text = preamble(answer);
    for explanation in &answer.explanations {
        text += &format!("\n{explanation}");
    }
    text
}

/// One line for each length.
pub fn table(answer: &Answer) -> String {
    let rows: Vec<[String; 3]> = answer
        .explanations
        .iter()
        .map(|explanation| [human(explanation.bytes), way(explanation), source(explanation)])
        .collect();
    let width = rows.iter().map(|row| row[1].len()).max().unwrap_or_default();
    let mut text = preamble(answer);
    if let Some(first) = answer.explanations.first() {
        text += &format!("place       {}\n", first.place);
    }
    text += &format!("\n{:>9}  {:width$}  by\n", "bytes", "path");
    for [bytes, way, source] in rows {
        text += &format!("{bytes:>9}  {way:width$}  {source}\n");
    }
    text
}

/// As files name it.
fn way(explanation: &Explanation) -> String {
    match &explanation.taken {
        Taken::Eager => "eager".to_owned(),
        Taken::By { mechanism, model } => format!("{mechanism}:{model}"),
        _ => "nothing".to_owned(),
    }
}

fn source(explanation: &Explanation) -> String {
    let rule = &explanation.rule;
    match &explanation.source {
        Source::Default { line: None } => rule.clone(),
        source => format!("{source}: {rule}"),
    }
}
