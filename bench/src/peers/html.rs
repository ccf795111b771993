//! The comparison in the HTML report.

use std::fmt::Write;

use super::Comparison;
use super::figures::Figure;
use super::result::{Contender, Role, Row};
use super::show::{Means, PeerCard, Scene, title};
use crate::error::BenchError;
use crate::job::Job;
use crate::output::usec;
use crate::report::{Kind, Point, Series, escaped, page, plot_figure};
use crate::sizes::human;
use crate::stats::mb_per_s;

/// The line that stands for the fastest bare method at each size.
const BEST_BARE: &str = "best method";

impl Comparison {
    /// A page of its own.
    ///
    /// # Errors
    /// There is nothing to show.
    pub fn to_html(&self) -> Result<String, BenchError> {
        let scene = self
            .scenes
            .first()
            .ok_or_else(|| BenchError::Failure("nothing was measured that a report could show".into()))?;
        Ok(page(
            "lmt compare: side by side with MPIs",
            "Round by round each contender has one short turn with as many iterations; ratios are taken within a \
             round.",
            &scene.environment,
            &self.section()?,
        ))
    }

    /// A section of a page.
    ///
    /// # Errors
    /// There is nothing to plot.
    pub fn section(&self) -> Result<String, BenchError> {
        let mut section = String::from("<h2>Side by side with MPIs</h2>\n");
        self.write_peers(&mut section).map_err(failed)?;
        if !self.figures.is_empty() {
            write_figures(&mut section, &self.figures).map_err(failed)?;
        }
        for scene in &self.scenes {
            let (lines, limits) = lines(scene);
            section.push_str(&plot_figure(&title(&scene.settings), &lines, &limits)?);
            write_scene(&mut section, scene).map_err(failed)?;
        }
        Ok(section)
    }

    fn write_peers(&self, out: &mut String) -> std::fmt::Result {
        out.push_str("<div class=\"wide\"><table class=\"text\">\n<tbody>\n");
        for PeerCard { name, version, mpiexec } in &self.peers {
            let [name, version, mpiexec] = [name, version, mpiexec].map(|text| escaped(text));
            writeln!(out, "<tr><th scope=\"row\">{name}</th><td>{version}</td><td>{mpiexec}</td></tr>")?;
        }
        out.push_str("</tbody></table></div>\n");
        Ok(())
    }
}

fn failed(error: std::fmt::Error) -> BenchError {
    BenchError::Failure(format!("the report cannot be put together: {error}"))
}

fn write_figures(out: &mut String, figures: &[Figure]) -> std::fmt::Result {
    out.push_str(
        "<h2>Figures</h2>\n<div class=\"wide\"><table class=\"text\">\n<thead><tr><th scope=\"col\">no.</th>\
         <th scope=\"col\">asked</th><th scope=\"col\">found</th><th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n",
    );
    for figure in figures {
        let class = if figure.met == Some(true) { " class=\"chosen\"" } else { "" };
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td{class}>{}</td></tr>",
            figure.number,
            escaped(&figure.asked),
            escaped(&figure.found),
            figure.verdict()
        )?;
    }
    out.push_str("</tbody></table></div>\n");
    Ok(())
}

/// The lines of the plot: ours, the peers, and the fastest bare method.
fn lines(scene: &Scene) -> (Vec<Series>, Vec<Series>) {
    let mut mechanisms: Vec<Series> = Vec::new();
    let mut best_bare = Series::new(BEST_BARE, Kind::Way);
    for row in scene.rows.iter().filter(|row| row.bytes > 0) {
        for contender in row.contenders.iter().filter(|contender| contender.role != Role::Limit) {
            let point = point(&scene.settings, row, contender);
            match mechanisms.iter_mut().find(|series| series.name == contender.name) {
                Some(series) => series.points.push(point),
                None => {
                    // The first is ours.
                    let kind = if mechanisms.is_empty() { Kind::Auto } else { Kind::Way };
                    mechanisms.push(Series { points: vec![point], ..Series::new(&contender.name, kind) });
                }
            }
        }
        if let Some(limit) = row.limit.as_deref().and_then(|name| row.contender(name)) {
            best_bare.points.push(point(&scene.settings, row, limit));
        }
    }
    let limits = if best_bare.points.is_empty() { Vec::new() } else { vec![best_bare] };
    (mechanisms, limits)
}

