//! The plots, as SVG.
//!
//! The drawing library knows fixed colours only; the page wants its own, one
//! set for light and one for dark. So every role is drawn in a colour of its
//! own that stands for it, and [`draw`] replaces these by the page's variables.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::html::{COLOUR_STYLE, colours, escaped};
use super::{Crossover, Point, Report, Series};
use crate::error::BenchError;
use crate::sizes::human;

const WIDTH: u32 = 920;
const HEIGHT: u32 = 440;
/// Room on the right for the lines' names.
const NAMES_WIDTH: i32 = 130;
/// Where a picture's own title begins.
const TITLE_X: i32 = 80;
/// Least distance of two names, in pixels.
const NAME_STEP: i32 = 15;

const INK: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(1, 2, 4);
const FAINT: RGBColor = RGBColor(1, 2, 5);
const MARK: RGBColor = RGBColor(1, 2, 6);
/// Mechanism number i is drawn in (1, 3, i).
const SERIES_GREEN: u8 = 3;
/// Bare method number i is drawn in (1, 4, i).
const LIMIT_GREEN: u8 = 4;
/// How the thin lines are broken, so that they can be told apart without colours.
pub(super) const DASHES: [&str; 4] = ["none", "8 3", "2 3", "10 3 2 3"];
/// Colours of lines there are in the page's style; more mechanisms begin anew.
pub(crate) const SERIES_COLOURS: usize = 9;

/// What is plotted against size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Throughput,
    Time,
}

impl Quantity {
    fn value(self) -> fn(&Point) -> f64 {
        match self {
            Self::Throughput => |point| point.mb_per_s,
            Self::Time => |point| point.usec,
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Throughput => "throughput, MB/s",
            Self::Time => "one-way time, µs",
        }
    }
}

/// An axis whose coordinate is a logarithm, with its own marks.
#[derive(Clone)]
struct LogAxis {
    inner: RangedCoordf64,
    marks: Vec<f64>,
    light: Vec<f64>,
    label: fn(f64) -> String,
}

impl Ranged for LogAxis {
    type FormatOption = plotters::coord::ranged1d::NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.inner.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            self.marks.iter().chain(&self.light).copied().collect()
        } else {
            self.marks.clone()
        }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.inner.range()
    }
}

impl ValueFormatter<f64> for LogAxis {
    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

/// Lines against message size, both logarithmic.
pub(crate) struct Chart<'a> {
    /// The lines.
    pub lines: &'a [Series],
    /// Thin ones below them.
    pub thin: &'a [Series],
    /// Where a dashed line stands, and what is written above it.
    pub marks: &'a [Crossover],
    /// What is plotted: a word and its unit.
    pub axis: &'a str,
    /// Its value at a point.
    pub value: fn(&Point) -> f64,
}

/// An SVG of one quantity against message size, with the page's colours.
///
/// # Errors
/// There is nothing to plot, or the drawing library fails.
pub(super) fn draw(report: &Report, quantity: Quantity) -> Result<String, BenchError> {
    let thin = report.plotted_limits();
    let (axis, value) = (quantity.axis(), quantity.value());
    Chart { lines: &report.mechanisms, thin: &thin, marks: &report.crossovers, axis, value }.draw()
}

