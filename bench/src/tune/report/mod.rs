//! The page that shows a calibration: one HTML file that needs nothing else.

mod picture;

use std::fmt::Write;

use lmt_selector::calibration::{Calibration, Course, CourseRules, EAGER};

use self::picture::{Picture, Quantity, paths};
use super::summary::{Run, load_in_words, runs};
use crate::error::BenchError;
use crate::report::{document, escaped};
use crate::sizes::human;

/// What the page shows.
pub struct Page<'a> {
    /// What is written.
    pub calibration: &'a Calibration,
    /// What was measured.
    pub measured: &'a [Course],
    /// What was chosen.
    pub courses: &'a [CourseRules],
}

/// One load: what was measured and what was chosen.
struct Part<'a> {
    measured: &'a Course,
    chosen: &'a CourseRules,
    runs: Vec<Run>,
}

const INTRODUCTION: &str = "Two processes play ping-pong over every path in turn; a time is half the round trip, the \
median over several starts of the processes. A path is a mechanism with a model, which says who copies: in get the \
receiver reads the sender's memory, in put the sender writes the receiver's, in cooperative both take part; eager is \
through the cells of the receiver's inbox. Ranges of sizes with the same path are rules of the calibration.";

impl<'a> Page<'a> {
    /// The whole page.
    ///
    /// # Errors
    /// Nothing was measured.
    pub fn to_html(&self) -> Result<String, BenchError> {
        let parts = self.parts();
        if parts.is_empty() {
            return Err(nothing());
        }
        let mut body = String::new();
        // Writing into a String cannot fail.
        let _ = self.write_provenance(&mut body);
        let paths = self.paths(&parts);
        for part in &parts {
            let load = capital(&load_in_words(part.measured.load));
            let _ = writeln!(body, "<h2>{}</h2>", escaped(&load));
            let _ = write_ranges(&mut body, part);
            for quantity in [Quantity::Relative, Quantity::Throughput] {
                let picture = Picture::new(part.measured, &part.runs, &paths, quantity, &load);
                body.push_str(&picture.figure()?);
            }
            let _ = write_figures(&mut body, part);
        }
        Ok(document("lmt tune: which path is the fastest on this machine", INTRODUCTION, &body))
    }

    /// The first picture, by itself.
    ///
    /// # Errors
    /// Nothing was measured.
    pub fn to_svg(&self) -> Result<String, BenchError> {
        let parts = self.parts();
        let first = parts.first().ok_or_else(nothing)?;
        let load = load_in_words(first.measured.load);
        Picture::new(first.measured, &first.runs, &self.paths(&parts), Quantity::Relative, &load).svg()
    }

    fn paths(&self, parts: &[Part<'_>]) -> Vec<String> {
        paths(&parts.iter().map(|part| part.chosen).collect::<Vec<_>>(), self.measured)
    }

    /// The loads of which something is known, the most important first.
    fn parts(&self) -> Vec<Part<'a>> {
        let part = |chosen: &'a CourseRules| {
            let measured = self.measured.iter().find(|course| course.load == chosen.load)?;
            (!chosen.chosen.is_empty()).then(|| Part { measured, chosen, runs: runs(&chosen.chosen) })
        };
        let mut parts: Vec<Part<'a>> = self.courses.iter().filter_map(part).collect();
        parts.sort_by_key(|part| {
            (part.measured.load.place, part.measured.load.pairs, part.measured.load.off_cache)
        });
        parts
    }

    fn write_provenance(&self, page: &mut String) -> std::fmt::Result {
        let provenance = &self.calibration.provenance;
        page.push_str("<dl>\n");
        let state = if provenance.complete { "complete" } else { "not complete" };
        for (name, value) in [
            ("measured", format!("{}, {state}", provenance.date)),
            ("options", provenance.options.clone()),
            ("machine", provenance.machine.clone()),
            ("processor", format!("{}; CPUs {} could be used", provenance.cpu, provenance.cpus)),
            ("kernel", provenance.kernel.clone()),
            ("hwloc", provenance.hwloc.clone().unwrap_or_else(|| "does not describe it".into())),
            ("lmt", provenance.lmt.clone()),
        ] {
            writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
        }
        page.push_str("</dl>\n");
        if !provenance.skipped.is_empty() {
            page.push_str("<details><summary>What was not measured, and why</summary>\n<ul>\n");
            for sentence in &provenance.skipped {
                writeln!(page, "<li>{}</li>", escaped(sentence))?;
            }
            page.push_str("</ul></details>\n");
        }
        Ok(())
    }
}

