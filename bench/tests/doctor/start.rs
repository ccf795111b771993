//! Starting the command, and reading what it says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A user without rights, and not the number that user namespaces show for
/// users whom they do not know.
const NOBODY: u32 = 47110;

/// Where there is nothing, also for nobody.
pub const NO_FOLDER: &str = "/nowhere/at/all";

/// A folder that everybody may enter, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-doctor-run-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    pub fn with(&self, path: &str, content: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The command under test, where nobody can start it too. Another process
    /// copies it: were it this one, a child that another test has just forked
    /// could hold it open for writing, and it could not be started.
    pub fn program(&self, mode: u32) -> PathBuf {
        let program = self.0.join("lmt");
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_lmt")).arg(&program).status().unwrap();
        assert!(copied.success());
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command with a clean environment, without the files of who runs these
/// tests, and with a time limit in [`finish`].
pub fn doctor(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("doctor").args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("LMT_") || name.starts_with("HWLOC_") {
            command.env_remove(name);
        }
    }
    command.env("XDG_CONFIG_HOME", NO_FOLDER).env_remove("HOME");
    command
}

/// The same by who has no rights: by nobody where these tests run as root, by
/// their own user elsewhere.
pub fn unprivileged(program: &Path, arguments: &[&str]) -> Command {
    let mut command = doctor(program, arguments);
    as_nobody(&mut command);
    command
}

/// Takes root's rights away; whoever else runs these tests has none.
pub fn as_nobody(command: &mut Command) {
    if nix::unistd::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

pub fn finish(mut command: Command) -> Output {
    let folder = Folder::new(&format!("output-{:?}", std::thread::current().id()));
    let (out, err) = (folder.0.join("out"), folder.0.join("err"));
    let mut child = command
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let deadline = Instant::now() + Duration::from_secs(120);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Output { status, stdout: fs::read(out).unwrap(), stderr: fs::read(err).unwrap() }
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs it and reads the object that it writes; the exit status says the same.
pub fn report(command: Command) -> Value {
    let output = finish(command);
    assert_eq!(text(&output.stderr), "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let status = if report["ok"].as_bool().unwrap() { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(status), "{report:#}");
    report
}

pub const JSON: [&str; 2] = ["--format", "json"];

pub fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|entry| entry["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

pub fn mechanism<'a>(report: &'a Value, name: &str) -> &'a Value {
    named(&report["mechanisms"], name)
}

pub fn says(value: &Value, part: &str) -> bool {
    value.as_str().is_some_and(|text| text.contains(part))
}

/// Whether the machine itself lets an unprivileged user copy; where it does not
/// (a container's filter), what else is refused cannot be told apart.
pub fn is_free(program: &Path, test: &str) -> bool {
    let plain = report(unprivileged(program, &JSON));
    if plain["ok"] == true {
        return true;
    }
    lmt_conformance::require::skipped("cma", &format!("{test}: {}", plain["verdict"]));
    false
}
