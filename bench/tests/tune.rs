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
const PATIENCE: Duration = Duration::from_secs(300);

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

/// The command without the settings of who runs these tests; `folder` takes the
/// place of the folder with their files.
fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
    for (name, _) in std::env::vars_os() {
        if ["LMT_", "HWLOC_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.env_remove("HOME").env("XDG_CONFIG_HOME", folder);
    command.arg("tune").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A folder that is not there.
const NOWHERE: &str = "/nowhere/at/all";

fn start(arguments: &[&str], output: &Path) -> Child {
    command(arguments, Path::new(NOWHERE)).arg("--output").arg(output).spawn().unwrap()
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

/// Whether all was measured once; if not, time was over, and that is told.
fn is_complete(output: &Output, file: &Path) -> bool {
    let complete = parsed(file).calibration.unwrap().complete;
    let (said, summary) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(if complete { 0 } else { 1 }), "{said}");
    if !complete {
        assert!(said.contains("give it more --time") && said.contains("what was measured by then"), "{said}");
        assert!(summary.contains("s were over") && summary.contains("(not complete)"), "{summary}");
    }
    complete
}

#[test]
fn a_run_writes_a_calibration_that_covers_what_was_measured() {
    let folder = Folder::new("whole");
    let (file, picture) = (folder.file("here.toml"), folder.file("picture.svg"));
    let picture_argument = picture.to_str().unwrap();
    // Enough for the first pass over one size on machines with other work too;
    // where it is not, the calibration says so.
    let arguments = ["--quick", "--time", "90", "--sizes", "4KiB", "--picture", picture_argument];
    let output = tune(&arguments, &file);
    is_complete(&output, &file);
    let parsed = parsed(&file);
    covers_what_was_measured(&parsed);
    let provenance = parsed.calibration.unwrap();
    assert_eq!(provenance.machine, Some(lmt_selector::config::fingerprint_of_this_machine()));
    assert!(parsed.layer.figures.iter().all(|figure| figure.bytes == 4096));
    // Nothing is said of what was not measured, except below cells.
    for rule in parsed.layer.rules.iter().filter(|rule| rule.take != Take::Eager) {
        assert!(rule.above.is_some() && rule.up_to.is_some(), "{rule:?}");
    }
    let summary = text(&output.stdout);
    for part in ["on cache:", "not measured:", "calibration: ", "lmt explain --bytes 1MiB --config "] {
        assert!(summary.contains(part), "{part} is missing in {summary}");
    }
    assert!(
        text(&output.stderr).lines().any(|line| line.starts_with("pass 1 of")),
        "plain lines without a terminal"
    );
    assert!(std::fs::read_to_string(folder.file("here.html")).unwrap().contains("<svg"));
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
    assert_eq!(folder.names(), ["here.html", "here.toml", "picture.svg"], "nothing else is left behind");
}

/// Collective operations at one length; what is faster than the library's choice is
/// read back as rules.
#[test]
fn collective_operations_are_measured_and_left_out_on_request() {
    let folder = Folder::new("collectives");
    let file = folder.file("here.toml");
    let output = tune(&["--quick", "--time", "60", "--sizes", "64KiB"], &file);
    is_complete(&output, &file);
    let summary = text(&output.stdout);
    let told = parsed(&file).calibration.unwrap().told;
    let skipped = told.iter().find(|(name, _)| *name == "skipped").map(|(_, text)| text.clone()).unwrap();
    // On a machine with other work time may be over before the first is done.
    let is_measured = summary.contains("collective operations, ");
    assert!(is_measured || skipped.contains("collective operations: bcast on"), "{summary}");
    let known = lmt::configuration::sources().known.with_collectives(lmt_collectives::check_rule);
    let read = parse_file(&file, &std::fs::read_to_string(&file).unwrap(), Authority::Calibration, &known);
    for rule in read.unwrap_or_else(|problems| panic!("{problems:#?}")).collectives {
        assert!(summary.contains(&rule.to_string()), "{rule} is missing in {summary}");
        assert_eq!((rule.above, rule.up_to), (Some(16 << 10), Some(64 << 10)), "{rule}");
        assert!(rule.min_ranks == rule.max_ranks && rule.min_ranks.is_some(), "{rule}");
    }

    let output = tune(&["--quick", "--time", "60", "--sizes", "1", "--no-collectives"], &file);
    is_complete(&output, &file);
    assert!(parsed(&file).collectives.is_empty());
    let summary = text(&output.stdout);
    assert!(summary.contains("faster than those chosen: --no-collectives"), "{summary}");
}

#[test]
fn what_changed_is_told() {
    let folder = Folder::new("again");
    let file = folder.file("here.toml");
    let before =
        "[calibration]\nmachine = \"a\"\ncomplete = false\n\n[[rule]]\ntake = \"eager\"\nup_to = 1\n";
    std::fs::write(&file, before).unwrap();
    let output = tune(&["--quick", "--time", "90", "--sizes", "1"], &file);
    is_complete(&output, &file);
    let summary = text(&output.stdout);
    assert!(summary.contains("the same path as in the calibration before for"), "{summary}");
}

#[test]
fn time_is_a_deadline() {
    let folder = Folder::new("deadline");
    let file = folder.file("here.toml");
    let complete = "[calibration]\nmachine = \"a\"\ncomplete = true\n";
    std::fs::write(&file, complete).unwrap();
    let begin = Instant::now();
    let output = tune(&["--quick", "--time", "5"], &file);
    // All sizes take longer than that; what is beyond is starting, probing and
    // writing.
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(5 + 60), "it took {took:?}");
    let kept = folder.file("here.toml.complete");
    if text(&output.stderr).contains("nothing was measured yet") {
        // On a machine where nothing is measured in that time.
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), complete);
    } else if is_complete(&output, &file) {
        assert!(!kept.exists());
    } else {
        covers_what_was_measured(&parsed(&file));
        assert_eq!(std::fs::read_to_string(kept).unwrap(), complete);
    }
}

