//! `lmt apps`: real MPI programs over lmt and over their MPI's own transport, in turns.
//!
//! The programs are data (`bench/apps/apps.toml`); nothing here knows any of them.
#![forbid(unsafe_code)]

pub mod args;
mod check;
mod figures;
mod files;
mod html;
mod pattern;
mod result;
mod run;
mod show;
mod stacks;
mod table;
mod target;
mod turns;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::console::{complain, print, say_report};
use crate::engine::LeftOut;
use crate::environment::{Environment, allowed_cpus};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::own_folder::OwnFolder;
use crate::peers::cache::Cache;
use crate::peers::command::run_within;
use crate::peers::mpi::nothing_chosen;
use crate::peers::provider::Provider;
use crate::processes::failure;
use crate::progress::Progress;
use crate::whole_file::WholeFile;
use args::AppsArgs;
use files::{Files, Places, TABLE};
use result::{CaseResult, Totals};
use run::Runner;
use table::Program;
use target::{Case, Targets};
use turns::{Verdict, take_turns};

/// How long preparing a program's input may take, in seconds.
const PREPARE_LIMIT_S: u64 = 300;

/// Runs the programs, and shows what came of them.
///
/// # Errors
/// What was asked for does not exist, nothing could be run, or a program failed over lmt.
pub fn run(args: &AppsArgs) -> Result<(), BenchError> {
    let (programs, files) = programs(args)?;
    if args.packages {
        let packages: BTreeSet<&String> = programs.iter().flat_map(|program| &program.packages).collect();
        return print(&packages.into_iter().map(|package| format!("{package}\n")).collect::<String>());
    }
    let provider = Provider::find(args.provider.as_deref()).map_err(BenchError::Failure)?;
    nothing_chosen(|name| std::env::var_os(name).is_some())?;
    fs::create_dir_all(&args.out).map_err(|error| {
        failure(&format!("{} cannot be made; choose another --out", args.out.display()), &error)
    })?;
    let page = WholeFile::create(&args.out.join("apps.html"), "--out")?;
    let figures = WholeFile::create(&args.out.join("apps.json"), "--out")?;
    let interrupt = Interrupt::watch()?;
    let cache = Cache::new(args.cache.as_deref(), |name| std::env::var_os(name))?;
    let scratch = OwnFolder::new(&std::env::temp_dir())
        .map_err(|error| failure("no temporary folder can be made", &error))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let session = Session { args, files, cache, path, interrupt: &interrupt, scratch: scratch.path() };
    let mut found = session.cases(&programs)?;
    if found.cases.is_empty() {
        found.left_out.iter().for_each(|left_out| complain(&said(left_out)));
        return Err(BenchError::Failure("none of the programs can be run here".into()));
    }
    let environment = Environment::of(&[], "as the programs have them".to_owned());
    print(&show::head(&environment, args.turns()))?;
    let results = session.run_all(&mut found, &provider)?;
    let totals = Totals::of(&results);
    let has_own = !args.short;
    print(&show::foot(&totals, &found.left_out, has_own))?;
    page.write(&html::to_html(&results, &totals, &found.left_out, &environment, args.turns(), has_own))?;
    let json = serde_json::json!({ "environment": environment, "turns": args.turns(), "results": results });
    figures.write(&format!("{json:#}\n"))?;
    say_report(&args.out.join("apps.html"))?;
    judge(&results, &found.left_out, args.require)
}

/// The programs that are meant, and where their files are.
fn programs(args: &AppsArgs) -> Result<(Vec<Program>, Files), BenchError> {
    let (text, source, beside) = match &args.table {
        Some(file) => {
            let text = fs::read_to_string(file)
                .map_err(|error| failure(&format!("{} cannot be read", file.display()), &error))?;
            (text, file.display().to_string(), file.parent().map(PathBuf::from))
        }
        None => (files::embedded(TABLE).unwrap_or_default().to_owned(), TABLE.to_owned(), None),
    };
    let all = table::parse(&text, &source).map_err(BenchError::Failure)?;
    let meant = table::choose(all, &args.programs, args.short).map_err(BenchError::Usage)?;
    Ok((meant, Files { beside }))
}

/// What is to be run, each with a folder in which its input is, and what cannot be.
struct Found<'a> {
    targets: Targets,
    cases: Vec<(&'a Program, u32)>,
    left_out: Vec<LeftOut>,
}

/// What does not change while programs run.
struct Session<'a> {
    args: &'a AppsArgs,
    files: Files,
    cache: Cache,
    path: OsString,
    interrupt: &'a Interrupt,
    scratch: &'a Path,
}

