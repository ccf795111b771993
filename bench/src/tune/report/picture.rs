//! Curves of all paths against size, with dashed lines where another path is chosen.

use lmt_selector::calibration::{Class, Course, CourseRules};

use super::super::summary::Run;
use crate::error::BenchError;
use crate::report::{Chart, Line, Mark, Pen, Scale, figure};

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A path's time by that of the fastest.
    Relative,
    /// Bytes by time.
    Throughput,
}

impl Quantity {
    /// A heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Relative => "time against the fastest path",
            Self::Throughput => "throughput",
        }
    }

    /// What the picture shows, in sentences.
    fn caption(self) -> &'static str {
        match self {
            Self::Relative => {
                "How many times as long as the fastest a path takes; four times stands for all above: the median over \
                 the passes of the ratio within each, by which the paths are chosen. Both axes are logarithmic. Dashed \
                 lines: beyond this size the path named at the top is chosen."
            }
            Self::Throughput => "Bytes of a message by its time; both axes are logarithmic.",
        }
    }

    fn axis(self) -> (&'static str, Scale) {
        match self {
            Self::Relative => ("time, as a multiple of the fastest", Scale::Multiple),
            Self::Throughput => ("throughput, MB/s", Scale::Logarithmic),
        }
    }

    /// What each path comes to at a size.
    fn values(self, bytes: u64, class: &Class) -> Vec<(&str, f64)> {
        match self {
            Self::Relative => {
                class.estimates().into_iter().map(|(path, estimate)| (path, estimate.regret.exp())).collect()
            }
            // A byte per microsecond is a megabyte per second.
            Self::Throughput => class
                .ways()
                .filter_map(|(path, samples)| Some((path, bytes as f64 * 1000.0 / samples.median_ns()?)))
                .collect(),
        }
    }
}

/// All paths, first those that are chosen somewhere: a path's place is its colour in all
/// pictures.
pub fn paths(courses: &[&CourseRules], measured: &[Course]) -> Vec<String> {
    let chosen = courses.iter().flat_map(|course| &course.chosen).map(|chosen| chosen.way.as_str());
    let classes = measured.iter().flat_map(Course::classes);
    let all = classes.flat_map(|(_, class)| class.ways().map(|(path, _)| path).collect::<Vec<_>>());
    let mut paths: Vec<String> = Vec::new();
    for path in chosen.chain(all) {
        if !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// The curves of one load.
pub struct Picture {
    quantity: Quantity,
    title: String,
    lines: Vec<Line>,
    marks: Vec<Mark>,
    /// The ranges in words.
    chosen: String,
}

impl Picture {
    /// Prepares the lines; `paths` are those of [`paths`].
    pub fn new(course: &Course, runs: &[Run], paths: &[String], quantity: Quantity, load: &str) -> Self {
        let line = |(number, path): (usize, &String)| Line {
            name: path.clone(),
            pen: Pen::Colour(number),
            points: Vec::new(),
        };
        let mut lines: Vec<Line> = paths.iter().enumerate().map(line).collect();
        for (bytes, class) in course.classes() {
            for (path, value) in quantity.values(bytes, class) {
                if let Some(line) = lines.iter_mut().find(|line| line.name == path) {
                    line.points.push((bytes, value));
                }
            }
        }
        lines.retain(|line| !line.points.is_empty());
        let least = course.classes().map(|(bytes, _)| bytes).find(|bytes| *bytes > 0).unwrap_or(1);
        let marks =
            runs.iter().map(|run| Mark { bytes: run.above.max(least), word: run.way.clone() }).collect();
        let chosen: Vec<String> = runs.iter().map(ToString::to_string).collect();
        let title = format!("{load}: {}", quantity.title());
        Self { quantity, title, lines, marks, chosen: chosen.join("; ") }
    }

    fn chart(&self) -> Chart<'_> {
        let (axis, scale) = self.quantity.axis();
        Chart { lines: &self.lines, marks: &self.marks, axis, scale }
    }

    /// As a part of a page.
    ///
    /// # Errors
    /// There is nothing to draw.
    pub fn figure(&self) -> Result<String, BenchError> {
        figure(&self.title, &self.chart(), "", self.quantity.caption())
    }

    /// By itself.
    ///
    /// # Errors
    /// There is nothing to draw.
    pub fn svg(&self) -> Result<String, BenchError> {
        let text = format!("{} by message size. Chosen: {}.", self.title, self.chosen);
        self.chart().draw_alone(&self.title, &text)
    }
}
