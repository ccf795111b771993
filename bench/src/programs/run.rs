//! One run of a program: started, watched, ended after its limit, read.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lmt::launch::{Launcher, Output, RankOutput, Running};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::check::{Printed, check, printed};
use super::figures::{FigureRule, Role};
use super::files::copy_folder;
use super::stacks;
use super::table::Program;
use super::target::Case;
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::peers::command::{reason, text_of};
use crate::peers::installation::Variables;
use crate::peers::provider::Provider;
use crate::peers::transport::Transport;
use crate::statistics::Statistics;

/// How often it is looked whether somebody wants it to end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a launcher has to end its ranks before all are killed: Open MPI's takes two seconds.
const GRACE: Duration = Duration::from_secs(5);
/// So much is read of a file that a program has written.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// In this folder, with this standard input, the rest.
const IN_FOLDER: &str = r#"cd "$1" && input=$2 && shift 2 && exec "$@" <"$input""#;

/// What a run that was right has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// A value for each of [`rules`].
    pub figures: Vec<f64>,
    /// What must agree with other runs.
    pub printed: Printed,
    /// What the ranks told of their paths; nothing over the MPI's own transport.
    pub statistics: String,
}

/// Why a run was not right.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// In a sentence.
    pub sentence: String,
    /// What is kept of it.
    pub kept: Option<PathBuf>,
}

/// What came of a run; an error where a signal came instead.
pub type Attempt = Result<Result<Ran, Failure>, BenchError>;

/// The figures of a program: its own, and the time of the whole run unless it tells one.
pub fn rules(program: &Program) -> Vec<FigureRule> {
    let whole = counts_whole_run(program).then(FigureRule::whole_run);
    whole.into_iter().chain(program.figures.iter().cloned()).collect()
}

/// Whether the time of the whole run is a figure: not where the program tells a time, or runs for a
/// time that is fixed.
fn counts_whole_run(program: &Program) -> bool {
    !program.fixed_time && program.figures.iter().all(|figure| figure.role != Role::Time)
}

/// What all runs share.
#[derive(Debug)]
pub struct Runner<'a> {
    /// Whether to go on.
    pub interrupt: &'a Interrupt,
    /// The provider's library.
    pub provider: &'a Provider,
    /// CPUs that ranks may use.
    pub cores: usize,
    /// A folder for what is of no use afterwards.
    pub scratch: &'a Path,
    /// Where what failed runs have left is kept.
    pub out: &'a Path,
}

/// How a run ended.
struct Ended {
    seconds: f64,
    text: String,
    failure: Option<String>,
}