fn nothing() -> BenchError {
    BenchError::Failure("there is nothing to draw: nothing was measured".into())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The ranges with what is second, and by how much.
fn write_ranges(page: &mut String, part: &Part<'_>) -> std::fmt::Result {
    page.push_str(
        "<div class=\"wide\"><table class=\"text\">\n<thead><tr><th scope=\"col\">messages</th>\
         <th scope=\"col\">path</th><th scope=\"col\">the next best takes longer by</th></tr></thead>\n<tbody>\n",
    );
    for run in &part.runs {
        let (range, way) =
            run.to_string().split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap_or_default();
        let next = next_best(part, run).map_or("–".to_owned(), |(name, least, most)| {
            let percent = |regret: f64| format!("{:.0} %", 100.0 * (regret.exp() - 1.0));
            match percent(least) == percent(most) {
                true => format!("{} ({name})", percent(least)),
                false => format!("{} to {} ({name})", percent(least), percent(most)),
            }
        });
        writeln!(
            page,
            "<tr><td>{}</td><td><strong>{}</strong></td><td>{}</td></tr>",
            escaped(&range),
            escaped(&way),
            escaped(&next)
        )?;
    }
    page.push_str("</tbody></table></div>\n");
    Ok(())
}

/// The way that does best in a range beside its own, with the least and the
/// most, as logarithms, by which it takes longer; less than 0 where it takes
/// shorter.
fn next_best(part: &Part<'_>, run: &Run) -> Option<(String, f64, f64)> {
    let mut others: Vec<(String, Vec<f64>)> = Vec::new();
    let within = |bytes: u64| bytes > run.above && run.up_to.is_none_or(|up_to| bytes <= up_to);
    for (_, class) in part.measured.classes().filter(|(bytes, _)| within(*bytes)) {
        let estimates = class.estimates();
        let own = estimates.get(run.way.as_str())?.regret;
        // One pair on cache decides alone of cells.
        let load = part.measured.load;
        let counts = |way: &str| way != run.way && !((load.off_cache || load.pairs > 1) && way == EAGER);
        for (way, estimate) in estimates.iter().filter(|(way, _)| counts(way)) {
            let regret = estimate.regret - own;
            match others.iter_mut().find(|(known, _)| known == way) {
                Some((_, regrets)) => regrets.push(regret),
                None => others.push(((*way).to_owned(), vec![regret])),
            }
        }
    }
    let mean = |regrets: &[f64]| regrets.iter().sum::<f64>() / regrets.len().max(1) as f64;
    let (way, regrets) = others.into_iter().min_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))?;
    let least = regrets.iter().copied().fold(f64::INFINITY, f64::min);
    Some((way, least, regrets.iter().copied().fold(f64::NEG_INFINITY, f64::max)))
}

/// Every median, the fastest and the chosen of each size marked.
fn write_figures(page: &mut String, part: &Part<'_>) -> std::fmt::Result {
    let mut ways: Vec<&str> = Vec::new();
    for (_, class) in part.measured.classes() {
        for (way, _) in class.ways().filter(|(way, _)| !ways.contains(way)).collect::<Vec<_>>() {
            ways.push(way);
        }
    }
    page.push_str(
        "<details><summary>All medians, in microseconds (bold: the fastest; marked: chosen)</summary>\n\
         <div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">size</th>",
    );
    for way in &ways {
        write!(page, "<th scope=\"col\">{}</th>", escaped(way))?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (bytes, class) in part.measured.classes() {
        write!(page, "<tr><th scope=\"row\">{}</th>", human(bytes))?;
        let chosen = part.chosen.chosen.iter().find(|chosen| chosen.bytes == bytes);
        for way in &ways {
            let Some(ns) = class.samples(way).and_then(|samples| samples.median_ns()) else {
                page.push_str("<td>–</td>");
                continue;
            };
            let class_of =
                if chosen.is_some_and(|chosen| chosen.way == *way) { " class=\"chosen\"" } else { "" };
            let text = format!("{:.2}", ns / 1000.0);
            match class.best() == Some(way) {
                true => write!(page, "<td{class_of}><strong>{text}</strong></td>")?,
                false => write!(page, "<td{class_of}>{text}</td>")?,
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></details>\n");
    Ok(())
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
