//! What the tests share: programs are compiled as users compile them, and run with a
//! time limit.
#![allow(dead_code)] // Not every test needs all of it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing that is run takes longer.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What user code is compiled with: everything that a compiler warns of by itself, as
/// an error.
pub const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The folder of this crate.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder that goes with the value.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty one.
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        // What an earlier process with this number may have left.
        let _removed = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("cargo's folder for tests can be written");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// A library that cargo has built for this very test, beside it.
pub fn built(name: &str) -> PathBuf {
    let path = std::env::current_exe().expect("this program has a path").with_file_name(name);
    assert!(path.exists(), "{} is there: cargo builds the libraries before the tests", path.display());
    path
}

/// A folder in which the shared library has the names that the linker and the loader
/// look for.
pub fn libraries(name: &str) -> Folder {
    let folder = Folder::new(name);
    symlink(built("liblmt_capi.so"), folder.path().join("liblmt.so.0")).expect("a link");
    symlink("liblmt.so.0", folder.path().join("liblmt.so")).expect("a link");
    folder
}

/// Runs a command to its end, and stops it when the time is over.
pub fn run(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let begun = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if begun.elapsed() > TIME_LIMIT {
            // Its own children have time limits of their own (alarm(2)).
            child.kill().expect("it is our child");
            panic!("{command:?} has not ended after {TIME_LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().expect("its output")
}

/// The same of a command that must succeed; what it has printed.
pub fn succeed(command: &mut Command) -> String {
    let output = run(command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    let text = String::from_utf8(output.stdout).expect("it prints text");
    for line in text.lines().filter(|line| line.starts_with("SKIPPED")) {
        eprintln!("{line}");
    }
    text
}

/// Compiles one source against the library in `libraries`, strictly.
pub fn compile(compiler: &str, standard: &str, source: &Path, libraries: &Path) -> PathBuf {
    let program = libraries.join(source.file_stem().expect("a file"));
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(STRICT).arg("-I").arg(folder().join("include"));
    command.arg(source).arg("-o").arg(&program);
    command.arg("-L").arg(libraries).args(["-llmt", "-pthread"]);
    command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    succeed(&mut command);
    program
}

/// The names of the functions that the header declares.
pub fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(folder().join("include/lmt.h")).expect("the header is there");
    let of = |line: &str| {
        let rest = line.strip_prefix("lmt_code ").or_else(|| line.strip_prefix("const char *"))?;
        rest.split_once('(').map(|(name, _)| name.to_owned())
    };
    let names: Vec<String> = header.lines().filter_map(of).collect();
    assert!(names.len() > 60, "the header declares more than {} functions", names.len());
    names
}