impl Runner<'_> {
    /// Runs a program once, with a copy of its `prepared` folder; `label` tells this run
    /// from others of the case.
    ///
    /// # Errors
    /// A signal came. That the run itself failed is a result.
    pub fn run(&self, case: &Case<'_>, transport: Transport, prepared: &Path, label: &str) -> Attempt {
        self.interrupt.check()?;
        let folder = self.scratch.join(format!("{}-{label}", case.file_name()));
        let statistics = self.scratch.join(format!("{}-{label}.statistics", case.file_name()));
        let kept = self.out.join("failed").join(format!("{}-{label}", case.file_name()));
        // What an earlier command has kept there is of another run.
        let _ = fs::remove_dir_all(&kept);
        let ran = self.run_in(case, transport, prepared, &folder, &statistics, &kept);
        // If it cannot be removed, it goes with the folder that it is in.
        let _ = fs::remove_dir_all(&folder);
        self.interrupt.check()?;
        Ok(ran.map_err(|sentence| Failure { sentence, kept: kept.is_dir().then_some(kept) }))
    }

    fn run_in(
        &self,
        case: &Case<'_>,
        transport: Transport,
        prepared: &Path,
        folder: &Path,
        statistics: &Path,
        kept: &Path,
    ) -> Result<Ran, String> {
        copy_folder(prepared, folder)
            .map_err(|error| format!("its folder {} cannot be made: {error}", folder.display()))?;
        let is_root = nix::unistd::geteuid().is_root();
        let mut variables = case.variables(transport, self.provider, is_root)?;
        if transport == Transport::Lmt {
            variables.push(("LMT_STATS", statistics.into()));
        }
        variables.push(("TMPDIR", self.scratch.into()));
        let mut ended = self.start_and_wait(case, &variables, folder, kept)?;
        for name in &case.program.output_files {
            ended.text.push_str(&written(&folder.join(name)));
        }
        let told = fs::read(statistics).unwrap_or_default();
        let told = String::from_utf8_lossy(&told).into_owned();
        let read = read(case.program, &ended, told).and_then(|ran| match transport {
            Transport::Lmt if Statistics::of(&ran.statistics).bytes() == 0 => {
                Err("no byte of its messages went through lmt".to_owned())
            }
            _ => Ok(ran),
        });
        read.inspect_err(|_| keep(kept, &ended.text))
    }

    fn start_and_wait(
        &self,
        case: &Case<'_>,
        variables: &Variables,
        folder: &Path,
        kept: &Path,
    ) -> Result<Ended, String> {
        let input = case.program.stdin.as_ref().map_or("/dev/null".into(), |name| folder.join(name));
        let mut arguments: Vec<OsString> =
            vec!["-c".into(), IN_FOLDER.into(), "sh".into(), folder.into(), input.into_os_string()];
        arguments.push(case.mpi.mpiexec.clone().into());
        arguments.extend(case.arguments(self.cores));
        let began = Instant::now();
        let running = start(arguments, variables)?;
        let is_over = self.wait(&running, began + Duration::from_secs(case.program.limit_s));
        let seconds = began.elapsed().as_secs_f64();
        if !is_over {
            if self.interrupt.signal().is_none()
                && let Some(pid) = running.pid(0)
            {
                stacks::keep(pid, kept, self.interrupt);
            }
            end(&running);
        }
        let outcome = running.wait();
        let text = text_of(&outcome);
        let is_cut = outcome.output.iter().any(RankOutput::may_be_cut);
        let failure = if !is_over {
            Some(format!("it did not end within {} s and was ended", case.program.limit_s))
        } else if !outcome.success() {
            let how = lmt::launch::describe_exit(outcome.exits.first().copied().flatten());
            Some(format!("its launcher {how}{}", reason(&text)))
        } else if is_cut {
            Some("it prints 2 MiB or more, of which not all is kept; have it print less".to_owned())
        } else {
            None
        };
        Ok(Ended { seconds, text, failure })
    }

    /// Whether it was over before the deadline.
    fn wait(&self, running: &Running, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if running.wait_for(left.min(POLL_INTERVAL)) {
                return true;
            }
            if left.is_zero() || self.interrupt.signal().is_some() {
                return false;
            }
        }
    }
}

/// Ends a run: first its launcher alone, which takes away what the ranks have in shared memory.
fn end(running: &Running) {
    if let Some(pid) = running.pid(0) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        running.wait_for(GRACE);
    }
    running.end_now();
}

/// Reads what a run has printed.
fn read(program: &Program, ended: &Ended, statistics: String) -> Result<Ran, String> {
    if let Some(sentence) = &ended.failure {
        return Err(sentence.clone());
    }
    check(program, &ended.text)?;
    let printed = printed(program, &ended.text)?;
    let whole = counts_whole_run(program).then_some(ended.seconds);
    let own = program.figures.iter().map(|figure| figure.read(&ended.text));
    let figures: Result<Vec<f64>, String> = whole.into_iter().map(Ok).chain(own).collect();
    Ok(Ran { figures: figures?, printed, statistics })
}

/// The beginning of what a program has written into a file. What is no file is not read: a pipe would
/// be waited for.
fn written(path: &Path) -> String {
    let mut bytes = Vec::new();
    if fs::metadata(path).is_ok_and(|found| found.is_file())
        && let Ok(file) = fs::File::open(path)
    {
        // What has been read of a file that cannot be read whole is checked.
        let _ = file.take(FILE_MAX_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Keeps what a failed run has printed, as far as it can be written.
fn keep(folder: &Path, text: &str) {
    let _ = fs::create_dir_all(folder).and_then(|()| fs::write(folder.join("output"), text));
}

/// Starts a launcher under a supervisor, which ends all that it has started.
fn start(arguments: Vec<OsString>, variables: &Variables) -> Result<Running, String> {
    let mut launcher = Launcher::new(1)
        .command("sh", arguments)
        .output(Output::Capture)
        .grace(Duration::from_millis(500))
        .no_stdin();
    for (name, value) in variables {
        launcher = launcher.env(name, value);
    }
    launcher.spawn().map_err(|error| error.to_string())
}
