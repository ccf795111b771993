//! The command itself, as users start it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn lmt(arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers =
        (std::thread::spawn(move || read(&mut stdout)), std::thread::spawn(move || read(&mut stderr)));
    let deadline = Instant::now() + Duration::from_secs(120);
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
    Output { status, stdout: readers.0.join().unwrap(), stderr: readers.1.join().unwrap() }
}

fn read(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn rows(output: &Output) -> Vec<Vec<String>> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout).lines().skip(1);
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn mistakes_are_one_line_and_status_2() {
    for (arguments, part) in [
        (&["bench", "pingpnog"][..], "did you mean 'pingpong'"),
        (&["bench", "pingpong", "--mechanism", "smh"], "did you mean 'shm'"),
        (&["bench", "pingpong", "-n", "0"], "from 2"),
        (&["bench", "pingpong", "--sizes", "12XB"], "units are"),
        (&["bench", "pingpong", "--sizes", "0.."], "no end"),
        (&["bench", "pingpong", "--pin", "0,60000"], "may not use"),
        (&["bench", "pingpong", "--pin", "0"], "one for each"),
        (&["bench", "limits", "--mechanism", "shm"], "leave it out"),
        (&["bench", "limits", "-n", "3"], "2 ranks"),
        (&["run", "-n", "0", "--", "true"], "from 1 to"),
        (&["run", "-n", "2"], "PROGRAM"),
        (&["run", "-n", "2", "--"], "PROGRAM"),
        (&["run", "--", "true"], "RANKS"),
        (&["bench"], "PATTERN"),
        (&[], "subcommand"),
    ] {
        let output = lmt(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn failures_are_one_line_and_status_1() {
    for (arguments, part) in [
        (&["compare", "--output", "/nowhere/at/all.html"][..], "/nowhere/at/all.html"),
        (&["compare", "--output", "/"], "is a folder"),
        (&["bench", "bw", "-n", "1024", "--sizes", "4GiB"], "are available"),
        (&["run", "-n", "2", "--", "/nowhere/at/all"], "program `/nowhere/at/all` was not found"),
        (&["run", "-n", "3", "--", "sh", "-c", "test $LMT_RANK != 1"], "rank 1 ended with status 1"),
    ] {
        let output = lmt(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}

/// A rank tells why it failed to the command that started it, as an event.
#[test]
fn a_rank_without_a_command_says_what_it_is_for() {
    let output = lmt(&["bench-rank"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "");
    let event: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(event["failed"], "this subcommand is for lmt itself; use lmt bench");
}

#[test]
fn run_starts_every_rank_once() {
    let output = lmt(&["run", "-n", "3", "--", "sh", "-c", "echo $LMT_RANK"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut ranks: Vec<&str> = text(&output.stdout).lines().collect();
    ranks.sort_unstable();
    assert_eq!(ranks, ["0", "1", "2"]);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn killing_run_ends_its_ranks_and_their_daemons() {
    let mark = format!("LMT_TEST_MARK=run-{}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    // Each rank: its shell, a daemon in a session of its own, and its child.
    let script = "setsid sh -c 'sleep 1000 & sleep 1000' & sleep 1000";
    let mut run = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["run", "-n", "2", "--", "sh", "-c", script])
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = within(Duration::from_secs(20), || sleepers(&mark) >= 6);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(started, "two ranks do not start their six sleepers");
    let ended = within(Duration::from_secs(10), || marked(&mark).is_empty());
    assert!(ended, "these outlive lmt run: {:?}", marked(&mark));
}

fn within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Processes, zombies aside (their environment is empty), that have this
/// variable from the test.
fn marked(mark: &str) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    })
    .collect()
}

fn sleepers(mark: &str) -> usize {
    let is_sleep =
        |pid: &u32| std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(b"sleep"));
    marked(mark).iter().filter(|pid| is_sleep(pid)).count()
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["bench", "pingpong", "--sizes", "1..64KiB", "--repetitions", "2", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let status = child.wait().unwrap();
    assert!(first.starts_with("pattern,"));
    assert_eq!(status.code(), Some(0));
    assert_eq!(text(&read(&mut child.stderr.take().unwrap())), "");
}

#[test]
fn limits_are_measured_and_plausible() {
    let output = lmt(&["bench", "limits", "--sizes", "64,1MiB", "--repetitions", "3", "--format", "csv"]);
    let rows = rows(&output);
    let time = |method: &str, bytes: &str| {
        let row = rows.iter().find(|row| row[1] == method && row[3] == bytes);
        row.map(|row| row[5].parse::<f64>().unwrap())
    };
    assert!(rows.iter().all(|row| row[0] == "limits" && row[2] == "2"));
    for method in ["hop", "syscall", "memcpy", "pipe-2x64k", "pipe-8x32k", "pipe-8x16k", "pipe-16x8k"] {
        for bytes in ["64", "1048576"] {
            assert!(time(method, bytes).is_some_and(|usec| usec > 0.0), "{method} of {bytes}: {rows:?}");
        }
    }
    // Sixteen thousand times the bytes take longer.
    let (small, large) = (time("pipe-8x32k", "64"), time("pipe-8x32k", "1048576"));
    assert!(small < large, "{small:?} {large:?}");
    if time("readv", "64").is_none() {
        // Not allowed here: then it has to be said.
        assert!(text(&output.stderr).contains("process_vm_readv is refused"));
        return;
    }
    // A short message by a system call costs more than that call alone.
    assert!(time("readv", "64") > time("syscall", "64"), "{rows:?}");
    assert!(time("readv", "64") < time("readv", "1048576"), "{rows:?}");
}

#[test]
fn limits_stand_beside_a_pattern() {
    let output = lmt(&[
        "bench",
        "pingpong",
        "--sizes",
        "64KiB",
        "--repetitions",
        "3",
        "--limits",
        "--verify",
        "--touch",
        "--off-cache",
        "--format",
        "json",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = value["rows"].as_array().unwrap();
    let auto = rows.iter().find(|row| row["mechanism"] == "auto").unwrap();
    assert!(auto["verified_messages"].as_u64().unwrap() > 0);
    let ratios = auto["ratios"].as_array().unwrap();
    let pipeline = ratios.iter().find(|ratio| ratio["method"] == "pipe-8x32k").unwrap();
    let percent = pipeline["percent"].as_f64().unwrap();
    // It is what the two rows say, give or take what changes between pairs; and
    // neither is many times the other, as a wrong unit or a swap would make it.
    let time = |name: &str| {
        rows.iter().find(|row| row["mechanism"] == name).unwrap()["usec_median"].as_f64().unwrap()
    };
    let of_medians = 100.0 * time("pipe-8x32k") / time("auto");
    assert!((of_medians / 4.0..=of_medians * 4.0).contains(&percent), "{percent} but {of_medians}");
    assert!((2.0..=500.0).contains(&percent), "{percent}");
    assert!(value["settings"]["rotation_bytes"].as_u64().unwrap() >= 1 << 20);
    assert!(value["environment"]["buffers"].as_str().unwrap().contains("off cache"));
}

#[test]
fn every_pattern_runs_between_processes() {
    for pattern in ["latency", "pingpong", "pingping", "exchange", "bw", "bibw"] {
        let output = lmt(&[
            "bench",
            pattern,
            "-n",
            "3",
            "--sizes",
            "0,8,40KiB",
            "--repetitions",
            "2",
            "--iterations",
            "5",
            "--verify",
            "--format",
            "csv",
        ]);
        let rows = rows(&output);
        assert_eq!(rows.len(), 3, "{pattern}");
        assert!(rows.iter().all(|row| row[0] == pattern && row[2] == "3" && row[4] == "5"), "{rows:?}");
        assert!(rows.iter().all(|row| row[12] != "0"), "{rows:?}");
        assert!(output.stderr.is_empty(), "progress in a pipe: {}", text(&output.stderr));
    }
}

#[test]
fn compare_writes_its_report_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("lmt-bench-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let report = folder.join("report.html");
    let output = lmt(&["compare", "--output", path(&report), "--sizes", "1..64KiB", "--repetitions", "2"]);
    let page = std::fs::read_to_string(&report);
    let files = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(&format!("report: {}", report.display())));
    let page = page.unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("shm"));
    assert_eq!(files, 1);
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn ranks_end_with_the_command() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["bench", "pingpong", "--repetitions", "10000", "--format", "csv"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let header = output.next().unwrap().unwrap();
    assert!(header.starts_with("pattern,"));
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut ranks = children(child.id());
    while ranks.len() < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
        ranks = children(child.id());
    }
    assert_eq!(ranks.len(), 2, "{ranks:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    while ranks.iter().any(|&rank| lives(rank)) {
        assert!(Instant::now() < deadline, "a rank outlives the command: {ranks:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The children of a process's main thread, which is the one that starts ranks.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a process runs; one that has ended and waits for its new parent to
/// notice does not.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
