//! What one mode's page says, and the page around all.

use std::fmt::Write;

use super::findings::winner;
use super::plot::{Chart, DASHES, Line, Mark, Pen, Scale, broken};
use super::style::{PAGE_STYLE, SERIES_COLOURS, colours, escaped};
use super::{Kind, Point, Report, Series, plotted_limits, sizes_of};
use crate::engine::LeftOut;
use crate::environment::Environment;
use crate::error::BenchError;
use crate::sizes::human;

/// What a picture shows.
struct Picture {
    title: &'static str,
    axis: &'static str,
    scale: Scale,
    caption: &'static str,
    /// The value at a point, where `best` is the best time of all lines at its size.
    value: fn(point: &Point, best: f64) -> f64,
    has_limits: bool,
}

const PICTURES: [Picture; 3] = [
    Picture {
        title: "Speed relative to the best at each size",
        axis: "speed, the best at each size = 1",
        scale: Scale::Part,
        caption: "1.0 is the fastest line at each size; at 0.5 a message takes twice as long.",
        value: |point, best| if point.usec > 0.0 { best / point.usec } else { 0.0 },
        has_limits: false,
    },
    Picture {
        title: "Throughput",
        axis: "throughput, MB/s",
        scale: Scale::Logarithmic,
        caption: "Both axes are logarithmic.",
        value: |point, _| point.mb_per_s,
        has_limits: true,
    },
    Picture {
        title: "One-way time",
        axis: "one-way time, µs",
        scale: Scale::Logarithmic,
        caption: "Both axes are logarithmic.",
        value: |point, _| point.usec,
        has_limits: true,
    },
];

impl Report {
    /// What the page of this mode shows.
    ///
    /// # Errors
    /// There is nothing to plot.
    pub(super) fn section(&self) -> Result<String, BenchError> {
        let mut page = String::new();
        let figures: Result<Vec<String>, BenchError> =
            PICTURES.iter().map(|picture| self.figure(picture)).collect();
        self.write(&mut page, &figures?)
            .map_err(|error| BenchError::Failure(format!("the report cannot be put together: {error}")))?;
        Ok(page)
    }

    fn figure(&self, picture: &Picture) -> Result<String, BenchError> {
        let marks: Vec<Mark> = self.findings.crossovers.iter().map(Mark::from).collect();
        let mut caption = picture.caption.to_owned();
        if !marks.is_empty() {
            caption.push_str(
                " Dashed lines: from here on the path named at the top is the fastest between ordinary buffers.",
            );
        }
        let limits = if picture.has_limits { plotted_limits(&self.limits) } else { Vec::new() };
        let best = |bytes: u64| {
            let times = self.mechanisms.iter().filter_map(|series| series.at(bytes)).map(|point| point.usec);
            times.fold(f64::INFINITY, f64::min)
        };
        let value = |point: &Point| (picture.value)(point, best(point.bytes));
        let lines = lines(&self.mechanisms, &limits, &value);
        let chart = Chart { lines: &lines, marks: &marks, axis: picture.axis, scale: picture.scale };
        figure(picture.title, &chart, &legend(&self.mechanisms, &limits), &caption)
    }

    fn write(&self, page: &mut String, figures: &[String]) -> std::fmt::Result {
        let mode = match self.in_use {
            true => {
                "In use: the sender writes each message as a whole before it sends it, and the receiver reads all of \
                 it after it has received it, within the time. Each message differs from the one before."
            }
            false => "Unmodified: the same bytes are sent again and again, as IMB and OSU do.",
        };
        if let Some(summary) = &self.findings.summary {
            writeln!(page, "<p class=\"summary\">{}</p>", escaped(summary))?;
        }
        writeln!(page, "<p>{mode} {}</p>", escaped(&reading(self.repetitions)))?;
        if let [first, rest @ ..] = figures {
            page.push_str(first);
            self.write_findings(page)?;
            rest.iter().for_each(|figure| page.push_str(figure));
        }
        page.push_str(
            "<h2>Times</h2>\n<p>Marked: faster than every other by more than the spreads of both.</p>\n",
        );
        write_table(page, &self.mechanisms, &TIMES, true)?;
        page.push_str("<details><summary>Throughput</summary>\n");
        write_table(page, &self.mechanisms, &SPEEDS, false)?;
        page.push_str("</details>\n");
        if !self.limits.is_empty() {
            page.push_str(
                "<h2>What the machine allows</h2>\n<p>Bare ping-pongs with flags only, measured in between.</p>\n",
            );
            write_table(page, &self.limits, &TIMES, false)?;
        }
        self.write_mechanisms(page)?;
        writeln!(page, "<p>Buffers: {}.</p>", escaped(&self.environment.buffers))
    }

