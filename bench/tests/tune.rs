//! `lmt tune`, as users start it, with little time.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lmt_selector::calibration::{Load, taken};
use lmt_selector::config::{Parsed, parse_file};
use lmt_selector::rules::{Authority, Take};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// However loaded the machine is, this is longer than any of these takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-tune-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names in it, in order.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(arguments: &[&str], output: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_lmt"))
        .arg("tune")
        .args(arguments)
        .arg("--output")
        .arg(output)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end(mut child: Child) -> Output {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("lmt tune did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn tune(arguments: &[&str], output: &Path) -> Output {
    end(start(arguments, output))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The file as an endpoint reads it.
fn parsed(path: &Path) -> Parsed {
    let text = std::fs::read_to_string(path).unwrap();
    parse_file(path, &text, Authority::Calibration, &lmt::configuration::sources().known)
        .unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"))
}

/// Every size that was measured on cache, with one pair, has a way.
fn covers_what_was_measured(parsed: &Parsed) {
    assert!(!parsed.layer.figures.is_empty() && !parsed.layer.rules.is_empty());
    for figure in parsed.layer.figures.iter().filter(|figure| figure.pairs == 1) {
        let load = Load { place: figure.place, pairs: 1, off_cache: figure.off_cache };
        let way = taken(&parsed.layer.rules, load, figure.bytes);
        assert!(way.is_some(), "{} B has figures and no rule", figure.bytes);
    }
}

#[test]
fn a_run_writes_a_calibration_that_covers_what_was_measured() {
    let folder = Folder::new("whole");
    let (file, picture) = (folder.file("here.toml"), folder.file("picture.svg"));
    let picture_argument = picture.to_str().unwrap();
    let arguments = ["--quick", "--time", "60", "--sizes", "1,4KiB,8KiB,1MiB", "--picture", picture_argument];
    let output = tune(&arguments, &file);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let parsed = parsed(&file);
    covers_what_was_measured(&parsed);
    let provenance = parsed.calibration.unwrap();
    assert!(provenance.complete);
    assert_eq!(provenance.machine, Some(lmt_selector::config::fingerprint_of_this_machine()));
    let sizes = [1u64, 4096, 8192, 1 << 20];
    assert!(parsed.layer.figures.iter().all(|figure| sizes.contains(&figure.bytes)));
    // Nothing is said of what was not measured, except below cells.
    for rule in parsed.layer.rules.iter().filter(|rule| rule.take != Take::Eager) {
        assert!(rule.above.is_some() && rule.up_to.is_some(), "{rule:?}");
    }
    let summary = text(&output.stdout);
    for part in ["on cache:", "not measured:", "calibration: ", "lmt explain"] {
        assert!(summary.contains(part), "{part} is missing in {summary}");
    }
    assert!(
        text(&output.stderr).lines().any(|line| line.starts_with("pass 1 of")),
        "plain lines without a terminal"
    );
    assert!(std::fs::read_to_string(folder.file("here.html")).unwrap().contains("<svg"));
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    assert_eq!(folder.names(), ["here.html", "here.toml", "picture.svg"], "nothing else is left behind");
    // Again: what changed is told.
    let again = tune(&["--quick", "--time", "60", "--sizes", "1"], &file);
    assert!(
        text(&again.stdout).contains("the same way as in the calibration before for"),
        "{}",
        text(&again.stdout)
    );
}

#[test]
fn time_is_a_deadline() {
    let folder = Folder::new("deadline");
    let file = folder.file("here.toml");
    let begin = Instant::now();
    let output = tune(&["--quick", "--time", "5"], &file);
    // All sizes take longer than that; what is beyond is starting, probing and
    // writing.
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(5 + 25), "it took {took:?}");
    match output.status.code() {
        Some(0) => {
            let parsed = parsed(&file);
            covers_what_was_measured(&parsed);
            assert!(
                text(&output.stdout).contains("when the 5 s were over")
                    || parsed.calibration.unwrap().complete
            );
        }
        // On a machine where nothing is measured in that time.
        Some(1) => assert!(text(&output.stderr).contains("give it more --time"), "{}", text(&output.stderr)),
        status => panic!("{status:?}: {}", text(&output.stderr)),
    }
}

#[test]
fn a_signal_keeps_what_was_measured() {
    for (signal, name) in [(Signal::SIGINT, "int"), (Signal::SIGTERM, "term")] {
        let folder = Folder::new(name);
        let file = folder.file("here.toml");
        let complete = "[calibration]\nmachine = \"a\"\ncomplete = true\n";
        std::fs::write(&file, complete).unwrap();
        let mut child = start(&["--time", "100"], &file);
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("pass 1 of") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before it measured");
        }
        std::thread::sleep(Duration::from_millis(500));
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let begin = Instant::now();
        let reader = std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = lines.read_to_string(&mut rest);
            rest
        });
        let output = end(child);
        assert!(begin.elapsed() < Duration::from_secs(30));
        let said = reader.join().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal as i32), "{said}");
        assert!(said.contains("ended it early"), "{said}");
        let parsed = parsed(&file);
        assert!(!parsed.calibration.as_ref().unwrap().complete);
        covers_what_was_measured(&parsed);
        assert_eq!(std::fs::read_to_string(folder.file("here.toml.complete")).unwrap(), complete);
        assert_eq!(folder.names(), ["here.html", "here.toml", "here.toml.complete"]);
    }
}