impl Chart<'_> {
    /// As SVG, with the page's variables for colours.
    ///
    /// # Errors
    /// There is nothing to plot, or the drawing library fails.
    pub fn draw(&self) -> Result<String, BenchError> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
            self.draw_on(&area)
                .and_then(|()| area.present().map_err(|error| error.to_string()))
                .map_err(|error| BenchError::Failure(format!("the plot cannot be drawn: {error}")))?;
        }
        Ok(with_page_colours(&svg))
    }

    /// As an SVG that stands by itself, with a title and a text for those who
    /// cannot see it.
    ///
    /// # Errors
    /// As [`Self::draw`].
    pub fn draw_alone(&self, title: &str, text: &str) -> Result<String, BenchError> {
        let (title, text) = (escaped(title), escaped(text));
        let style = format!("{}{COLOUR_STYLE}svg{{background:var(--paper)}}", colours());
        let drawn = self.draw()?;
        // Behind the element's own `>`, in front of all that is drawn.
        let (element, rest) = drawn.split_once('>').unwrap_or((&drawn, ""));
        Ok(format!(
            "{element} role=\"img\" aria-label=\"{text}\" font-family=\"system-ui,sans-serif\">\
             <style>{style}</style><text x=\"{TITLE_X}\" y=\"18\" class=\"title\">{title}</text>{rest}"
        ))
    }

    fn draw_on(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
        let all = || self.lines.iter().chain(self.thin);
        let x = size_axis(all()).ok_or("no sizes were measured")?;
        let y = value_axis(all(), self.value).ok_or("no times were measured")?;
        let say = |error: &dyn std::fmt::Display| error.to_string();
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(NAMES_WIDTH)
            .margin_top(26)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)
            .map_err(|error| say(&error))?;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(FAINT)
            .axis_style(INK)
            .label_style(("sans-serif", 13).into_font().color(&INK))
            .axis_desc_style(("sans-serif", 14).into_font().color(&INK))
            .x_desc("message size")
            .y_desc(self.axis)
            .draw()
            .map_err(|error| say(&error))?;
        let top = chart.as_coord_spec().get_y_range().end;
        let bottom = chart.as_coord_spec().get_y_range().start;
        for mark in self.marks {
            let at = log2(mark.bytes);
            let (place, foot) = (chart.backend_coord(&(at, top)), chart.backend_coord(&(at, bottom)));
            draw_mark(area, &mark.to, place, foot.1)?;
        }
        let mut names = Vec::new();
        for (thin, index, series) in lines(self.lines, self.thin) {
            let colour = if thin { limit_colour(index) } else { colour(index) };
            let points = positions(series, self.value);
            chart
                .draw_series(LineSeries::new(points.clone(), colour.stroke_width(if thin { 1 } else { 2 })))
                .map_err(|error| say(&error))?;
            if !thin {
                let dots = points.iter().map(|&point| Circle::new(point, 3, colour.filled()));
                chart.draw_series(dots).map_err(|error| say(&error))?;
            }
            if let Some(last) = points.last() {
                let place = chart.backend_coord(last);
                names.push((place.1, place.0, series.name.as_str(), colour));
            }
        }
        write_names(area, names)
    }
}

/// A dashed line downwards from a place, with a word above it.
fn draw_mark(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    word: &str,
    place: (i32, i32),
    foot: i32,
) -> Result<(), String> {
    let say = |error: &dyn std::fmt::Display| error.to_string();
    for dash in (place.1..foot).step_by(9) {
        let line = PathElement::new([(place.0, dash), (place.0, foot.min(dash + 5))], MARK);
        area.draw(&line).map_err(|error| say(&error))?;
    }
    let style = ("sans-serif", 12).into_font().color(&MARK).pos(Pos::new(HPos::Center, VPos::Bottom));
    area.draw_text(word, &style, (place.0, place.1 - 4)).map_err(|error| say(&error))
}

/// Every line with whether it is thin and its number: the thin ones below.
fn lines<'a>(lines: &'a [Series], thin: &'a [Series]) -> impl Iterator<Item = (bool, usize, &'a Series)> {
    let thin = thin.iter().enumerate().map(|(index, series)| (true, index, series));
    thin.chain(lines.iter().enumerate().map(|(index, series)| (false, index, series)))
}