impl Session<'_> {
    /// The programs with their numbers of ranks, and the MPIs that there are.
    fn cases<'a>(&self, programs: &'a [Program]) -> Result<Found<'a>, BenchError> {
        let mut left_out = Vec::new();
        let wants_pypi = programs.iter().any(|program| program.mpi != table::Source::Debian);
        if self.args.fetch && wants_pypi {
            left_out.extend(self.cache.fetch(self.interrupt, &mut |sentence| complain(sentence))?);
        }
        let (targets, unknown) = Targets::find(&self.path, &self.cache, self.interrupt);
        left_out.extend(unknown);
        let mut cases = Vec::new();
        for program in programs {
            if let Err(reason) = targets.of(program.mpi).and_then(|_| self.python(program)) {
                left_out.push(LeftOut { name: program.name.clone(), reason });
                continue;
            }
            let ranks = program.ranks(&self.args.ranks);
            if ranks.is_empty() {
                complain(&format!("{} is not run: it cannot with so many ranks", program.name));
            }
            cases.extend(ranks.into_iter().map(|ranks| (program, ranks)));
        }
        Ok(Found { targets, cases, left_out })
    }

    /// The Python that has what a program imports; nothing if it imports nothing.
    fn python(&self, program: &Program) -> Result<String, String> {
        if program.pypi.is_empty() {
            return Ok(String::new());
        }
        let python = match self.args.fetch {
            true => self.cache.python(&program.pypi, self.interrupt, &mut |sentence| complain(sentence))?,
            false => self
                .cache
                .fetched_python(&program.pypi)
                .ok_or_else(|| format!("{} is not there; --fetch gets it", program.pypi.join(" and ")))?,
        };
        Ok(python.display().to_string())
    }

    /// Runs them all, and shows each as it comes.
    fn run_all(&self, found: &mut Found<'_>, provider: &Provider) -> Result<Vec<CaseResult>, BenchError> {
        let runner = Runner {
            interrupt: self.interrupt,
            provider,
            cores: allowed_cpus()?.len(),
            scratch: self.scratch,
            out: &self.args.out,
        };
        let progress = Progress::new();
        let total = found.cases.len() as u64;
        let mut results = Vec::new();
        for (done, (program, ranks)) in (0..).zip(&found.cases) {
            progress.show(done, total);
            for mpi in found.targets.of(program.mpi).map_err(BenchError::Failure)? {
                let prefix = mpi.prefix().map_or_else(String::new, |prefix| prefix.display().to_string());
                let python = self.python(program).map_err(BenchError::Failure)?;
                let case = Case {
                    program,
                    mpi,
                    ranks: *ranks,
                    places: Places { ranks: *ranks, mpi: prefix, python },
                };
                match self.run_case(&case, &runner)? {
                    Ok(result) => {
                        progress.suspend(|| print(&show::lines(&result)))?;
                        results.push(result);
                    }
                    Err(reason) => found.left_out.push(LeftOut { name: case.name(), reason }),
                }
            }
        }
        progress.end();
        Ok(results)
    }

    /// Runs one case in turns; a sentence if it cannot be run.
    fn run_case(
        &self,
        case: &Case<'_>,
        runner: &Runner<'_>,
    ) -> Result<Result<CaseResult, String>, BenchError> {
        let prepared = match self.prepare(case) {
            Ok(prepared) => prepared,
            Err(reason) => {
                self.interrupt.check()?;
                return Ok(Err(reason));
            }
        };
        // Without anything to agree with, a short run says all by itself.
        let with_own = !self.args.short || !case.program.agree.is_empty();
        let mut run = |transport, label: &str| runner.run(case, transport, &prepared, label);
        let turns = take_turns(self.args.turns(), with_own, &mut run)?;
        Ok(Ok(CaseResult::of(case, &turns)))
    }

    /// A folder with the input of a case.
    fn prepare(&self, case: &Case<'_>) -> Result<PathBuf, String> {
        if let Some(name) = case.missing(&self.path) {
            return Err(match case.program.packages.is_empty() {
                true => format!("{name} is not there"),
                false => format!("{name} is not there; apt-get install {}", case.program.packages.join(" ")),
            });
        }
        let folder = self.scratch.join(format!("{}-input", case.file_name()));
        fs::create_dir_all(&folder)
            .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
        self.files.write(&case.program.files, &case.places, &folder)?;
        if let Some(script) = &case.program.prepare {
            let script = format!("cd \"$1\" && {{ {}\n}}", case.places.fill(script));
            let arguments = ["-c".as_ref(), script.as_ref(), "sh".as_ref(), folder.as_os_str()];
            let mut variables = case.mpi.variables(nix::unistd::geteuid().is_root());
            variables.push(("OMP_NUM_THREADS", "1".into()));
            run_within(Path::new("sh"), arguments, &variables, PREPARE_LIMIT_S, self.interrupt)
                .and_then(|finished| finished.successful())
                .map_err(|sentence| format!("its input cannot be made: {sentence}"))?;
        }
        Ok(folder)
    }
}

fn said(left_out: &LeftOut) -> String {
    format!("{} is left out: {}", left_out.name, left_out.reason)
}

/// Nothing, unless a program failed over lmt, or where all are required one is left out or fails
/// over any transport.
fn judge(results: &[CaseResult], left_out: &[LeftOut], requires_all: bool) -> Result<(), BenchError> {
    let fails = |result: &&CaseResult| matches!(result.verdict, Verdict::LmtFails(_));
    let name = |result: &CaseResult| format!("{} ({}, {} ranks)", result.program, result.mpi, result.ranks);
    let failed: Vec<String> = results.iter().filter(fails).map(name).collect();
    if !failed.is_empty() {
        return Err(BenchError::Failure(format!("over lmt these fail: {}", failed.join(", "))));
    }
    if !requires_all {
        return Ok(());
    }
    let fails_anyhow = |result: &&CaseResult| matches!(result.verdict, Verdict::OwnFails(_));
    let why = left_out.first().map(said).or_else(|| {
        let result = results.iter().find(fails_anyhow)?;
        Some(format!("{} fails over its own transport too", name(result)))
    });
    why.map_or(Ok(()), |why| Err(BenchError::Failure(format!("all are required, and {why}"))))
}
