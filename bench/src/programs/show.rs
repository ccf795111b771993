//! The table for people.

use super::figures::Better;
use super::result::{CaseResult, FigureResult, Totals};
use super::turns::Verdict;
use crate::engine::LeftOut;
use crate::environment::Environment;

/// What stands above the table.
pub fn head(environment: &Environment, turns: u32) -> String {
    let mut text =
        format!("# lmt apps: MPI programs over their MPI's own transport and over lmt, in turns ({turns})\n");
    for (name, value) in environment.lines() {
        text.push_str(&format!("# {name}: {value}\n"));
    }
    text.push_str(
        "# own, lmt: medians over the turns; ratio: how many times as good over lmt, turn by turn: median and quartiles; above 1 lmt is better\n",
    );
    text.push_str(&row([
        "program",
        "MPI",
        "ranks",
        "figure",
        "own",
        "lmt",
        "unit",
        "ratio",
        "quartiles",
        "paths of the bytes",
    ]));
    text
}

fn row(cells: [&str; 10]) -> String {
    let [program, mpi, ranks, figure, own, lmt, unit, ratio, quartiles, paths] = cells;
    let line = format!(
        "{program:<16} {mpi:<18} {ranks:>5} {figure:<21} {own:>9} {lmt:>9} {unit:<7} {ratio:>6} {quartiles:>12}  {paths}"
    );
    format!("{}\n", line.trim_end())
}

/// The lines of one result.
pub fn lines(result: &CaseResult) -> String {
    let ranks = result.ranks.to_string();
    let mut text = String::new();
    let measured = result.figures.iter().filter(|figure| !figure.lmt.is_empty());
    for (index, figure) in measured.enumerate() {
        // What all of its lines have in common stands in the first.
        let [program, mpi, ranks, paths] = match index {
            0 => [&result.program, &result.mpi, &ranks, &result.paths].map(String::as_str),
            _ => [""; 4],
        };
        let [own, lmt] = medians(figure);
        let (ratio, quartiles) = ratio(figure);
        let cells = [program, mpi, ranks, &figure.name, &own, &lmt, &figure.unit, &ratio, &quartiles, paths];
        text.push_str(&row(cells));
    }
    if let Some(sentence) = verdict(&result.verdict) {
        text.push_str(&format!("{:<16} {:<18} {ranks:>5} {sentence}\n", result.program, result.mpi));
    }
    text
}

/// What a result other than right is, in words.
pub fn verdict(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Right => None,
        Verdict::OwnFails(why) => {
            Some(format!("fails over its own transport too, and counts for nothing: {why}"))
        }
        Verdict::LmtFails(why) => Some(format!("FAILS over lmt: {why}")),
    }
}

/// The medians over each transport.
pub fn medians(figure: &FigureResult) -> [String; 2] {
    let median = |values: &[f64]| {
        crate::stats::Spread::of(values).map_or_else(|| "-".to_owned(), |all| number(all.median))
    };
    [median(&figure.own), median(&figure.lmt)]
}

/// The ratio and its quartiles.
pub fn ratio(figure: &FigureResult) -> (String, String) {
    let Some(ratio) = figure.ratio else { return ("-".to_owned(), String::new()) };
    let quartiles = match figure.own.len() {
        0..=2 => String::new(),
        _ => format!("{:.2}..{:.2}", ratio.lower, ratio.upper),
    };
    (format!("{:.2}", ratio.median), quartiles)
}

/// Three significant digits, more where there are more before the point.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.1 => format!("{value:.3}"),
        size if size >= 0.001 => format!("{value:.5}"),
        _ => format!("{value:.2e}"),
    }
}

/// What stands below the table.
pub fn foot(totals: &Totals, left_out: &[LeftOut], has_own: bool) -> String {
    let mut text = String::new();
    for LeftOut { name, reason } in left_out {
        text.push_str(&format!("# {name} is left out: {reason}\n"));
    }
    for sentence in sentences(totals, has_own) {
        text.push_str(&format!("# {sentence}\n"));
    }
    text
}

/// What all results come to, in sentences.
pub fn sentences(totals: &Totals, has_own: bool) -> Vec<String> {
    let Totals { all, right, no_slower, timed, faster_communication, with_communication } = *totals;
    let mut sentences = vec![format!("Ended and right in every turn: {right} of {all}")];
    if has_own {
        sentences.push(format!("No more than 5 % slower over lmt: {no_slower} of {timed}"));
        sentences.push(format!(
            "Less time in communication over lmt: {faster_communication} of {with_communication} that tell it"
        ));
    }
    sentences
}

/// In words, for a heading: which way is better.
pub fn better(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    }
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
