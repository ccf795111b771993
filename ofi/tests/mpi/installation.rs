//! The MPIs that are tested, and their commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Mpich,
    OpenMpi,
    IntelMpi,
}

/// Which way messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport<'a> {
    /// Through the provider, which lies in this folder.
    Lmt(&'a Path),
    /// As the MPI has it by itself.
    Own,
    /// MPICH through its libfabric's tcp provider, set up as for ours.
    Tcp,
}

/// One MPI.
pub struct Mpi {
    pub kind: Kind,
    folder: PathBuf,
}

impl Mpi {
    fn at(folder: &Path) -> Self {
        let mut mpi = Self { kind: Kind::IntelMpi, folder: folder.to_owned() };
        let said = output(mpi.command("mpiexec", 60).arg("--version"));
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        mpi.kind = match () {
            () if text.contains("Open MPI") => Kind::OpenMpi,
            () if text.contains("Intel") => Kind::IntelMpi,
            () if text.contains("HYDRA") => Kind::Mpich,
            () => panic!("{} is of no MPI that is known: {text}", folder.display()),
        };
        mpi
    }

    /// The MPIs that `MPI_FOLDERS` names, if there is such a variable.
    pub fn all() -> Option<Vec<Self>> {
        let folders = std::env::var_os("MPI_FOLDERS")?;
        Some(std::env::split_paths(&folders).map(|folder| Self::at(&folder)).collect())
    }

    /// A part of its folder.
    pub fn path(&self, part: &str) -> PathBuf {
        self.folder.join(part)
    }

    /// One of its commands, with a time limit, and told where it is.
    pub fn command(&self, name: &str, limit_s: u32) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &limit_s.to_string()]).arg(self.path("bin").join(name));
        for variable in ["LMT_FI", "FI_PROVIDER", "FI_PROVIDER_PATH"] {
            command.env_remove(variable);
        }
        match self.kind {
            Kind::Mpich => {}
            Kind::OpenMpi => {
                for name in ["OMPI", "PRTE"] {
                    command.env(format!("{name}_ALLOW_RUN_AS_ROOT"), "1");
                    command.env(format!("{name}_ALLOW_RUN_AS_ROOT_CONFIRM"), "1");
                }
            }
            Kind::IntelMpi => {
                command.env("I_MPI_ROOT", &self.folder).env("LD_LIBRARY_PATH", self.path("lib"));
            }
        }
        command
    }

    /// The launcher of `ranks` processes, set up so that messages go this way.
    pub fn launcher(&self, transport: Transport<'_>, ranks: u32, limit_s: u32) -> Command {
        let mut command = self.command("mpiexec", limit_s);
        match transport {
            Transport::Own => {}
            Transport::Tcp => {
                command.env("FI_PROVIDER", "tcp").env("MPIR_CVAR_CH4_NETMOD", "ofi");
                command.env("MPIR_CVAR_NOLOCAL", "1");
            }
            Transport::Lmt(library) => self.through(library, &mut command),
        }
        if self.kind == Kind::OpenMpi {
            command.arg("--oversubscribe");
        }
        command.args(["-n", &ranks.to_string()]);
        command
    }

    fn through(&self, library: &Path, command: &mut Command) {
        let mut folders = OsString::from(library);
        match self.kind {
            Kind::Mpich => {
                command.env("FI_PROVIDER", "lmt").env("MPIR_CVAR_CH4_NETMOD", "ofi");
                command.env("MPIR_CVAR_NOLOCAL", "1");
            }
            Kind::OpenMpi => {
                command.env("LMT_FI", "1").args(["--mca", "pml", "cm", "--mca", "mtl", "ofi"]);
                command.args(["--mca", "mtl_ofi_provider_include", "lmt"]);
            }
            Kind::IntelMpi => {
                command.env("I_MPI_FABRICS", "ofi").env("I_MPI_OFI_PROVIDER", "lmt");
                folders.push(":");
                folders.push(self.path("lib"));
            }
        }
        command.env("FI_PROVIDER_PATH", folders).env("LMT_STATS", "1");
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

/// Runs a command to its end.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

/// What it wrote to either stream: which of the two a rank's is depends on the
/// launcher.
pub fn text_of(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
