//! Curves of all ways against size, with the ranges above them and the
//! crossovers between, as SVG.

use std::fmt::Write;

use lmt_selector::calibration::{Class, Course, CourseRules};

use super::super::summary::Run;
use crate::report::{SERIES_COLOURS, escaped};
use crate::sizes::human;

const WIDTH: f64 = 920.0;
/// As far as two rows of the legend go.
const HEIGHT: f64 = 470.0;
const LEGEND_TOP: f64 = HEIGHT - 26.0;
const LEGEND_ROW: f64 = 18.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
/// The title and the strip of ranges.
const TOP: f64 = 80.0;
const STRIP_TOP: f64 = 44.0;
const STRIP_HEIGHT: f64 = 24.0;
const BOTTOM: f64 = 62.0;
/// About how wide a letter of a label is.
const LETTER: f64 = 7.2;
/// Relative times are shown up to this many times the fastest.
const MOST_RELATIVE: f64 = 4.0;
/// How lines are broken once the colours begin anew.
const DASHES: [&str; 3] = ["none", "7 3", "2 3"];

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A way's time by that of the fastest.
    Relative,
    /// Bytes by time.
    Throughput,
}

impl Quantity {
    /// A heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Relative => "Time against the fastest way",
            Self::Throughput => "Throughput",
        }
    }

    /// What the picture shows, in sentences.
    pub fn caption(self) -> &'static str {
        match self {
            Self::Relative => {
                "How many times as long as the fastest a way takes, up to four times: the median over the passes of the \
                 ratio within each, by which the ways are chosen. Both axes are logarithmic. \
                 The strip shows the chosen way of each range; dashed lines are the crossovers, which belong to \
                 the range on their left."
            }
            Self::Throughput => "Bytes of a message by its time; both axes are logarithmic.",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Relative => "time, as a multiple of the fastest",
            Self::Throughput => "MB/s",
        }
    }
}

/// The colour of each way, the same in all pictures: first those that are
/// chosen somewhere.
pub struct Colours {
    ways: Vec<String>,
    chosen: usize,
}

impl Colours {
    /// The colours of all that was measured.
    pub fn of(courses: &[&CourseRules], measured: &[Course]) -> Self {
        let mut ways: Vec<String> = Vec::new();
        let mut add = |way: &str| {
            if !ways.iter().any(|known| known == way) {
                ways.push(way.to_owned());
            }
        };
        courses.iter().flat_map(|course| &course.chosen).for_each(|chosen| add(&chosen.way));
        let mut colours = Self { chosen: ways.len(), ways };
        let all = measured.iter().flat_map(Course::classes).flat_map(|(_, class)| class.ways());
        for (way, _) in all {
            if !colours.ways.iter().any(|known| known == way) {
                colours.ways.push(way.to_owned());
            }
        }
        colours
    }

    fn index(&self, way: &str) -> usize {
        self.ways.iter().position(|known| known == way).unwrap_or(0)
    }

    fn colour(&self, way: &str) -> String {
        format!("var(--s{})", self.index(way) % SERIES_COLOURS)
    }

    fn dash(&self, way: &str) -> &'static str {
        DASHES[self.index(way) / SERIES_COLOURS % DASHES.len()]
    }

    fn is_chosen(&self, way: &str) -> bool {
        self.index(way) < self.chosen
    }
}

/// One picture.
pub struct Picture<'a> {
    runs: &'a [Run],
    colours: &'a Colours,
    quantity: Quantity,
    title: &'a str,
    /// Each way with its points: size and value.
    lines: Vec<(String, Vec<(u64, f64)>)>,
    /// The logarithms of the ends of the axes.
    x: (f64, f64),
    y: (f64, f64),
}

impl<'a> Picture<'a> {
    /// Prepares the lines and axes.
    pub fn new(
        course: &Course,
        runs: &'a [Run],
        colours: &'a Colours,
        quantity: Quantity,
        title: &'a str,
    ) -> Self {
        let mut lines: Vec<(String, Vec<(u64, f64)>)> =
            colours.ways.iter().map(|way| (way.clone(), Vec::new())).collect();
        let median = |class: &Class, way: &str| class.samples(way).and_then(|samples| samples.median_ns());
        for (bytes, class) in course.classes() {
            let estimates = class.estimates();
            for (way, points) in &mut lines {
                let value = match quantity {
                    Quantity::Relative => estimates.get(way.as_str()).map(|estimate| estimate.regret.exp()),
                    // A byte per microsecond is a megabyte per second.
                    Quantity::Throughput => median(class, way).map(|ns| bytes as f64 * 1000.0 / ns),
                };
                points.extend(value.map(|value| (bytes, value)));
            }
        }
        lines.retain(|(_, points)| !points.is_empty());
        let sizes = || course.classes().map(|(bytes, _)| (bytes.max(1) as f64).log2());
        let x = (sizes().fold(f64::INFINITY, f64::min) - 0.6, sizes().fold(0.0, f64::max) + 0.4);
        let y = match quantity {
            Quantity::Relative => (0.0 - 0.02, MOST_RELATIVE.ln()),
            Quantity::Throughput => {
                let values = || lines.iter().flat_map(|(_, points)| points).map(|(_, value)| value.ln());
                (
                    values().fold(f64::INFINITY, f64::min) - 0.1,
                    values().fold(f64::NEG_INFINITY, f64::max) + 0.2,
                )
            }
        };
        Self { runs, colours, quantity, title, lines, x, y }
    }

