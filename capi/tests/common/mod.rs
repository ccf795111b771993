//! What the tests share: programs are compiled as users compile them, and run with a
//! time limit.
#![allow(dead_code)] // Not every test needs all of it.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lmt_conformance::require;

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

/// Reads a pipe to its end, so that who writes never waits.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("it is piped");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What a killed process leaves is what there is.
        let _read = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Runs a command to its end, and stops it when the time is over.
pub fn run(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if begun.elapsed() > TIME_LIMIT {
            // Its own children have time limits of their own (alarm(2)).
            child.kill().expect("it is our child");
            panic!("{command:?} has not ended after {TIME_LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read = |pipe: JoinHandle<Vec<u8>>| pipe.join().expect("reading does not panic");
    Output { status, stdout: read(stdout), stderr: read(stderr) }
}

/// Whether a command is on the PATH; if not, it is said that `test` is skipped.
pub fn is_there(command: &str, test: &str) -> bool {
    let found = Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        require::skipped(test, &format!("{command} is not here"));
    }
    found
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

/// Compiles one source strictly; `before` and `after` it stand these arguments.
pub fn compile_with(
    compiler: &str,
    standard: &str,
    source: &Path,
    program: &Path,
    before: &[String],
    after: &[String],
) {
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(STRICT).args(before).arg(source);
    succeed(command.arg("-o").arg(program).args(after));
}

/// Compiles one source against the library in `libraries`.
pub fn compile(compiler: &str, standard: &str, source: &Path, libraries: &Path) -> PathBuf {
    let program = libraries.join(source.file_stem().expect("a file"));
    let headers = ["-I".to_owned(), folder().join("include").display().to_string()];
    let folder = libraries.display();
    let library =
        [format!("-L{folder}"), "-llmt".to_owned(), "-pthread".to_owned(), format!("-Wl,-rpath,{folder}")];
    compile_with(compiler, standard, source, &program, &headers, &library);
    program
}

/// The names of the functions that the header declares.
pub fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(folder().join("include/lmt.h")).expect("the header is there");
    let of = |line: &str| {
        let rest = ["lmt_code ", "bool ", "const char *"].iter().find_map(|kind| line.strip_prefix(kind))?;
        rest.split_once('(').map(|(name, _)| name.to_owned())
    };
    let names: Vec<String> = header.lines().filter_map(of).collect();
    assert!(names.len() > 60, "the header declares more than {} functions", names.len());
    names
}
