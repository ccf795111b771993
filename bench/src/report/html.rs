//! The page around the plots.

use std::fmt::Write;

use super::plot::{DASHES, Quantity, SERIES_COLOURS, draw};
use super::{Report, Series};
use crate::engine::LeftOut;
use crate::environment::Environment;
use crate::error::BenchError;
use crate::sizes::human;

/// Okabe and Ito's palette, which the colour-blind can tell apart, darkened or
/// lightened where the background asks for it.
const LIGHT: [&str; SERIES_COLOURS] =
    ["#0072b2", "#c65102", "#007a5a", "#a5407d", "#8a6d00", "#2b8cbe", "#6a3d9a", "#444444", "#b3282d"];
const DARK: [&str; SERIES_COLOURS] =
    ["#56b4e9", "#ff9e4a", "#2ed3a4", "#e79bc6", "#f0e442", "#8fd0ff", "#c3a5f0", "#cccccc", "#ff8a80"];

/// What pictures drawn by `lmt tune` have in common, on a page and alone.
pub(crate) const COLOUR_STYLE: &str = "
.title{font-weight:600;font-size:15px;fill:var(--ink)}.tick{fill:var(--ink)}.on{fill:var(--paper);font-weight:600;text-anchor:middle}
.bound{fill:var(--ink);font-size:12px;text-anchor:middle}.band{opacity:.07}.grid{stroke:var(--faint);fill:none}
.axis{stroke:var(--ink);fill:none}.mark{stroke:var(--mark);stroke-dasharray:5 4;stroke-width:1.5;fill:none}
.line{fill:none;stroke-width:2.4;stroke-linejoin:round}.thinner{stroke-width:1.2;opacity:.75}
";

/// The style of all pages.
pub(crate) const PAGE_STYLE: &str = "
body{background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;margin:0}
main{max-width:960px;margin:0 auto;padding:1.5rem}
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:1rem 0;font-size:.9rem}
dt{color:var(--soft)}dd{margin:0}
figure{margin:0;overflow-x:auto}figcaption{font-size:.85rem;color:var(--soft)}
svg{display:block;width:100%;min-width:640px;height:auto}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:.25rem 0;padding:0;font-size:.9rem}
.key{display:inline-block;width:1.5rem;height:.25rem;vertical-align:middle;margin-right:.4rem;border-radius:2px}
.thin{display:inline-block;width:2rem;height:.25rem;min-width:0;vertical-align:middle;margin-right:.4rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
thead th{border-bottom:2px solid var(--soft)}
table.text th,table.text td{text-align:left;vertical-align:top}table.text td{white-space:normal}
td.best{font-weight:700;background:var(--best)}td.chosen{background:var(--best)}
details{margin:1rem 0;font-size:.9rem}summary{cursor:pointer;color:var(--soft)}
";

impl Report {
    /// The report as one HTML file without external resources.
    ///
    /// # Errors
    /// There is nothing to plot.
    pub fn to_html(&self) -> Result<String, BenchError> {
        self.to_html_with("")
    }

    /// The same with a section more at its end.
    ///
    /// # Errors
    /// There is nothing to plot.
    pub fn to_html_with(&self, section: &str) -> Result<String, BenchError> {
        let mut body = String::new();
        self.write(&mut body, &draw(self, Quantity::Throughput)?, &draw(self, Quantity::Time)?)
            .map_err(|error| BenchError::Failure(format!("the report cannot be put together: {error}")))?;
        body.push_str(section);
        Ok(page(
            "lmt compare: every mechanism on this machine",
            "Ping-pong between two processes: half the round trip, median of the repetitions, in which the \
             mechanisms took turns.",
            &self.environment,
            &body,
        ))
    }

    /// Throughput against size, as a section of a page.
    ///
    /// # Errors
    /// There is nothing to plot.
    pub(crate) fn throughput_section(&self, title: &str) -> Result<String, BenchError> {
        let mut section = String::new();
        let svg = draw(self, Quantity::Throughput)?;
        self.write_plot(&mut section, title, &svg)
            .map_err(|error| BenchError::Failure(format!("the report cannot be put together: {error}")))?;
        Ok(section)
    }

    fn write(&self, page: &mut String, throughput: &str, time: &str) -> std::fmt::Result {
        self.write_mechanisms(page)?;
        self.write_crossovers(page)?;
        self.write_plot(page, "Throughput", throughput)?;
        self.write_plot(page, "One-way time", time)?;
        page.push_str("<h2>All figures</h2>\n");
        write_table(page, &self.mechanisms, true)?;
        if !self.limits.is_empty() {
            page.push_str(
                "<h2>What the machine allows</h2>\n<p>Bare ping-pongs with flags only, measured in between.</p>\n",
            );
            write_table(page, &self.limits, false)?;
        }
        Ok(())
    }

    /// Every mechanism there is: what was checked of it, or why it is left out.
    fn write_mechanisms(&self, page: &mut String) -> std::fmt::Result {
        page.push_str("<h2>Mechanisms</h2>\n<div class=\"wide\"><table class=\"text\">\n<tbody>\n");
        for Series { name, verified_messages, .. } in &self.mechanisms {
            let checked = match verified_messages {
                0 => "measured".to_owned(),
                messages => format!("measured; {messages} messages more were checked byte by byte"),
            };
            writeln!(page, "<tr><th scope=\"row\">{}</th><td>{checked}</td></tr>", escaped(name))?;
        }
        for LeftOut { name, reason } in &self.left_out {
            let (name, reason) = (escaped(name), escaped(reason));
            writeln!(page, "<tr><th scope=\"row\">{name}</th><td>left out: {reason}</td></tr>")?;
        }
        page.push_str("</tbody></table></div>\n");
        Ok(())
    }

    fn write_crossovers(&self, page: &mut String) -> std::fmt::Result {
        page.push_str("<h2>Crossovers</h2>\n");
        if self.crossovers.is_empty() {
            page.push_str("<p>The same mechanism is the fastest at every size.</p>\n");
            return Ok(());
        }
        page.push_str("<ul>\n");
        for crossover in &self.crossovers {
            writeln!(
                page,
                "<li>From {}: <strong>{}</strong> is the fastest (below it {}).</li>",
                human(crossover.bytes),
                escaped(&crossover.to),
                escaped(&crossover.from)
            )?;
        }
        page.push_str("</ul>\n");
        Ok(())
    }

    fn write_plot(&self, page: &mut String, title: &str, svg: &str) -> std::fmt::Result {
        let text = escaped(&self.alternative(title));
        // A picture with a text in its place, for those who cannot see it.
        let svg = svg.replacen(
            "<svg ",
            &format!("<svg role=\"img\" aria-label=\"{text}\" font-family=\"system-ui,sans-serif\" "),
            1,
        );
        write!(page, "<h2>{title}</h2>\n<figure>\n<ul class=\"legend\">")?;
        for (index, series) in self.mechanisms.iter().enumerate() {
            let name = escaped(&series.name);
            let colour = index % SERIES_COLOURS;
            write!(page, "<li><span class=\"key\" style=\"background:var(--s{colour})\"></span>{name}</li>")?;
        }
        for (index, series) in self.plotted_limits().iter().enumerate() {
            let dash = DASHES[index % DASHES.len()];
            write!(
                page,
                "<li><svg class=\"thin\" viewBox=\"0 0 32 4\" aria-hidden=\"true\"><path d=\"M0 2h32\" \
                 style=\"stroke:var(--soft);stroke-dasharray:{dash}\"/></svg>{} (bare)</li>",
                escaped(&series.name)
            )?;
        }
        write!(
            page,
            "</ul>\n{svg}\n<figcaption>Both axes are logarithmic. Vertical dashed lines: from here on the one named \
             at the top is the fastest by more than 3 %.</figcaption>\n</figure>\n"
        )
    }

    fn alternative(&self, title: &str) -> String {
        let mut text = format!("{title} against message size, both logarithmic.");
        for series in &self.mechanisms {
            if let (Some(first), Some(last)) = (series.points.first(), series.points.last()) {
                // Writing into a String cannot fail.
                let _ = write!(
                    text,
                    " {}: {:.2} microseconds at {}, {:.0} MB/s at {}.",
                    series.name,
                    first.usec,
                    human(first.bytes),
                    last.mb_per_s,
                    human(last.bytes)
                );
            }
        }
        text
    }
}

/// A whole page: what is told of the run, and a body.
pub(crate) fn page(title: &str, introduction: &str, environment: &Environment, body: &str) -> String {
    let line = |(name, value): (&str, String)| format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(&value));
    let environment: String = environment.lines().into_iter().map(line).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n<style>{}{PAGE_STYLE}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{introduction}</p>\n<dl>\n{environment}</dl>\n{body}</main>\n\
         </body>\n</html>\n",
        colours()
    )
}

