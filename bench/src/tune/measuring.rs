//! Measuring, pass by pass, until it is over or time is.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lmt::diagnostic::Host;
use lmt_selector::calibration::{Course, CourseRules, Load, rules};
use nix::unistd::Pid;

use super::memory::{self, Rotation};
use super::places::Setting;
use super::plan::{self, Effort};
use super::progress::Course as Shown;
use super::rank::{Answer, Assignment, PathTurn, RANK_COMMAND, Turn};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::job::stride_bytes;
use crate::processes::Processes;
use crate::sizes::human;

/// How often it is looked whether time is over while ranks measure.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long ranks that are done may take to end.
const ENDING: Duration = Duration::from_secs(2);

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Task {
    /// The ways, in their usual order.
    pub ways: Vec<String>,
    /// Where pairs are put.
    pub settings: Vec<Setting>,
    /// The lengths, ascending.
    pub sizes: Vec<u64>,
    /// How much.
    pub effort: Effort,
    /// When it is over at the latest.
    pub deadline: Instant,
}

/// Why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is left to do.
    Done,
    /// Time is over, in this pass, counted from 0.
    Deadline(u32),
    /// A signal came.
    Interrupted,
    /// A rank ended or could not go on: why, in a sentence.
    Failed(String),
}

/// What was measured.
#[derive(Debug)]
pub struct Outcome {
    /// One for each load.
    pub courses: Vec<Course>,
    /// The ways that did not fail, in their usual order.
    pub ways: Vec<String>,
    /// Why it ended.
    pub end: End,
    /// How many passes were made over all classes.
    pub whole_passes: u32,
    /// What was left out on the way, a sentence each.
    pub notes: Vec<String>,
}

/// What ends one group of processes before its turns are over.
enum Stop {
    End(End),
    /// A way failed; the others go on without it.
    PathFailed(usize, String),
    Error(BenchError),
}

impl From<BenchError> for Stop {
    fn from(error: BenchError) -> Self {
        Self::Error(error)
    }
}

/// The command's side of all passes.
pub struct Measuring<'a> {
    task: Task,
    interrupt: &'a Interrupt,
    shown: &'a mut Shown,
    courses: Vec<Course>,
    /// Iterations by load, size and way, once they are found.
    iterations: HashMap<(Load, u64, String), u64>,
    /// Through how much memory the messages of each setting rotate off cache.
    rotations: Vec<Rotation>,
    notes: Vec<String>,
}

impl<'a> Measuring<'a> {
    /// Nothing is measured yet.
    pub fn new(task: Task, interrupt: &'a Interrupt, shown: &'a mut Shown) -> Self {
        let loads = task.settings.iter().flat_map(|setting| {
            // As many as there are CPUs.
            let pairs = setting.pairs.len() as u32;
            [false, true].map(|off_cache| Load { place: setting.place, pairs, off_cache })
        });
        let courses = loads.map(Course::new).collect();
        let (rotations, notes) = rotations(&task);
        Self { task, interrupt, shown, courses, iterations: HashMap::new(), rotations, notes }
    }

    /// Measures until it is over.
    ///
    /// # Errors
    /// A rank failed for another reason than its way.
    pub fn run(mut self) -> Result<Outcome, BenchError> {
        let Effort { passes, further_passes, .. } = self.task.effort;
        let (mut end, mut whole_passes) = (End::Done, 0);
        let no_further = self.task.deadline.checked_sub(self.task.effort.without_further());
        for pass in 0..passes + further_passes {
            let classes = self.classes(pass);
            let count: usize = classes.iter().map(|(_, sizes)| sizes.len()).sum();
            if count == 0 {
                break;
            }
            if pass >= passes && no_further.is_some_and(|end| Instant::now() >= end) {
                self.notes.push(still_open(count, pass));
                break;
            }
            self.shown.pass(pass, passes, count as u64, self.task.deadline);
            match self.pass(pass, &classes) {
                Ok(()) => whole_passes += u32::from(pass < passes),
                Err(Stop::End(early)) => {
                    end = early;
                    break;
                }
                Err(Stop::PathFailed(_, sentence)) => return Err(BenchError::Failure(sentence)),
                // What was measured is not lost.
                Err(Stop::Error(error)) if self.courses.iter().any(|c| c.classes().next().is_some()) => {
                    end = End::Failed(error.to_string());
                    break;
                }
                Err(Stop::Error(error)) => return Err(error),
            }
        }
        self.shown.end();
        Ok(Outcome { courses: self.courses, ways: self.task.ways, end, whole_passes, notes: self.notes })
    }