/// Writes each line's name at its end, moved apart where they would overlap.
fn write_names(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    mut names: Vec<(i32, i32, &str, RGBColor)>,
) -> Result<(), String> {
    names.sort_unstable_by_key(|&(y, ..)| y);
    let mut lowest = i32::MIN;
    for name in &mut names {
        name.0 = name.0.max(lowest);
        lowest = name.0.saturating_add(NAME_STEP);
    }
    // Those that were pushed beyond the bottom push the others back up.
    let mut highest = i32::try_from(HEIGHT).unwrap_or(i32::MAX) - 60;
    for name in names.iter_mut().rev() {
        name.0 = name.0.min(highest);
        highest = name.0 - NAME_STEP;
    }
    for (y, x, name, colour) in names {
        let style = ("sans-serif", 13).into_font().color(&colour).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(name, &style, (x + 9, y)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn colour(index: usize) -> RGBColor {
    // Less than SERIES_COLOURS, so that nothing is cut off.
    RGBColor(1, SERIES_GREEN, (index % SERIES_COLOURS) as u8)
}

fn limit_colour(index: usize) -> RGBColor {
    // Less than the number of DASHES, so that nothing is cut off.
    RGBColor(1, LIMIT_GREEN, (index % DASHES.len()) as u8)
}

/// The points that a logarithmic plot can show.
fn positions(series: &Series, value: fn(&Point) -> f64) -> Vec<(f64, f64)> {
    let shown = series.points.iter().filter(|point| point.bytes > 0 && value(point) > 0.0);
    shown.map(|point| (log2(point.bytes), value(point).log10())).collect()
}

fn log2(bytes: u64) -> f64 {
    (bytes as f64).log2()
}

fn size_axis<'a>(all: impl Iterator<Item = &'a Series>) -> Option<LogAxis> {
    let sizes: Vec<f64> = all
        .flat_map(|series| series.points.iter())
        .filter(|point| point.bytes > 0)
        .map(|point| log2(point.bytes))
        .collect();
    let (start, end) = bounds(&sizes)?;
    // The wider the range, the fewer of its powers of two have a mark.
    let step = if end - start > 10.0 { 4 } else { 1 };
    let powers = start.ceil() as u32..=end.floor() as u32;
    let (marks, light) = powers.map(f64::from).partition(|power| (*power as u32).is_multiple_of(step));
    let label = |power: f64| human(1 << power as u32);
    Some(LogAxis { inner: padded(start, end, 0.01).into(), marks, light, label })
}

fn value_axis<'a>(all: impl Iterator<Item = &'a Series>, value: fn(&Point) -> f64) -> Option<LogAxis> {
    let values: Vec<f64> = all.flat_map(|series| positions(series, value)).map(|(_, value)| value).collect();
    let (start, end) = bounds(&values)?;
    let inside = |value: &f64| (start - 0.05..=end + 0.05).contains(value);
    let decades = start.floor() as i32..=end.ceil() as i32;
    let few = end - start < 1.5;
    let marks = |factors: &[f64]| -> Vec<f64> {
        let all = decades.clone().flat_map(|decade| {
            factors.iter().map(move |factor: &f64| f64::from(decade) + factor.log10()).collect::<Vec<_>>()
        });
        all.filter(inside).collect()
    };
    let (marks, light) = if few {
        (marks(&[1.0, 2.0, 5.0]), marks(&[3.0, 4.0, 6.0, 7.0, 8.0, 9.0]))
    } else {
        (marks(&[1.0]), marks(&[2.0, 5.0]))
    };
    Some(LogAxis { inner: padded(start, end, 0.05).into(), marks, light, label: value_label })
}

/// 10 to that power, with no more digits than it needs.
fn value_label(power: f64) -> String {
    let value = 10f64.powf(power);
    if value >= 1.0 {
        let digits = format!("{value:.0}");
        // Thousands apart, as 10 000.
        let split = digits.len().saturating_sub(3);
        if digits.len() > 4 { format!("{} {}", &digits[..split], &digits[split..]) } else { digits }
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').to_owned()
    }
}

fn bounds(values: &[f64]) -> Option<(f64, f64)> {
    let start = values.iter().copied().reduce(f64::min)?;
    let end = values.iter().copied().reduce(f64::max)?;
    Some((start, end))
}

fn padded(start: f64, end: f64, part: f64) -> std::ops::Range<f64> {
    let room = ((end - start) * part).max(0.02);
    start - room..end + room
}

/// Puts the page's variables in the place of the colours that stand for them.
fn with_page_colours(svg: &str) -> String {
    let roles = [(INK, "ink"), (GRID, "grid"), (FAINT, "faint"), (MARK, "mark")];
    let fixed = roles.map(|(colour, name)| (colour, format!("var(--{name})"), ""));
    let series = (0..SERIES_COLOURS).map(|index| (colour(index), format!("var(--s{index})"), ""));
    let limits = DASHES.iter().enumerate();
    let limits = limits.map(|(index, dash)| (limit_colour(index), "var(--soft)".to_owned(), *dash));
    let mut svg = svg.to_owned();
    for (RGBColor(red, green, blue), page, dash) in fixed.into_iter().chain(series).chain(limits) {
        let code = format!("#{red:02X}{green:02X}{blue:02X}");
        let dash = if dash.is_empty() { String::new() } else { format!(";stroke-dasharray:{dash}") };
        svg = svg.replace(&format!("fill=\"{code}\""), &format!("style=\"fill:{page}\""));
        svg = svg.replace(&format!("stroke=\"{code}\""), &format!("style=\"stroke:{page}{dash}\""));
    }
    svg
}