fn point(job: &Job, row: &Row, contender: &Contender) -> Point {
    let counted = match contender.role {
        Role::Limit => row.bytes as f64,
        _ => job.pattern.counted_bytes(row.bytes, job.ranks),
    };
    let usec = contender.usec;
    Point {
        bytes: row.bytes,
        usec: usec.median,
        usec_range: (usec.lower, usec.upper),
        quartiles: Some((usec.lower, usec.upper)),
        path: None,
        mb_per_s: mb_per_s(counted, usec.median),
    }
}

fn write_scene(out: &mut String, scene: &Scene) -> std::fmt::Result {
    let Some(first) = scene.rows.first() else { return Ok(()) };
    let shown: Vec<&str> = first
        .contenders
        .iter()
        .filter(|contender| contender.role != Role::Limit)
        .map(|contender| contender.name.as_str())
        .collect();
    let has_limit = scene.rows.iter().any(|row| row.limit.is_some());
    out.push_str("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">size</th>");
    shown.iter().try_for_each(|name| write!(out, "<th scope=\"col\">{}, µs</th>", escaped(name)))?;
    out.push_str("<th scope=\"col\">ours / best peer</th><th scope=\"col\">best peer</th>");
    if has_limit {
        out.push_str(
            "<th scope=\"col\">bare, µs</th><th scope=\"col\">bare / ours</th><th scope=\"col\">bare / best peer</th>\
             <th scope=\"col\">bare method</th>",
        );
    }
    out.push_str("<th scope=\"col\">our path</th></tr></thead>\n<tbody>\n");
    scene.rows.iter().try_for_each(|row| write_row(out, &shown, has_limit, row))?;
    out.push_str("</tbody></table></div>\n");
    let means = Means::of(&scene.rows);
    if let Some(over_peer) = means.over_peer {
        writeln!(
            out,
            "<p>Geometric mean over {} sizes: {:.2} times the best peer's speed{}.</p>",
            scene.rows.len(),
            1.0 / over_peer,
            means.limit_over_peer.map_or_else(String::new, |limit| format!(
                "; the bare methods reach {:.2} times",
                1.0 / limit
            ))
        )?;
    }
    Ok(())
}

fn write_row(out: &mut String, shown: &[&str], has_limit: bool, row: &Row) -> std::fmt::Result {
    let medians = shown.iter().filter_map(|name| row.contender(name)).map(|one| one.usec.median);
    let best = medians.reduce(f64::min);
    write!(out, "<tr><th scope=\"row\">{}</th>", human(row.bytes))?;
    for name in shown {
        match row.contender(name) {
            Some(one) => {
                let class = if Some(one.usec.median) == best { " class=\"best\"" } else { "" };
                let (lower, upper) = (usec(one.usec.lower), usec(one.usec.upper));
                let median = usec(one.usec.median);
                write!(out, "<td{class} title=\"quartiles {lower} and {upper} µs\">{median}</td>")?;
            }
            None => out.push_str("<td>–</td>"),
        }
    }
    match row.over_peer() {
        Some(over) => write!(
            out,
            "<td title=\"quartiles {:.3} and {:.3}\">{:.3}</td><td>{}</td>",
            over.lower,
            over.upper,
            over.median,
            escaped(row.best_peer.as_deref().unwrap_or("–"))
        )?,
        None => out.push_str("<td>–</td><td>–</td>"),
    }
    if has_limit {
        let limit = row.limit.as_deref().and_then(|name| row.contender(name));
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
        write!(
            out,
            "<td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
            limit.map_or_else(|| "–".to_owned(), |limit| usec(limit.usec.median)),
            number(row.over_limit().map(|over| 1.0 / over.median)),
            number(row.limit_over_peer.map(|over| over.median)),
            escaped(row.limit.as_deref().unwrap_or("–"))
        )?;
    }
    writeln!(out, "<td>{}</td></tr>", escaped(&row.way()))
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