    /// What a pass is to measure: for each course the sizes.
    fn classes(&self, pass: u32) -> Vec<(usize, Vec<u64>)> {
        if pass < self.task.effort.passes {
            let sizes = |course: &Course| {
                let fits = |bytes: &u64| !course.load.off_cache || self.fits_rotation(course.load, *bytes);
                self.task.sizes.iter().copied().filter(fits).collect()
            };
            return self.courses.iter().enumerate().map(|(at, course)| (at, sizes(course))).collect();
        }
        let rules = rules(&self.courses, &self.task.ways);
        let chosen = |load: Load| rules.iter().find(|CourseRules { load: known, .. }| *known == load);
        let open = |course: &Course| {
            chosen(course.load).map_or_else(Vec::new, |rules| plan::undecided(course, &rules.chosen))
        };
        self.courses.iter().enumerate().map(|(at, course)| (at, open(course))).collect()
    }

    fn fits_rotation(&self, load: Load, bytes: u64) -> bool {
        let settings = self.task.settings.iter().zip(&self.rotations);
        let mut of_load = settings.filter(|(setting, _)| is_of(setting, load));
        of_load.all(|(_, rotation)| stride_bytes(bytes) <= rotation.bytes)
    }

    fn pass(&mut self, pass: u32, classes: &[(usize, Vec<u64>)]) -> Result<(), Stop> {
        for (at_setting, setting) in self.task.settings.clone().into_iter().enumerate() {
            let rotation_bytes = self.rotations.get(at_setting).map_or(0, |rotation| rotation.bytes);
            let mut todo: Vec<(usize, u64)> = Vec::new();
            for (at, sizes) in classes {
                let load = self.courses[*at].load;
                if is_of(&setting, load) {
                    todo.extend(sizes.iter().map(|bytes| (*at, *bytes)));
                }
            }
            todo.reverse();
            while !todo.is_empty() {
                match self.group(pass, &setting, rotation_bytes, &mut todo) {
                    Err(Stop::PathFailed(way, sentence)) => self.without(way, &sentence)?,
                    result => result?,
                }
            }
        }
        Ok(())
    }

    /// Goes on without a way that failed.
    fn without(&mut self, way: usize, sentence: &str) -> Result<(), Stop> {
        let name = self.task.ways.remove(way);
        self.courses.iter_mut().for_each(|course| course.forget(&name));
        self.notes
            .push(format!("{name} failed while it was measured and was left out from then on: {sentence}"));
        match self.task.ways.is_empty() {
            true => {
                Err(BenchError::Failure(format!("no path works; the last failure was {name}: {sentence}"))
                    .into())
            }
            false => Ok(()),
        }
    }

    /// Starts a group of processes and does what is to do, from the end of
    /// `todo`, which keeps what is left.
    fn group(
        &mut self,
        pass: u32,
        setting: &Setting,
        rotation_bytes: u64,
        todo: &mut Vec<(usize, u64)>,
    ) -> Result<(), Stop> {
        let cpus: Vec<usize> = setting.pairs.iter().flatten().copied().collect();
        let largest_bytes = todo.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let off_cache = todo.iter().any(|(at, _)| self.courses[*at].load.off_cache);
        let rotation_bytes = if off_cache { rotation_bytes } else { 0 };
        let parent = Pid::this().as_raw();
        let ways = self.task.ways.clone();
        let assignment = |(rank, cpu): (u32, &usize)| Assignment {
            rank,
            parent,
            cpu: *cpu,
            ways: ways.clone(),
            largest_bytes,
            rotation_bytes,
        };
        let assignments: Vec<Assignment> = (0..).zip(&cpus).map(assignment).collect();
        let mut group = Processes::start_without_settings(RANK_COMMAND, &assignments)?;
        let mut cards = vec![None; cpus.len()];
        while cards.iter().any(Option::is_none) {
            match self.next(&mut group, pass)? {
                (rank, Answer::Card(card)) => cards[rank] = Some(card),
                (_, Answer::Timed(_) | Answer::Failed { .. }) => {}
            }
        }
        group.tell(&cards).map_err(|error| told(&error))?;
        while let Some((at, bytes)) = todo.last().copied() {
            self.class(&mut group, pass, at, bytes)?;
            todo.pop();
        }
        group.end(ENDING);
        Ok(())
    }