/// The processes that another has started.
fn children(parent: u32) -> Vec<i32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn a_rank_that_ends_costs_only_what_was_left() {
    let folder = Folder::new("rank");
    let file = folder.file("here.toml");
    let mut child = start(&["--time", "100"], &file);
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("pass 1 of") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before it measured");
    }
    let ranks = children(child.id());
    let Some(rank) = ranks.last() else {
        lmt_conformance::require::skipped("a rank that ends", "this kernel does not list children");
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    };
    kill(Pid::from_raw(*rank), Signal::SIGKILL).unwrap();
    let output = end(child);
    let mut said = String::new();
    lines.read_to_string(&mut said).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("ended unexpectedly") && said.contains("what was measured by then is in"),
        "{said}"
    );
    let parsed = parsed(&file);
    assert!(!parsed.calibration.as_ref().unwrap().complete);
    covers_what_was_measured(&parsed);
}

#[test]
fn what_cannot_be_written_is_known_before_it_is_measured() {
    let folder = Folder::new("unwritable");
    let file = folder.file("no").join("folder").join("here.toml");
    for (arguments, part) in [
        (&[][..], "cannot be written"),
        (&["--report", "/nowhere/at/all.html"], "cannot be written"),
        (&["--sizes", "3"], "powers of two"),
        (&["--time", "0"], "--time"),
    ] {
        let file = if arguments.is_empty() { file.clone() } else { folder.file("here.toml") };
        let begin = Instant::now();
        let output = tune(arguments, &file);
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
        assert!(!said.contains("pass 1"), "{said}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn without_options_it_goes_where_endpoints_look() {
    let folder = Folder::new("xdg");
    let output = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["tune", "--quick", "--time", "30", "--sizes", "1,2"])
        .env("XDG_CONFIG_HOME", &folder.0)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let name = format!("{}.toml", lmt_selector::config::fingerprint_of_this_machine());
    let file = folder.file("lmt").join("calibration").join(name);
    covers_what_was_measured(&parsed(&file));
    assert!(file.with_extension("html").exists());
    // With a broken one no endpoint starts, and lmt tune is what is advised.
    std::fs::write(&file, "[calibration]\nmachine = 7\n").unwrap();
    let again = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["tune", "--quick", "--time", "30", "--sizes", "1,2"])
        .env("XDG_CONFIG_HOME", &folder.0)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains(".toml.unreadable"), "{}", text(&again.stderr));
    covers_what_was_measured(&parsed(&file));
}

#[test]
fn another_machine_by_variables_is_not_this_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["tune", "--quick", "--time", "5", "--output", "/nowhere/at/all.toml"])
        .env("HWLOC_SYNTHETIC", "package:2 core:2 pu:1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("another machine"), "{}", text(&output.stderr));
}
