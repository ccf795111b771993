//! Starting a group of processes on this machine and ending it whole.
//!
//! A group is `size` ranks and one random 128-bit id. From the id every rank
//! computes the address of every other, so nothing has to be exchanged before
//! the first message: see [`Group`].
//!
//! # Who ends whom
//!
//! The launching process starts one *supervisor*, which is its own executable
//! run again, and the supervisor starts the ranks. The supervisor is a child
//! subreaper (prctl(2), `PR_SET_CHILD_SUBREAPER`): whatever a rank starts, even
//! a daemon that forked twice and called setsid(2), becomes the supervisor's
//! child when its own parent ends. The supervisor signals its own unreaped
//! children only, whose numbers cannot belong to anyone else, and goes on until
//! wait(2) says that none is left. It does so when a rank fails, when all ranks
//! have ended, and when the launching process is gone, for whatever reason:
//! SIGKILL included. It stands in a process group of its own, so that a signal
//! to the launcher's whole group does not take it away first; the ranks stand in
//! the launcher's group, where Ctrl-C and the terminal's input reach them.
//!
//! If somebody kills the supervisor itself with SIGKILL, the ranks die with it
//! (`PR_SET_PDEATHSIG`), but what they started does not.
//!
//! # The hook
//!
//! Because the executable is run again, its `main` must call [`hook`] before
//! anything else:
//!
//! ```no_run
//! // The beginning of `main`:
//! lmt::launch::hook();
//! let code = lmt::launch::run_command(4, "./solver".as_ref(), &[], &Default::default());
//! std::process::exit(code);
//! ```

mod cli;
mod error;
mod group;
mod launcher;
mod open_files;
mod output;
mod running;
mod signals;
mod supervisor;
mod sys;
mod wire;

pub use cli::{RunOptions, run_command, run_launcher};
pub use error::{EnvError, LaunchError};
pub use group::Group;
pub use launcher::{Launcher, Output, allowed_cpus};
pub use open_files::raise_open_files;
pub use output::RankOutput;
pub use running::{Outcome, Running, describe_exit};
pub use supervisor::{hook, supervisor_main};
pub use sys::take_inherited_fd;

/// Variable with the number of this rank, from 0.
pub const ENV_RANK: &str = "LMT_RANK";
/// Variable with the number of ranks.
pub const ENV_SIZE: &str = "LMT_SIZE";
/// Variable with the group's id, 32 hexadecimal digits.
pub const ENV_GROUP: &str = "LMT_GROUP";
/// Variable with the pid of the common ancestor of all ranks, the supervisor.
/// Naming it with `PR_SET_PTRACER` admits the group's processes and no others
/// where Yama restricts single copy to descendants.
pub const ENV_LAUNCHER_PID: &str = "LMT_LAUNCHER_PID";
/// Variable with the folder of the sockets; the abstract namespace when unset.
pub const ENV_SOCKET_DIR: &str = "LMT_SOCKET_DIR";

/// What the launcher sets for its ranks and for itself.
pub(crate) const VARIABLES: [&str; 6] =
    [ENV_RANK, ENV_SIZE, ENV_GROUP, ENV_LAUNCHER_PID, ENV_SOCKET_DIR, supervisor::ENV_SUPERVISOR];

/// Lets the processes that this one's parent starts reach its memory where Yama would
/// keep them out: for ranks that another launcher starts (MPI's), which says nothing
/// in [`ENV_LAUNCHER_PID`]. Where that is set it alone counts, and where there is no
/// Yama nothing is done and nothing is needed.
pub fn admit_siblings() {
    lmt_core::connect::yama::admit_siblings();
}

/// Lets the processes that this one starts reach its memory where Yama would
/// keep them out, as the launcher lets ranks reach each other. Where there is no
/// Yama nothing is done and nothing is needed.
pub fn admit_descendants() {
    lmt_core::connect::yama::admit_descendants();
}
