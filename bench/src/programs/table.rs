//! The programs, as data: what each is, how it is run, when its result is right and
//! how its figures are read.

use serde::Deserialize;

use super::figures::FigureRule;
use super::pattern::Pattern;
use crate::options::MAX_RANKS;

/// No run may take longer, in seconds: a day.
const LONGEST_S: u64 = 24 * 3600;
/// No run takes longer unless its program says so, in seconds.
const LIMIT_S: u64 = 300;

/// Whose MPI a program runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The Open MPI on the PATH, as Debian's packages are built with.
    Debian,
    /// Each of PyPI's: MPICH, Open MPI and Intel MPI.
    PyPi,
    /// PyPI's Intel MPI alone.
    IntelMpi,
}

/// What programs do, as tables group them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Molecular dynamics.
    Particles,
    /// Dense linear algebra.
    Dense,
    /// Sparse linear algebra.
    Sparse,
    /// Fourier transforms.
    Fft,
    /// Quantum chemistry: dense matrices shared out in a global array.
    GlobalArrays,
    /// Fields on a grid, neighbours exchanged.
    Halo,
    /// Files by MPI-IO.
    Io,
    /// Short and long messages, and collective operations.
    Messages,
    /// Several of these in one program.
    Mixed,
}

impl Kind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Particles => "particles",
            Self::Dense => "dense algebra",
            Self::Sparse => "sparse algebra",
            Self::Fft => "FFT",
            Self::GlobalArrays => "global arrays",
            Self::Halo => "halo exchange",
            Self::Io => "MPI-IO",
            Self::Messages => "messages",
            Self::Mixed => "mixed",
        }
    }
}

/// One program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name in tables and on the command line.
    pub name: String,
    /// What it is, in a sentence.
    pub title: String,
    /// What it does.
    pub kind: Kind,
    /// With which MPIs it runs.
    pub mpi: Source,
    /// The Debian packages that it is in.
    #[serde(default)]
    pub packages: Vec<String>,
    /// The packages of PyPI that it imports.
    #[serde(default)]
    pub pypi: Vec<String>,
    /// Programs that it needs beside its own.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Its input files, of `bench/apps`.
    #[serde(default)]
    pub files: Vec<String>,
    /// What a shell does once, where these files are, before the first run.
    pub prepare: Option<String>,
    /// The program and its arguments, as they stand behind the launcher's.
    pub command: Vec<String>,
    /// The file that is its standard input.
    pub stdin: Option<String>,
    /// Files that it writes and that are read as its output.
    #[serde(default)]
    pub output_files: Vec<String>,
    /// With how many ranks it runs; with any if it does not say.
    pub ranks: Option<Vec<u32>>,
    /// Whether it runs for a time that is fixed, which then says nothing.
    #[serde(default)]
    pub fixed_time: bool,
    /// How long a run may take, in seconds.
    #[serde(default = "limit_s")]
    pub limit_s: u64,
    /// Its output must match each of these.
    pub must_match: Vec<Pattern>,
    /// And none of these.
    #[serde(default)]
    pub must_not_match: Vec<Pattern>,
    /// What the first groups of these capture must agree with the run over the MPI's own
    /// transport, within one unit of the last digit.
    #[serde(default)]
    pub agree: Vec<Pattern>,
    /// How its figures are read.
    #[serde(default)]
    pub figures: Vec<FigureRule>,
    /// Its short form, if it is in the short subset.
    pub short: Option<Short>,
}

/// What a program's short form does otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Short {
    files: Option<Vec<String>>,
    prepare: Option<String>,
    command: Option<Vec<String>>,
    ranks: Option<Vec<u32>>,
}

fn limit_s() -> u64 {
    LIMIT_S
}

/// With how many ranks a program runs that can run with any.
const RANKS: [u32; 2] = [2, 4];

impl Program {
    /// With how many ranks it runs, of those that are `asked` for, if any are.
    pub fn ranks(&self, asked: &[u32]) -> Vec<u32> {
        let mut ranks = match (&self.ranks, asked) {
            (None, []) => RANKS.to_vec(),
            (None, asked) => asked.to_vec(),
            (Some(own), []) => own.clone(),
            (Some(own), asked) => own.iter().copied().filter(|ranks| asked.contains(ranks)).collect(),
        };
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Its short form, if it has one.
    fn shortened(self) -> Option<Self> {
        let short = self.short.clone()?;
        Some(Self {
            files: short.files.unwrap_or(self.files),
            prepare: short.prepare.or(self.prepare),
            command: short.command.unwrap_or(self.command),
            ranks: short.ranks.or(self.ranks),
            ..self
        })
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        // Files are named by it.
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(format!("{name:?} is no name of a program; take letters, digits, - and _"));
        }
        if self.command.first().is_none_or(String::is_empty) {
            return Err(format!("{name} has no command; give the program and its arguments"));
        }
        if !(1..=LONGEST_S).contains(&self.limit_s) {
            return Err(format!("{name} has a limit_s of {}; take 1 to {LONGEST_S}", self.limit_s));
        }
        let ranks = self.ranks.iter().flatten().find(|ranks| !(2..=MAX_RANKS).contains(*ranks));
        if let Some(ranks) = ranks {
            return Err(format!("{name} is to run with {ranks} ranks; take 2 to {MAX_RANKS}"));
        }
        if self.must_match.is_empty() && self.agree.is_empty() {
            return Err(format!("{name} has no check of its result; give must_match or agree"));
        }
        let read = self.agree.iter().chain(self.figures.iter().map(|figure| &figure.pattern));
        match read.into_iter().find(|pattern| pattern.0.captures_len() < 2) {
            Some(pattern) => Err(format!(
                "{name}: '{}' captures no number; put the number into parentheses",
                pattern.0.as_str()
            )),
            None => Ok(()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    program: Vec<Program>,
}

/// Reads a table; `source` is its name in sentences.
///
/// # Errors
/// It is no such table: what is wrong and where.
pub fn parse(text: &str, source: &str) -> Result<Vec<Program>, String> {
    let wrong = |sentence: String| format!("{source} is no table of programs: {sentence}");
    let table: Table = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let mut names: Vec<&str> = Vec::new();
    for program in &table.program {
        program.check().map_err(wrong)?;
        if names.contains(&program.name.as_str()) {
            return Err(wrong(format!("{} is there twice; name one of them otherwise", program.name)));
        }
        names.push(&program.name);
    }
    Ok(table.program)
}

/// Which of the programs are meant, in the table's order.
///
/// # Errors
/// A name that the table does not have, or that has no short form where that is meant.
pub fn choose(all: Vec<Program>, names: &[String], is_short: bool) -> Result<Vec<Program>, String> {
    let known = || all.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = names.iter().find(|name| !all.iter().any(|program| program.name == **name)) {
        return Err(format!("there is no program {name}; take of {}", known()));
    }
    let is_meant = |program: &Program| names.is_empty() || names.contains(&program.name);
    if !is_short {
        return Ok(all.into_iter().filter(is_meant).collect());
    }
    match all.iter().find(|program| names.contains(&program.name) && program.short.is_none()) {
        Some(program) => Err(format!("{} has no short form; run it without --short", program.name)),
        None => Ok(all.into_iter().filter(is_meant).filter_map(Program::shortened).collect()),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