fn write_table(page: &mut String, all: &[Series], mark_best: bool) -> std::fmt::Result {
    let mut sizes: Vec<u64> =
        all.iter().flat_map(|series| series.points.iter().map(|point| point.bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    page.push_str("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">size</th>");
    for series in all {
        let name = escaped(&series.name);
        write!(page, "<th scope=\"col\">{name}, µs</th><th scope=\"col\">{name}, MB/s</th>")?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for bytes in sizes {
        let at = |series: &Series| series.points.iter().find(|point| point.bytes == bytes).copied();
        let best = all.iter().filter_map(at).map(|point| point.usec).reduce(f64::min);
        write!(page, "<tr><th scope=\"row\">{}</th>", human(bytes))?;
        for series in all {
            match at(series) {
                Some(point) => {
                    let class = if mark_best && Some(point.usec) == best { " class=\"best\"" } else { "" };
                    let (least, most) = point.usec_range;
                    write!(
                        page,
                        "<td{class} title=\"from {least:.3} to {most:.3} µs\">{:.3}</td><td>{:.1}</td>",
                        point.usec, point.mb_per_s
                    )?;
                }
                None => page.push_str("<td>–</td><td>–</td>"),
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    Ok(())
}

/// The colours as variables, for light and dark.
pub(crate) fn colours() -> String {
    let set = |series: &[&str], others: &str| {
        let series: Vec<String> =
            series.iter().enumerate().map(|(index, colour)| format!("--s{index}:{colour};")).collect();
        format!("{}{others}", series.concat())
    };
    let light = set(
        &LIGHT,
        "--paper:#fff;--ink:#1a1a1a;--soft:#555;--grid:#c4c4c4;--faint:#ececec;--mark:#666;--best:#e8f1fa",
    );
    let dark = set(
        &DARK,
        "--paper:#16181c;--ink:#e8e8e8;--soft:#aaa;--grid:#50545c;--faint:#2a2d33;--mark:#aaa;--best:#23384d",
    );
    format!(":root{{color-scheme:light dark;{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

/// Text in HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
