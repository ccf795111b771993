//! The page.

use super::result::{CaseResult, Totals};
use super::show::{better, medians, ratio, sentences, verdict};
use crate::engine::LeftOut;
use crate::environment::Environment;
use crate::report::{escaped, page};

/// The page of these results.
pub fn to_html(
    results: &[CaseResult],
    totals: &Totals,
    left_out: &[LeftOut],
    environment: &Environment,
    turns: u32,
    has_own: bool,
) -> String {
    let mut body: String = sentences(totals, has_own)
        .iter()
        .map(|sentence| format!("<p class=\"summary\">{}.</p>\n", escaped(sentence)))
        .collect();
    body.push_str(&table(results));
    body.push_str(&programs(results));
    if !left_out.is_empty() {
        body.push_str("<h2>Left out</h2>\n<ul>\n");
        for LeftOut { name, reason } in left_out {
            body.push_str(&format!("<li>{}: {}</li>\n", escaped(name), escaped(reason)));
        }
        body.push_str("</ul>\n");
    }
    let introduction = format!(
        "Each program ran over its MPI's own transport and over lmt in turns, {turns} of each; which came first changed \
         from turn to turn. The ratio says how many times as good a figure is over lmt, turn by turn: the median, and \
         the quartiles between which half of the turns lie. Above 1 lmt is better."
    );
    page("lmt apps: MPI programs over lmt", &introduction, environment, &body)
}

const HEADS: [&str; 9] =
    ["program", "MPI", "ranks", "figure", "own", "lmt", "ratio", "quartiles", "paths of the bytes"];

fn table(results: &[CaseResult]) -> String {
    let heads: String = HEADS.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    let rows: String = results.iter().map(rows).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn rows(result: &CaseResult) -> String {
    let mut text = String::new();
    let begin = format!(
        "<th scope=\"row\">{}</th><td>{}</td><td>{}</td>",
        escaped(&result.program),
        escaped(&result.mpi),
        result.ranks
    );
    let mut first = Some(begin.clone());
    for figure in result.figures.iter().filter(|figure| !figure.lmt.is_empty()) {
        let is_first = first.is_some();
        let begin = first.take().unwrap_or_else(|| "<td></td><td></td><td></td>".to_owned());
        let [own, lmt] = medians(figure);
        let (middle, quartiles) = ratio(figure);
        let class =
            if figure.ratio.is_some_and(|ratio| ratio.median >= 1.0) { " class=\"chosen\"" } else { "" };
        let (name, unit) = (escaped(&figure.name), escaped(&figure.unit));
        let paths = if is_first { escaped(&result.paths) } else { String::new() };
        text.push_str(&format!(
            "<tr>{begin}<td title=\"{}\">{name}, {unit}</td><td>{own}</td><td>{lmt}</td><td{class}>{middle}</td><td>{quartiles}</td><td>{paths}</td></tr>\n",
            better(figure.better)
        ));
    }
    if let Some(sentence) = verdict(&result.verdict) {
        text.push_str(&format!("<tr>{begin}<td colspan=\"6\">{}</td></tr>\n", escaped(&sentence)));
    }
    text
}

/// What each program is.
fn programs(results: &[CaseResult]) -> String {
    let mut known: Vec<&str> = Vec::new();
    let mut rows = String::new();
    for result in results {
        if !known.contains(&result.program.as_str()) {
            known.push(&result.program);
            rows.push_str(&format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n",
                escaped(&result.program),
                result.kind,
                escaped(&result.title)
            ));
        }
    }
    format!(
        "<h2>Programs</h2>\n<div class=\"wide\"><table class=\"text\">\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
