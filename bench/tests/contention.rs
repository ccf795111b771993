//! `lmt contention` and `lmt model`, as users start them.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lmt_selector::contention::{KNL, write_contention};

/// However loaded the machine is, this is longer than any of these takes.
const PATIENCE: Duration = Duration::from_secs(120);

fn lmt(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LMT_")) {
        command.env_remove(name);
    }
    command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").args(arguments).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers =
        [std::thread::spawn(move || read(&mut stdout)), std::thread::spawn(move || read(&mut stderr))];
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{arguments:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap());
    Output { status, stdout, stderr }
}

fn read(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A file that goes with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("lmt-contention-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn readers_are_measured_and_drawn() {
    let picture = File::new("readers.svg");
    let arguments =
        ["contention", "--readers", "2,3", "--sizes", "4KiB,64KiB", "--format", "json", "--picture"];
    let output = lmt(&[&arguments[..], &[picture.path()]].concat());
    let said = text(&output.stderr);
    if !output.status.success() && said.contains("may not read another's memory") {
        assert!(!std::env::var("LMT_REQUIRE").unwrap_or_default().contains("cma"), "{said}");
        println!("skipped: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let parameters = &json["parameters"];
    for key in ["alpha_us", "byte_ns", "lock_us", "line_us", "copy_ns", "combine_ns"] {
        let figure = parameters[key].as_f64().unwrap();
        // A machine under load may make the difference of two times nothing.
        assert!((0.0..1e4).contains(&figure), "{key} {figure}");
    }
    assert!(parameters["copy_ns"].as_f64().unwrap() > 0.0);
    assert_eq!(parameters["gamma"][0], 1.0);
    let cpus = json["environment"]["cpus"].as_array().unwrap().len();
    assert_eq!(parameters["gamma"].as_array().unwrap().len(), cpus);
    assert_eq!(parameters["gamma_fit"].is_null(), cpus < 3, "{parameters}");
    let throughput = json["throughput"].as_array().unwrap();
    assert_eq!(throughput.len(), 6, "one reader is always among them");
    assert!(throughput.iter().all(|one| one["mb_per_s"].as_f64().unwrap() > 0.0));
    let drawn = std::fs::read_to_string(&picture.0).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("1 reader"), "{drawn}");
}

#[test]
fn what_cannot_be_measured_is_a_usage_error() {
    for (arguments, part) in [
        (&["contention", "--readers", "0"][..], "--readers"),
        (&["contention", "--sizes", "0,1"], "0 bytes"),
        (&["contention", "--picture", "/nowhere/at/all.svg"], "--picture"),
        (&["model", "--machine", "this"], "run lmt tune"),
        (&["model", "scater"], "there are barrier, bcast"),
        (&["model", "--machine", "knl", "--algorithms", "pairwise"], "no algorithm to bcast"),
    ] {
        let output = lmt(arguments);
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(part) && said.lines().count() == 1,
            "{arguments:?}: {said}"
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn this_machine_is_what_a_file_says() {
    let (file, picture) = (File::new("this.toml"), File::new("model.svg"));
    let calibration = format!("[calibration]\ncomplete = true\n\n{}", write_contention(&KNL.parameters));
    std::fs::write(&file.0, calibration).unwrap();
    let common = ["model", "scatter", "-n", "64", "--sizes", "64KiB,1MiB", "--format", "csv"];
    let this = lmt(&[&common[..], &["--config", file.path(), "--picture", picture.path()]].concat());
    assert!(this.status.success(), "{}", text(&this.stderr));
    let knl = lmt(&[&common[..], &["--machine", "knl"]].concat());
    assert_eq!(text(&this.stdout), text(&knl.stdout));
    assert!(text(&knl.stdout).contains("scatter,64,1048576,throttled-read:8,"), "{}", text(&knl.stdout));
    assert!(std::fs::read_to_string(&picture.0).unwrap().starts_with("<svg"));
    let shown = lmt(&["config", "--check", file.path()]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
}