    /// Every mechanism there is: what was checked of it, or why it is left out.
    fn write_mechanisms(&self, page: &mut String) -> std::fmt::Result {
        page.push_str("<h2>Mechanisms</h2>\n<div class=\"wide\"><table class=\"text\">\n<tbody>\n");
        for series in &self.mechanisms {
            let checked = match series.verified_messages {
                0 => "measured".to_owned(),
                messages => format!("measured; {messages} messages more were checked byte by byte"),
            };
            let (name, moved) = (escaped(&series.name), escaped(&moved(series)));
            writeln!(page, "<tr><th scope=\"row\">{name}</th><td>{checked}</td><td>{moved}</td></tr>")?;
        }
        for LeftOut { name, reason } in &self.left_out {
            let (name, reason) = (escaped(name), escaped(reason));
            writeln!(page, "<tr><th scope=\"row\">{name}</th><td>left out: {reason}</td><td></td></tr>")?;
        }
        page.push_str("</tbody></table></div>\n");
        Ok(())
    }

    fn write_findings(&self, page: &mut String) -> std::fmt::Result {
        page.push_str("<h2>Crossovers</h2>\n<ul>\n");
        for sentence in &self.findings.sentences {
            writeln!(page, "<li>{}</li>", escaped(sentence))?;
        }
        page.push_str("</ul>\n");
        Ok(())
    }
}

/// How the lines are to be read.
fn reading(repetitions: u32) -> String {
    format!(
        "Each line but auto is one path by itself: eager is cells, up to the longest message that goes in them; every \
         message of a mechanism goes by rendezvous. auto is what the library does when nothing is set. Half the \
         round trip, median of {repetitions} repetitions in which all took turns."
    )
}

/// How many of the timed messages took the path that the line is named after; of auto, which
/// paths it took.
fn moved(series: &Series) -> String {
    if series.kind != Kind::Auto {
        let (all, own) = series.moved;
        return format!("{own} of {all} timed messages went by it");
    }
    let mut runs: Vec<(&str, u64, u64)> = Vec::new();
    for point in &series.points {
        let Some(path) = point.path.as_deref() else { continue };
        match runs.last_mut() {
            Some((known, _, last)) if *known == path => *last = point.bytes,
            _ => runs.push((path, point.bytes, point.bytes)),
        }
    }
    let said = runs.iter().map(|(path, first, last)| match first == last {
        true => format!("{path} at {}", human(*first)),
        false => format!("{path} from {} to {}", human(*first), human(*last)),
    });
    format!("most bytes went by {}", said.collect::<Vec<_>>().join(", "))
}

/// The lines of a plot: the mechanisms', and thin ones.
fn lines(all: &[Series], thin: &[Series], value: &dyn Fn(&Point) -> f64) -> Vec<Line> {
    let points = |series: &Series| series.points.iter().map(|point| (point.bytes, value(point))).collect();
    let pens = pens(all);
    let lines = all.iter().zip(pens);
    let thin = thin.iter().enumerate().map(|(index, series)| (series, Pen::Thin(index)));
    lines
        .chain(thin)
        .map(|(series, pen)| Line { name: series.name.clone(), pen, points: points(series) })
        .collect()
}

/// What stands out is drawn so, and the others in the colours in turn.
fn pens(all: &[Series]) -> Vec<Pen> {
    let mut colours = 0..;
    let pen = |series: &Series| match series.kind {
        Kind::Auto => Pen::Strong,
        Kind::Way | Kind::OtherBuffers => Pen::Colour(colours.next().unwrap_or(0)),
    };
    all.iter().map(pen).collect()
}

fn legend(all: &[Series], thin: &[Series]) -> String {
    let mut legend = String::from("<ul class=\"legend\">");
    for (series, pen) in all.iter().zip(pens(all)) {
        let name = escaped(&series.legend());
        let name = if pen == Pen::Strong { format!("<strong>{name}</strong>") } else { name };
        legend.push_str(&format!("<li>{}{name}</li>", key(pen)));
    }
    for (index, series) in thin.iter().enumerate() {
        legend.push_str(&format!("<li>{}{} (bare)</li>", key(Pen::Thin(index)), escaped(&series.name)));
    }
    legend + "</ul>"
}

