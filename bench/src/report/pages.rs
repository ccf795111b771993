//! Several modes in one file, each on a page of its own; a click shows another, by buttons
//! and style alone.

use std::fmt::Write;

use super::Report;
use super::html::page;
use crate::environment::Environment;
use crate::error::BenchError;

const TITLE: &str = "lmt compare: every mechanism on this machine";
const INTRODUCTION: &str = "Two processes play ping-pong, by every path that works here.";

/// The report as one HTML file without external resources; the first mode is shown first, and
/// `section` stands at the end.
///
/// # Errors
/// There is nothing to plot.
pub fn to_html(reports: &[Report], section: &str) -> Result<String, BenchError> {
    let first = reports
        .first()
        .ok_or_else(|| BenchError::Failure("nothing was measured that a report could show".into()))?;
    let sections: Result<Vec<String>, BenchError> = reports.iter().map(Report::section).collect();
    let failed = |error| BenchError::Failure(format!("the report cannot be put together: {error}"));
    let body = pages(reports, &sections?).map_err(failed)? + section;
    // Each mode uses its buffers in its own way, and its page says how.
    let environment = Environment { buffers: "as each page says".to_owned(), ..first.environment.clone() };
    Ok(page(TITLE, INTRODUCTION, &environment, &body))
}

fn pages(reports: &[Report], sections: &[String]) -> Result<String, std::fmt::Error> {
    let mut body = String::from("<style>");
    for index in 0..reports.len() {
        write!(body, "#mode-{index}:checked~#page-{index}{{display:block}}")?;
    }
    body.push_str("</style>\n<div class=\"pages\">\n");
    for (index, report) in reports.iter().enumerate() {
        let checked = if index == 0 { " checked" } else { "" };
        let name = if report.in_use { "In use" } else { "Unmodified" };
        writeln!(
            body,
            "<input type=\"radio\" name=\"mode\" id=\"mode-{index}\"{checked}><label for=\"mode-{index}\">{name}</label>"
        )?;
    }
    for (index, section) in sections.iter().enumerate() {
        writeln!(body, "<section id=\"page-{index}\">\n{section}</section>")?;
    }
    body.push_str("</div>\n");
    Ok(body)
}
