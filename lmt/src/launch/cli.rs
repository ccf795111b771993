//! The body of `lmt run`.

use std::ffi::{OsStr, OsString};

use super::error::complain;
use super::{LaunchError, Launcher, Output};

/// What `lmt run` can be told beside the program.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Each line of output gets `[rank] ` before it.
    pub prefix: bool,
    /// CPUs to pin the ranks to, in turn; empty for none.
    pub cpus: Vec<usize>,
}

/// Starts a group, waits for it, and says on standard error what went wrong.
///
/// The answer is the exit status for the calling program: 0 when all ranks
/// ended with 0; 1 when one failed or could not be started; 2 when the request
/// makes no sense; 128 and the signal's number when a signal ended the run, as
/// shells report it. The program must call [`super::hook`] first in `main`.
pub fn run_command(size: u32, program: &OsStr, arguments: &[OsString], options: &RunOptions) -> i32 {
    super::raise_open_files();
    let output = if options.prefix { Output::Prefix } else { Output::Inherit };
    run_launcher(Launcher::new(size).command(program, arguments).pin(&options.cpus).output(output))
}

/// As [`run_command`], with a launcher of one's own making.
pub fn run_launcher(launcher: Launcher) -> i32 {
    let running = match launcher.handle_signals(true).spawn() {
        Ok(running) => running,
        Err(error) => {
            complain(&error);
            return match error {
                LaunchError::Size { .. }
                | LaunchError::NoProgram
                | LaunchError::Cpu { .. }
                | LaunchError::NoSuchRank { .. } => 2,
                _ => 1,
            };
        }
    };
    let outcome = running.wait();
    if outcome.success() {
        return 0;
    }
    complain(&outcome);
    outcome.interrupted.map_or(1, |signal| 128 + signal)
}