/// A piece of a line.
fn key(pen: Pen) -> String {
    let (colour, width, dash) = match pen {
        Pen::Colour(index) => (format!("s{}", index % SERIES_COLOURS), 3, broken(index)),
        Pen::Strong => ("ink".to_owned(), 6, ""),
        Pen::Thin(index) => ("soft".to_owned(), 1, DASHES[index % DASHES.len()]),
    };
    format!(
        "<svg class=\"key\" viewBox=\"0 0 32 8\" aria-hidden=\"true\"><path d=\"M0 4h32\" \
         style=\"stroke:var(--{colour});stroke-width:{width};stroke-dasharray:{dash}\"/></svg>"
    )
}

/// A plot of throughput by itself, as part of another page.
///
/// # Errors
/// There is nothing to plot.
pub(crate) fn plot_figure(title: &str, all: &[Series], thin: &[Series]) -> Result<String, BenchError> {
    let lines = lines(all, thin, &|point| point.mb_per_s);
    let chart = Chart { lines: &lines, marks: &[], axis: "throughput, MB/s", scale: Scale::Logarithmic };
    figure(title, &chart, &legend(all, thin), "Both axes are logarithmic.")
}

/// A picture with a title above it, a legend, and a caption below.
///
/// # Errors
/// There is nothing to plot.
pub(crate) fn figure(
    title: &str,
    chart: &Chart<'_>,
    legend: &str,
    caption: &str,
) -> Result<String, BenchError> {
    let mut text = format!("{title} against message size.");
    for Line { name, points, .. } in chart.lines.iter().filter(|line| !matches!(line.pen, Pen::Thin(_))) {
        if let (Some(first), Some(last)) = (points.first(), points.last()) {
            // Writing into a String cannot fail.
            let _ = write!(
                text,
                " {name}: {:.2} at {}, {:.2} at {}.",
                first.1,
                human(first.0),
                last.1,
                human(last.0)
            );
        }
    }
    // A picture with a text in its place, for those who cannot see it.
    let svg = chart.draw()?.replacen(
        "<svg ",
        &format!("<svg role=\"img\" aria-label=\"{}\" font-family=\"system-ui,sans-serif\" ", escaped(&text)),
        1,
    );
    let title = escaped(title);
    Ok(format!(
        "<h2>{title}</h2>\n<figure>\n{legend}\n<div class=\"wide\">{svg}</div>\n<figcaption>{caption}</figcaption>\n</figure>\n"
    ))
}

/// A whole page: a title and what it is, a body, and what is told of the machine.
pub(crate) fn page(title: &str, introduction: &str, environment: &Environment, body: &str) -> String {
    let line = |(name, value): (&str, String)| format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(&value));
    let lines: String = environment.lines().into_iter().map(line).collect();
    let warning = environment
        .warning()
        .map_or_else(String::new, |sentence| format!("<p class=\"warning\">{}</p>\n", escaped(sentence)));
    let body = format!("{warning}{body}<h2>Where and how</h2>\n<dl>\n{lines}</dl>\n");
    document(title, introduction, &body)
}

/// One file that needs nothing else.
pub(crate) fn document(title: &str, introduction: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n<style>{}{PAGE_STYLE}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{introduction}</p>\n{body}</main>\n</body>\n</html>\n",
        colours()
    )
}

/// What a table shows of each point.
struct Column {
    unit: &'static str,
    cell: fn(&Point) -> String,
}

const TIMES: Column = Column { unit: "µs", cell: |point| format!("{:.3}", point.usec) };
const SPEEDS: Column = Column { unit: "MB/s", cell: |point| format!("{:.1}", point.mb_per_s) };

fn write_table(page: &mut String, all: &[Series], column: &Column, mark_best: bool) -> std::fmt::Result {
    page.push_str("<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">size</th>");
    for series in all {
        write!(page, "<th scope=\"col\">{}, {}</th>", escaped(&series.name), column.unit)?;
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for bytes in sizes_of(all) {
        let best = winner(all, bytes).filter(|_| mark_best);
        write!(page, "<tr><th scope=\"row\">{}</th>", human(bytes))?;
        for series in all {
            let Some(point) = series.at(bytes) else {
                page.push_str("<td>–</td>");
                continue;
            };
            let class =
                if best.is_some_and(|best| best.name == series.name) { " class=\"best\"" } else { "" };
            write!(page, "<td{class} title=\"{}\">{}</td>", escaped(&spread(point)), (column.cell)(point))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
    Ok(())
}

fn spread(point: &Point) -> String {
    let (least, most) = point.usec_range;
    let range = format!("from {least:.3} to {most:.3} µs");
    point
        .quartiles
        .map_or(range.clone(), |(lower, upper)| format!("quartiles {lower:.3} and {upper:.3} µs, {range}"))
}