    /// One class's turn.
    fn class(&mut self, group: &mut Processes<Answer>, pass: u32, at: usize, bytes: u64) -> Result<(), Stop> {
        let load = self.courses[at].load;
        let counts = plan::repetitions(self.task.effort, pass, bytes, &self.task.ways, &self.courses[at]);
        let turn_of = |(way, repetitions): (usize, u32)| {
            let key = (load, bytes, self.task.ways[way].clone());
            let iterations = self.iterations.get(&key).copied().unwrap_or(0);
            (repetitions > 0).then_some(PathTurn { way, iterations, repetitions })
        };
        let ways: Vec<PathTurn> = counts.into_iter().enumerate().filter_map(turn_of).collect();
        if !ways.is_empty() {
            let turn = Turn { bytes, off_cache: load.off_cache, ways };
            group.tell(&turn).map_err(|error| told(&error))?;
            let timed = loop {
                match self.next(group, pass)? {
                    (_, Answer::Timed(timed)) => break timed,
                    (_, Answer::Card(_) | Answer::Failed { .. }) => {}
                }
            };
            for timed in timed {
                let Some(way) = self.task.ways.get(timed.way).cloned() else { continue };
                self.courses[at].add(bytes, &way, pass as usize, &timed.times_ns);
                self.iterations.insert((load, bytes, way), timed.iterations);
            }
        }
        self.shown.step(load);
        Ok(())
    }

    /// What a rank says next, unless it is time to end.
    fn next(&mut self, group: &mut Processes<Answer>, pass: u32) -> Result<(usize, Answer), Stop> {
        loop {
            if self.interrupt.signal().is_some() {
                return Err(Stop::End(End::Interrupted));
            }
            let left = self.task.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Stop::End(End::Deadline(pass)));
            }
            match group.next_within(left.min(POLL_INTERVAL))? {
                None => {}
                Some((_, Answer::Failed { way: Some(way), sentence })) => {
                    return Err(Stop::PathFailed(way, sentence));
                }
                Some((_, Answer::Failed { way: None, sentence })) => {
                    return Err(BenchError::Failure(sentence).into());
                }
                Some(answer) => return Ok(answer),
            }
        }
    }
}

fn told(error: &std::io::Error) -> Stop {
    crate::processes::failure("a rank cannot be told what to do next", error).into()
}

fn is_of(setting: &Setting, load: Load) -> bool {
    load.place == setting.place && load.pairs as usize == setting.pairs.len()
}

/// Through how much memory messages rotate in each setting, and what that leaves
/// to be desired, in sentences.
fn rotations(task: &Task) -> (Vec<Rotation>, Vec<String>) {
    let host = Host::default();
    let available = crate::cache::available_bytes(&host);
    let largest = task.sizes.iter().copied().max().unwrap_or(0);
    let of = |setting: &Setting| {
        let cpus: Vec<usize> = setting.pairs.iter().flatten().copied().collect();
        memory::rotation(&host, &cpus, largest, available)
    };
    let rotations: Vec<Rotation> = task.settings.iter().map(of).collect();
    let mut notes = Vec::new();
    for (setting, rotation) in task.settings.iter().zip(&rotations) {
        let Setting { place, pairs } = setting;
        let pairs = if pairs.len() == 1 { "one pair".to_owned() } else { format!("{} pairs", pairs.len()) };
        if let Some(shortfall) = &rotation.shortfall {
            notes.push(format!("{place}, {pairs}: {shortfall}"));
        }
        if stride_bytes(largest) > rotation.bytes {
            notes.push(format!(
                "{place}, {pairs}, off cache, messages longer than {}: there is no memory for the buffers",
                human(rotation.bytes)
            ));
        }
    }
    (rotations, notes)
}

/// The sentence on classes over which no pass goes any more.
fn still_open(count: usize, passes: u32) -> String {
    format!(
        "{count} sizes more often: after {passes} passes paths still differ by less than the passes do; which \
         is taken matters little"
    )
}
