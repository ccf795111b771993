//! The MPIs that are tested, and their commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub use lmt_bench::peers::installation::Kind;

use lmt_bench::peers::installation::{Installation, Variables, described};
use lmt_bench::peers::transport;

/// Which way messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport<'a> {
    /// Through the provider, which lies in this folder.
    Lmt(&'a Path),
    /// As the MPI has it by itself.
    Own,
    /// Through libfabric's own provider `tcp`, set up as for ours.
    Tcp,
}

/// One MPI.
pub struct Mpi {
    pub kind: Kind,
    folder: PathBuf,
    installation: Installation,
}

impl Mpi {
    fn at(folder: PathBuf) -> Self {
        let [mpicc, mpiexec] = ["mpicc", "mpiexec"].map(|name| folder.join("bin").join(name));
        // lmt's launcher is not for tests, whose main function is not their own.
        let said = text_of(&output(within(60, &mpiexec).arg("--version")));
        let installation = described(mpicc, mpiexec, &said);
        assert_ne!(installation.kind, Kind::Other, "MPI_FOLDERS names {}: {said}", folder.display());
        Self { kind: installation.kind, folder, installation }
    }

    /// The MPIs that `MPI_FOLDERS` names, if there is such a variable.
    pub fn all() -> Option<Vec<Self>> {
        let folders = std::env::var_os("MPI_FOLDERS")?;
        Some(std::env::split_paths(&folders).map(Self::at).collect())
    }

    /// A part of its folder.
    pub fn path(&self, part: &str) -> PathBuf {
        self.folder.join(part)
    }

    /// One of its commands, with a time limit, and told where it is.
    pub fn command(&self, name: &str, limit_s: u32) -> Command {
        let mut command = within(limit_s, &self.path("bin").join(name));
        for variable in transport::choosing().into_iter().chain([transport::PROVIDER_PATH]) {
            command.env_remove(variable);
        }
        command.envs(self.installation.variables(true));
        command
    }

    /// The launcher of `ranks` processes, set up so that messages go this way.
    pub fn launcher(&self, way: Transport<'_>, ranks: u32, limit_s: u32) -> Command {
        let mut command = self.command("mpiexec", limit_s);
        command.envs(self.chosen(way)).env("LMT_STATS", "1");
        if self.kind == Kind::OpenMpi {
            command.arg("--oversubscribe");
        }
        command.args(["-n", &ranks.to_string()]);
        command
    }

    /// The variables by which messages go this way.
    fn chosen(&self, way: Transport<'_>) -> Variables {
        let library = match way {
            Transport::Own => return Variables::new(),
            Transport::Tcp => Path::new(""),
            Transport::Lmt(library) => library,
        };
        let own = self.installation.variables(true);
        let others = own.into_iter().find(|(name, _)| *name == transport::PROVIDER_PATH);
        let mut variables = transport::Transport::Lmt
            .variables(self.kind, library, others.map(|(_, folders)| folders))
            .unwrap_or_else(|why| panic!("{:?} over lmt: {why}", self.kind));
        if way == Transport::Tcp {
            variables.retain(|(name, _)| ![transport::PROVIDER_PATH, "LMT_FI"].contains(name));
            variables
                .iter_mut()
                .filter(|(_, value)| value == "lmt")
                .for_each(|(_, value)| *value = "tcp".into());
        }
        variables
    }

    /// Builds a program of this folder.
    pub fn build(&self, program: &str, into: &Path) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/mpi/{program}.c"));
        let binary = into.join(format!("{program}-{:?}", self.kind));
        let arguments = ["-O1", "-Wall", "-Werror", "-pthread", "-o"];
        let built = output(self.command("mpicc", 60).args(arguments).arg(&binary).arg(&source));
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        binary
    }
}

/// A program that is ended after so many seconds.
pub fn within(limit_s: u32, program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &limit_s.to_string()]).arg(program);
    command
}

/// Runs a command to its end.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

/// What it wrote to either stream: which of the two a rank's is depends on the
/// launcher.
pub fn text_of(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
