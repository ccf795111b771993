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

use super::labels::{Area, apart, beside};
use super::style::{SERIES_COLOURS, colours};
use super::{Crossover, escaped};
use crate::error::BenchError;
use crate::sizes::human;

const WIDTH: u32 = 920;
const HEIGHT: u32 = 440;
/// Room on the right for the lines' names, or for longer ones.
const NAMES_WIDTH: i32 = 130;
/// Room at the top for the words of marks.
const TOP: u32 = 26;
/// Where a picture's own title begins, and the room for it.
const TITLE_X: i32 = 80;
const TITLE_HEIGHT: u32 = 22;
/// Room for a name with its distance from the next, in pixels.
const NAME_HEIGHT: f64 = 15.0;
/// About how wide a letter of a name is; more than most are.
const LETTER: f64 = 7.4;
/// How far a name is from the end of its line.
const NAME_GAP: i32 = 9;
/// Distance of the points of a line that a name keeps clear of.
const DRAWN_STEP: f64 = 4.0;

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
/// Lines from this number on are broken, since their colours are near to earlier ones.
const BROKEN_FROM: usize = 5;
const BROKEN: &str = "7 2";
/// How a picture's own title is written.
const TITLE_STYLE: &str = ".title{font-weight:600;font-size:15px;fill:var(--ink)}";
/// The most that [`Scale::Multiple`] shows.
const MAX_MULTIPLE: f64 = 4.0;

/// An axis with its own marks; its coordinate may be a logarithm.
#[derive(Clone)]
struct MarkedAxis {
    inner: RangedCoordf64,
    marks: Vec<f64>,
    light: Vec<f64>,
    label: fn(f64) -> String,
}

impl Ranged for MarkedAxis {
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

impl ValueFormatter<f64> for MarkedAxis {
    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pen {
    /// In the colour with this number.
    Colour(usize),
    /// So that it stands out.
    Strong,
    /// Thin and below the others, broken in the manner with this number.
    Thin(usize),
}

/// One line: values by message size, ascending.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What stands at its end.
    pub name: String,
    /// How it is drawn.
    pub pen: Pen,
    /// Sizes and values.
    pub points: Vec<(u64, f64)>,
}

/// A dashed line at a size, with a word above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The size.
    pub bytes: u64,
    /// The word.
    pub word: String,
}

impl From<&Crossover> for Mark {
    fn from(crossover: &Crossover) -> Self {
        Self { bytes: crossover.bytes, word: crossover.to.clone() }
    }
}

/// How values go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// By powers of ten.
    Logarithmic,
    /// From 0 to 1.
    Part,
    /// How many times as much as the least, logarithmic; what is more than four times is
    /// shown as four times.
    Multiple,
}

impl Scale {
    fn place(self, value: f64) -> Option<f64> {
        match self {
            Self::Logarithmic => (value > 0.0).then(|| value.log10()),
            Self::Part => Some(value),
            Self::Multiple => Self::Logarithmic.place(value.min(MAX_MULTIPLE)),
        }
    }
}

/// Lines against message size, which is logarithmic.
pub(crate) struct Chart<'a> {
    /// The lines.
    pub lines: &'a [Line],
    /// Where a dashed line stands, and what is written above it.
    pub marks: &'a [Mark],
    /// What is plotted: a word and its unit.
    pub axis: &'a str,
    /// How its values go up.
    pub scale: Scale,
}

impl Chart<'_> {
    /// As SVG, with the page's variables for colours.
    ///
    /// # Errors
    /// There is nothing to plot, or the drawing library fails.
    pub fn draw(&self) -> Result<String, BenchError> {
        self.draw_below(TOP)
    }

    fn draw_below(&self, top: u32) -> Result<String, BenchError> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
            self.draw_on(&area, top)
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
        let style = format!("{}{TITLE_STYLE}svg{{background:var(--paper)}}", colours());
        let drawn = self.draw_below(TOP + TITLE_HEIGHT)?;
        // Behind the element's own `>`, in front of all that is drawn.
        let (element, rest) = drawn.split_once('>').unwrap_or((&drawn, ""));
        Ok(format!(
            "{element} role=\"img\" aria-label=\"{text}\" font-family=\"system-ui,sans-serif\">\
             <style>{style}</style><text x=\"{TITLE_X}\" y=\"18\" class=\"title\">{title}</text>{rest}"
        ))
    }

    fn draw_on(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, top: u32) -> Result<(), String> {
        let x = size_axis(self.lines).ok_or("no sizes were measured")?;
        let y = value_axis(self.lines, self.scale).ok_or("no times were measured")?;
        let say = |error: &dyn std::fmt::Display| error.to_string();
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(self.names_width())
            .margin_top(top)
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
        let (left, top) = corner(chart.plotting_area().get_pixel_range());
        let (right, bottom) = far_corner(chart.plotting_area().get_pixel_range());
        let floor = chart.as_coord_spec().get_y_range().start;
        let place = |mark: &Mark| chart.backend_coord(&(log2(mark.bytes), floor)).0;
        let marks: Vec<(i32, &str)> =
            self.marks.iter().map(|mark| (place(mark), mark.word.as_str())).collect();
        draw_marks(area, &marks, (top, bottom))?;
        let mut drawn = Vec::new();
        for line in in_order(self.lines) {
            let points = self.positions(line);
            let style = line.pen.colour().stroke_width(line.pen.width());
            chart.draw_series(LineSeries::new(points.clone(), style)).map_err(|error| say(&error))?;
            let dots = points.iter().filter(|_| line.pen.radius() > 0);
            let dots = dots.map(|&point| Circle::new(point, line.pen.radius(), line.pen.colour().filled()));
            chart.draw_series(dots).map_err(|error| say(&error))?;
            let pixels: Vec<(i32, i32)> = points.iter().map(|point| chart.backend_coord(point)).collect();
            drawn.push((line, pixels));
        }
        let inside = Area {
            left: left.into(),
            top: top.into(),
            width: (right - left).into(),
            height: (bottom - top).into(),
        };
        write_names(area, &drawn, &marks, inside)
    }

    fn names_width(&self) -> i32 {
        let longest = self.lines.iter().map(|line| word_width(&line.name)).fold(0.0, f64::max);
        NAMES_WIDTH.max(longest.ceil() as i32 + 2 * NAME_GAP)
    }

    /// The points that a plot can show.
    fn positions(&self, line: &Line) -> Vec<(f64, f64)> {
        let shown = line.points.iter().filter(|(bytes, _)| *bytes > 0);
        shown.filter_map(|&(bytes, value)| Some((log2(bytes), self.scale.place(value)?))).collect()
    }
}