    /// The SVG; with a style of its own if it is to stand alone.
    pub fn svg(&self, style: Option<&str>) -> String {
        let mut svg = String::new();
        // Writing into a String cannot fail.
        let _ = self.write(&mut svg, style);
        svg
    }

    fn write(&self, svg: &mut String, style: Option<&str>) -> std::fmt::Result {
        let text = escaped(&self.alternative());
        write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
             aria-label=\"{text}\" font-family=\"system-ui,sans-serif\" font-size=\"13\">",
            self.height()
        )?;
        if let Some(style) = style {
            write!(svg, "<style>{style}</style>")?;
        }
        let plot = self.quantity.title().replace(' ', "-").to_lowercase();
        let clip = format!("clip-{plot}-{:x}", hash(&text));
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        write!(
            svg,
            "<clipPath id=\"{clip}\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\"/></clipPath>\
             <text x=\"{LEFT}\" y=\"18\" class=\"title\">{}</text>",
            escaped(self.title)
        )?;
        self.write_ranges(svg)?;
        self.write_axes(svg)?;
        self.write_lines(svg, &clip)?;
        self.write_legend(svg)?;
        svg.push_str("</svg>");
        Ok(())
    }

    fn at_x(&self, bytes: f64) -> f64 {
        let part = (bytes.max(1e-9).log2() - self.x.0) / (self.x.1 - self.x.0);
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn at_y(&self, value: f64) -> f64 {
        let part = (value.ln() - self.y.0) / (self.y.1 - self.y.0);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }

    /// The strip, and the bands and lines below it.
    fn write_ranges(&self, svg: &mut String) -> std::fmt::Result {
        let bottom = HEIGHT - BOTTOM;
        for run in self.runs {
            let (start, end) =
                (self.at_x(run.above as f64), self.at_x(run.up_to.map_or(f64::MAX, |up| up as f64)));
            let (width, middle, colour) = (end - start, (start + end) / 2.0, self.colours.colour(&run.way));
            write!(
                svg,
                "<rect x=\"{start:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{:.1}\" class=\"band\" \
                 style=\"fill:{colour}\"/><rect x=\"{:.1}\" y=\"{STRIP_TOP}\" width=\"{:.1}\" \
                 height=\"{STRIP_HEIGHT}\" rx=\"3\" style=\"fill:{colour}\"><title>{}</title></rect>",
                bottom - TOP,
                start + 1.0,
                (width - 2.0).max(1.0),
                escaped(&run.to_string())
            )?;
            if let Some(label) = fitting(&run.way, width) {
                let y = STRIP_TOP + 17.0;
                write!(svg, "<text x=\"{middle:.1}\" y=\"{y}\" class=\"on\">{}</text>", escaped(label))?;
            }
        }
        let mut last = f64::NEG_INFINITY;
        for bound in self.runs.iter().filter_map(|run| run.up_to).take(self.runs.len().saturating_sub(1)) {
            let x = self.at_x(bound as f64);
            write!(svg, "<path d=\"M{x:.1} {}V{bottom}\" class=\"mark\"/>", STRIP_TOP + STRIP_HEIGHT)?;
            let label = human(bound);
            let half = label.len() as f64 * LETTER / 2.0;
            if x - half > last + 6.0 {
                write!(svg, "<text x=\"{x:.1}\" y=\"{}\" class=\"bound\">{label}</text>", STRIP_TOP - 4.0)?;
                last = x + half;
            }
        }
        Ok(())
    }

    fn write_axes(&self, svg: &mut String) -> std::fmt::Result {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        // Never more than 63.
        let powers = self.x.0.ceil().max(0.0) as u32..=self.x.1.floor() as u32;
        let step = if powers.end() - powers.start() > 10 { 2 } else { 1 };
        for power in powers.filter(|power| power.is_multiple_of(step)) {
            let x = self.at_x((1u64 << power) as f64);
            write!(
                svg,
                "<path d=\"M{x:.1} {TOP}V{bottom}\" class=\"grid\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" class=\"tick\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                human(1 << power)
            )?;
        }
        for (value, label) in self.marks() {
            let y = self.at_y(value);
            write!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{right}\" class=\"grid\"/>\
                 <text x=\"{}\" y=\"{:.1}\" class=\"tick\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.5
            )?;
        }
        let middle = (TOP + bottom) / 2.0;
        write!(
            svg,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" class=\"axis\"/>\
             <text x=\"18\" y=\"{middle}\" class=\"tick\" text-anchor=\"middle\" \
             transform=\"rotate(-90 18 {middle})\">{}</text>",
            self.quantity.axis()
        )
    }

    fn marks(&self) -> Vec<(f64, String)> {
        match self.quantity {
            Quantity::Relative => [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0].map(|v| (v, format!("{v}×"))).into(),
            Quantity::Throughput => {
                let decades = (-2..8).map(|power| 10f64.powi(power));
                let shown = decades.filter(|value| (self.y.0..self.y.1).contains(&value.ln()));
                shown.map(|value| (value, format!("{value}"))).collect()
            }
        }
    }

    fn write_lines(&self, svg: &mut String, clip: &str) -> std::fmt::Result {
        write!(svg, "<g clip-path=\"url(#{clip})\">")?;
        // What is chosen lies on top.
        for (way, points) in self.lines.iter().rev() {
            let class = if self.colours.is_chosen(way) { "line" } else { "line thinner" };
            let (colour, dash) = (self.colours.colour(way), self.colours.dash(way));
            let place = |(bytes, value): &(u64, f64)| (self.at_x(*bytes as f64), self.at_y(*value));
            let path: Vec<String> = points.iter().map(place).map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
            write!(
                svg,
                "<path d=\"M{}\" class=\"{class}\" style=\"stroke:{colour};stroke-dasharray:{dash}\"/>",
                path.join("L")
            )?;
            for (point, (x, y)) in
                points.iter().map(|point| (point, place(point))).filter(|(_, (_, y))| *y >= TOP)
            {
                let radius = if self.colours.is_chosen(way) { 3.2 } else { 1.8 };
                write!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" style=\"fill:{colour}\">\
                     <title>{}, {}: {:.2}</title></circle>",
                    escaped(way),
                    human(point.0),
                    point.1
                )?;
            }
        }
        svg.push_str("</g>");
        Ok(())
    }

    /// The height with all rows of the legend.
    fn height(&self) -> f64 {
        let last = self.legend().last().map_or(0.0, |(_, _, y)| *y);
        HEIGHT.max(last + HEIGHT - LEGEND_TOP - LEGEND_ROW)
    }

    /// The ways below the axis with their places, in as many rows as it takes.
    fn legend(&self) -> Vec<(&str, f64, f64)> {
        let (mut x, mut y) = (LEFT, LEGEND_TOP);
        let mut places = Vec::new();
        for (way, _) in &self.lines {
            let width = 34.0 + way.len() as f64 * LETTER;
            if x + width > WIDTH - RIGHT && x > LEFT {
                (x, y) = (LEFT, y + LEGEND_ROW);
            }
            places.push((way.as_str(), x, y));
            x += width;
        }
        places
    }

    fn write_legend(&self, svg: &mut String) -> std::fmt::Result {
        for (way, x, y) in self.legend() {
            write!(
                svg,
                "<path d=\"M{x:.1} {:.1}h20\" class=\"line\" style=\"stroke:{};stroke-dasharray:{}\"/>\
                 <text x=\"{:.1}\" y=\"{y:.1}\" class=\"tick\">{}</text>",
                y - 4.5,
                self.colours.colour(way),
                self.colours.dash(way),
                x + 25.0,
                escaped(way)
            )?;
        }
        Ok(())
    }

    /// For those who cannot see it.
    fn alternative(&self) -> String {
        let runs: Vec<String> = self.runs.iter().map(ToString::to_string).collect();
        format!("{} by message size. Chosen: {}.", self.title, runs.join("; "))
    }
}

/// A label that fits into so many pixels: the way, else its mechanism, else
/// nothing.
fn fitting(way: &str, width: f64) -> Option<&str> {
    let name = way.split(':').next().unwrap_or(way);
    [way, name].into_iter().find(|label| label.len() as f64 * LETTER + 6.0 <= width)
}

/// Tells pictures of one page apart (FNV-1a).
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