#[test]
fn a_signal_keeps_what_was_measured() {
    for (signal, name) in [(Signal::SIGINT, "int"), (Signal::SIGTERM, "term")] {
        let folder = Folder::new(name);
        let file = folder.file("here.toml");
        let complete = "[calibration]\nmachine = \"a\"\ncomplete = true\n";
        std::fs::write(&file, complete).unwrap();
        let mut child = start(&["--time", "250"], &file);
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
    let mut child = start(&["--time", "250"], &file);
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
fn two_files_are_not_one() {
    let folder = Folder::new("two");
    let file = folder.file("here.toml");
    let same = folder.file(".").join("here.toml");
    let page = folder.file("here.html");
    for arguments in [["--picture", same.to_str().unwrap()], ["--picture", page.to_str().unwrap()]] {
        let output = tune(&arguments, &file);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("name two files"), "{}", text(&output.stderr));
    }
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn without_options_it_goes_where_endpoints_look() {
    let folder = Folder::new("xdg");
    let name = format!("{}.toml", lmt_selector::config::fingerprint_of_this_machine());
    let file = folder.file("lmt").join("calibration").join(name);
    // With these no endpoint starts, and tuning has no need of them; the broken
    // calibration is what it is advised for.
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let broken = "[calibration]\nmachine = 7\n";
    std::fs::write(&file, broken).unwrap();
    std::fs::write(folder.file("lmt").join("lmt.toml"), "[endpoint]\neager_max_bytes = \"much\"\n").unwrap();
    let arguments = ["--quick", "--time", "90", "--sizes", "4KiB"];
    let output = end(command(&arguments, &folder.0).env("LMT_MECHANISM", "nobody").spawn().unwrap());
    is_complete(&output, &file);
    covers_what_was_measured(&parsed(&file));
    assert!(file.with_extension("html").exists());
    assert!(text(&output.stdout).ends_with("lmt explain --bytes 1MiB\n"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains(".toml.unreadable"), "{}", text(&output.stderr));
    let mut kept = file.into_os_string();
    kept.push(".unreadable");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), broken);
}

#[test]
fn another_machine_by_variables_is_not_this_one() {
    let arguments = ["--quick", "--time", "5", "--output", "/nowhere/at/all.toml"];
    let mut command = command(&arguments, Path::new(NOWHERE));
    let output = command.env("HWLOC_SYNTHETIC", "package:2 core:2 pu:1").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("another machine"), "{}", text(&output.stderr));
}