impl Pen {
    fn colour(self) -> RGBColor {
        match self {
            Self::Colour(index) => colour(index),
            Self::Strong => INK,
            Self::Thin(index) => limit_colour(index),
        }
    }

    const fn width(self) -> u32 {
        match self {
            Self::Colour(_) => 2,
            Self::Strong => 5,
            Self::Thin(_) => 1,
        }
    }

    const fn radius(self) -> u32 {
        match self {
            Self::Colour(_) => 3,
            Self::Strong => 5,
            Self::Thin(_) => 0,
        }
    }

    /// What is below comes first.
    const fn layer(self) -> u8 {
        match self {
            Self::Thin(_) => 0,
            Self::Strong => 1,
            Self::Colour(_) => 2,
        }
    }
}

/// The lines in the order in which they are drawn. The strong one is wide, so that one of
/// another colour that lies on it leaves it visible on both sides.
fn in_order(lines: &[Line]) -> Vec<&Line> {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| line.pen.layer());
    lines
}

fn corner((x, y): (std::ops::Range<i32>, std::ops::Range<i32>)) -> (i32, i32) {
    (x.start, y.start)
}

fn far_corner((x, y): (std::ops::Range<i32>, std::ops::Range<i32>)) -> (i32, i32) {
    (x.end, y.end)
}

/// Dashed lines downwards from the top, each with a word above it.
fn draw_marks(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    marks: &[(i32, &str)],
    (top, bottom): (i32, i32),
) -> Result<(), String> {
    let say = |error: &dyn std::fmt::Display| error.to_string();
    let wanted: Vec<(f64, f64)> =
        marks.iter().map(|&(x, word)| (f64::from(x), word_width(word) + LETTER)).collect();
    let places = apart(&wanted, &(0.0..f64::from(WIDTH)));
    for (&(x, word), word_x) in marks.iter().zip(places) {
        for dash in (top..bottom).step_by(9) {
            let line = PathElement::new([(x, dash), (x, bottom.min(dash + 5))], MARK);
            area.draw(&line).map_err(|error| say(&error))?;
        }
        let style = ("sans-serif", 12).into_font().color(&MARK).pos(Pos::new(HPos::Center, VPos::Bottom));
        // Within the picture: nothing is cut off but a fraction.
        area.draw_text(word, &style, (word_x as i32, top - 4)).map_err(|error| say(&error))?;
    }
    Ok(())
}

fn word_width(word: &str) -> f64 {
    word.chars().count() as f64 * LETTER
}

/// Writes each line's name at its end: right of the plot where that is the last size, else
/// beside the line; none on another.
fn write_names(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    lines: &[(&Line, Vec<(i32, i32)>)],
    marks: &[(i32, &str)],
    inside: Area,
) -> Result<(), String> {
    let ends = || lines.iter().filter_map(|(line, pixels)| Some((*line, *pixels.last()?)));
    let Some(last_x) = ends().map(|(_, (x, _))| x).max() else { return Ok(()) };
    let (outer, inner): (Vec<_>, Vec<_>) = ends().partition(|(_, (x, _))| *x == last_x);
    let wanted: Vec<(f64, f64)> = outer.iter().map(|(_, (_, y))| (f64::from(*y), NAME_HEIGHT)).collect();
    let column = apart(&wanted, &(inside.top - NAME_HEIGHT..inside.top + inside.height + NAME_HEIGHT));
    for ((line, (x, _)), y) in outer.iter().zip(column) {
        write_name(area, line, (*x + NAME_GAP, y))?;
    }
    // Inside the picture: nothing is cut off but a fraction.
    let (top, bottom) = (inside.top as i32, (inside.top + inside.height) as i32);
    let marks = marks.iter().flat_map(|&(x, _)| along(&[(x, top), (x, bottom)]));
    let drawn: Vec<(f64, f64)> = lines.iter().flat_map(|(_, pixels)| along(pixels)).chain(marks).collect();
    let mut taken = Vec::new();
    for (line, (x, y)) in inner {
        let size = (word_width(&line.name), NAME_HEIGHT);
        let place = beside((x.into(), y.into()), size, &taken, &drawn, inside);
        taken.push(place);
        write_name(area, line, (place.left as i32, place.top + NAME_HEIGHT / 2.0))?;
    }
    Ok(())
}

fn write_name(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    line: &Line,
    (x, y): (i32, f64),
) -> Result<(), String> {
    let font = ("sans-serif", 13).into_font();
    let font = if line.pen == Pen::Strong { font.style(FontStyle::Bold) } else { font };
    let style = font.color(&line.pen.colour()).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw_text(&line.name, &style, (x, y.round() as i32)).map_err(|error| error.to_string())
}

/// Points along a line, near enough to each other that no name fits between two.
fn along(pixels: &[(i32, i32)]) -> Vec<(f64, f64)> {
    let mut all = Vec::new();
    for pair in pixels.windows(2) {
        let [from, to] = [pair[0], pair[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        // Not hypot, which glibc 2.35 gave a new version: packages are for older ones, too.
        let steps = ((across * across + down * down).sqrt() / DRAWN_STEP).ceil().max(1.0) as u32;
        all.extend((0..=steps).map(|step| {
            let part = f64::from(step) / f64::from(steps);
            (from.0 + part * across, from.1 + part * down)
        }));
    }
    all
}

fn colour(index: usize) -> RGBColor {
    // Less than SERIES_COLOURS, so that nothing is cut off.
    RGBColor(1, SERIES_GREEN, (index % SERIES_COLOURS) as u8)
}

fn limit_colour(index: usize) -> RGBColor {
    // Less than the number of DASHES, so that nothing is cut off.
    RGBColor(1, LIMIT_GREEN, (index % DASHES.len()) as u8)
}

fn log2(bytes: u64) -> f64 {
    (bytes as f64).log2()
}

fn size_axis(lines: &[Line]) -> Option<MarkedAxis> {
    let sizes = lines.iter().flat_map(|line| &line.points).filter(|(bytes, _)| *bytes > 0);
    let sizes: Vec<f64> = sizes.map(|(bytes, _)| log2(*bytes)).collect();
    let (start, end) = bounds(&sizes)?;
    // The wider the range, the fewer of its powers of two have a mark.
    let step = if end - start > 10.0 { 4 } else { 1 };
    let powers = start.ceil() as u32..=end.floor() as u32;
    let (marks, light) = powers.map(f64::from).partition(|power| (*power as u32).is_multiple_of(step));
    let label = |power: f64| human(1 << power as u32);
    Some(MarkedAxis { inner: padded(start, end, 0.01).into(), marks, light, label })
}

fn value_axis(lines: &[Line], scale: Scale) -> Option<MarkedAxis> {
    let values = lines.iter().flat_map(|line| &line.points).filter(|(bytes, _)| *bytes > 0);
    let values: Vec<f64> = values.filter_map(|(_, value)| scale.place(*value)).collect();
    let (start, end) = bounds(&values)?;
    if scale == Scale::Part {
        let parts = |step: usize| (0..=20).step_by(step).map(|part| f64::from(part) / 20.0).collect();
        let label = |part: f64| format!("{part:.1}");
        return Some(MarkedAxis { inner: (0.0..1.03).into(), marks: parts(4), light: parts(2), label });
    }
    if scale == Scale::Multiple {
        let marks = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, MAX_MULTIPLE].map(f64::log10).to_vec();
        let label = |power: f64| format!("{}×", (100.0 * 10f64.powf(power)).round() / 100.0);
        let inner = (start.min(0.0) - 0.01..MAX_MULTIPLE.log10() + 0.02).into();
        return Some(MarkedAxis { inner, marks, light: Vec::new(), label });
    }
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
    Some(MarkedAxis { inner: padded(start, end, 0.05).into(), marks, light, label: value_label })
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

/// How a line in the colour with this number is broken.
pub(super) fn broken(index: usize) -> &'static str {
    if index % SERIES_COLOURS < BROKEN_FROM { "" } else { BROKEN }
}

/// Puts the page's variables in the place of the colours that stand for them.
fn with_page_colours(svg: &str) -> String {
    let roles = [(INK, "ink"), (GRID, "grid"), (FAINT, "faint"), (MARK, "mark")];
    let fixed = roles.map(|(colour, name)| (colour, format!("var(--{name})"), ""));
    let series = (0..SERIES_COLOURS).map(|index| (colour(index), format!("var(--s{index})"), broken(index)));
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
