//! `lmt app`, as users start it. Every command has a time limit.

mod common;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{children, lmt, text};
use serde_json::Value;

/// The rows of a run in which all was right.
fn rows(arguments: &[&str]) -> Vec<Value> {
    let output = app(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    rows_of(&output)
}

/// One run of each, and its rows as JSON.
fn app(arguments: &[&str]) -> Output {
    lmt(&[&["app"], arguments, &["--repetitions", "1", "--format", "json"]].concat())
}

fn rows_of(output: &Output) -> Vec<Value> {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    rows.clone()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} in {row}"))
}

/// What holds of every row.
fn is_plausible(row: &Value) {
    assert_eq!(row["verified"], true, "{row}");
    let (least, median, most) =
        (number(row, "seconds_min"), number(row, "seconds_median"), number(row, "seconds_max"));
    assert!(0.0 < least && least <= median && median <= most, "{row}");
    let communication = number(row, "communication_seconds");
    assert!(0.0 < communication && communication <= median, "{row}");
    assert!((0.0..=100.0).contains(&number(row, "communication_percent")), "{row}");
    assert!(number(row, "mop_per_s") > 0.0, "{row}");
}

fn names(rows: &[Value], what: &str) -> Vec<String> {
    rows.iter().map(|row| row[what].as_str().unwrap().to_owned()).collect()
}

#[test]
fn class_s_has_the_published_ranks_on_one_to_five_ranks() {
    for ranks in ["1", "2", "3", "4", "5"] {
        let rows = rows(&["is", "--class", "s", "-n", ranks, "--mechanism", "auto,shm"]);
        assert_eq!(names(&rows, "mechanism"), ["auto", "shm"]);
        for row in &rows {
            is_plausible(row);
            assert_eq!(row["checks"], 50, "{row}");
        }
        // With shm alone no rank reaches into another's memory, if there is another.
        if ranks != "1" {
            assert_eq!(rows[1]["algorithm"], "messages");
        }
    }
}

#[test]
fn class_w_has_the_published_ranks_on_four_ranks() {
    let rows = rows(&["is", "--class", "W", "-n", "4", "--mechanism", "auto,shm"]);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        is_plausible(row);
        assert_eq!(row["checks"], 50, "{row}");
    }
}

#[test]
fn every_mechanism_sorts() {
    for buffers in ["private", "shared"] {
        let rows = rows(&["is", "--class", "S", "-n", "3", "--mechanism", "all,auto", "--buffers", buffers]);
        let names = names(&rows, "mechanism");
        assert!(names.contains(&"auto".to_owned()) && names.contains(&"shm".to_owned()), "{names:?}");
        rows.iter().for_each(is_plausible);
        let shm = rows.iter().find(|row| row["mechanism"] == "shm").unwrap();
        assert_eq!(number(shm, "speedup_percent"), 0.0);
    }
}

/// Those that cannot do an application's operation are left out and named, the others
/// are compared.
#[test]
fn algorithms_take_turns() {
    for (application, size, operation) in [
        ("is", &["--class", "S"][..], ["messages", "pairwise-messages"]),
        ("asp", &["--vertices", "64"], ["messages", "slots"]),
    ] {
        let arguments = [&[application][..], size, &["-n", "3", "--algorithm", "all"]].concat();
        let output = app(&arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        let rows = rows_of(&output);
        rows.iter().for_each(is_plausible);
        let asked = names(&rows, "asked_algorithm");
        assert_eq!(asked[0], "auto");
        assert!(operation.iter().all(|name| asked.iter().any(|asked| asked == name)), "{asked:?}");
        let said: Vec<&str> = text(&output.stderr).lines().collect();
        for line in &said {
            assert!(line.contains("is left out: it cannot do this call: "), "{line}");
        }
        // Of one mechanism, each reason once.
        let mut reasons: Vec<&str> =
            said.iter().filter_map(|line| line.rsplit_once(": ")).map(|line| line.1).collect();
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), said.len(), "{said:?}");
    }
}

#[test]
fn shortest_paths_are_those_of_the_serial_run() {
    for (vertices, ranks, checks) in
        [("1", "1", 1), ("2", "3", 2), ("97", "1", 97), ("97", "2", 97), ("97", "3", 97), ("96", "5", 96)]
    {
        let rows = rows(&["asp", "--vertices", vertices, "-n", ranks, "--mechanism", "auto,shm"]);
        assert_eq!(rows.len(), 2);
        for row in &rows {
            is_plausible(row);
            assert_eq!(row["checks"], checks, "{row}");
        }
    }
}

/// All rows but the empty ones by the mechanism, whatever their length.
#[test]
fn shortest_paths_by_every_mechanism() {
    let arguments = ["asp", "--vertices", "200", "-n", "3", "--mechanism", "announced,auto"];
    let rows = rows(&[&arguments[..], &["--algorithm", "messages"]].concat());
    assert!(names(&rows, "mechanism").contains(&"announced:shm".to_owned()));
    for row in &rows {
        is_plausible(row);
        assert_eq!(row["checks"], 200, "{row}");
    }
}

/// Rows too long to go through slots whole; and paths found another way.
#[test]
fn shortest_paths_by_long_rows() {
    let long = ["asp", "--vertices", "2060", "-n", "2", "--check", "sample"];
    let rows = rows(&[&long[..], &["--algorithm", "auto,messages"]].concat());
    for row in &rows {
        is_plausible(row);
        assert_eq!(row["checks"], 8);
    }
    assert_eq!(names(&rows, "algorithm"), ["pipelined:32", "messages"]);
}

#[test]
fn a_mistake_is_found_and_ends_with_status_1() {
    for (arguments, part) in [
        (&["is", "--class", "S", "-n", "1"][..], "keys"),
        (&["is", "--class", "S", "-n", "3"], "key"),
        (&["asp", "--vertices", "50", "-n", "1"], "from vertex 49 are not those of the serial run"),
        (&["asp", "--vertices", "50", "-n", "3"], "from vertex 49 are not those of the serial run"),
        (&["asp", "--vertices", "50", "-n", "3", "--check", "sample"], "from vertex 49 to 49 is 1 long"),
    ] {
        let arguments = [arguments, &["--fault"]].concat();
        let output = app(&arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
        assert!(error.contains("verification failed in 1 of 1 runs"), "{arguments:?}: {error}");
        assert_eq!(rows_of(&output)[0]["verified"], false);
    }
}

#[test]
fn mistakes_are_one_line_and_status_2() {
    for (arguments, part) in [
        (&["app"][..], "subcommand"),
        (&["app", "si"], "unrecognized subcommand 'si'"),
        (&["app", "is", "--class", "X"], "S, W, A, B, C"),
        (&["app", "is", "-n", "0"], "from 1 to 1024"),
        (&["app", "is", "-n", "two"], "from 1 to 1024"),
        (&["app", "is", "--mechanism", "smh"], "did you mean 'shm'"),
        (&["app", "is", "--algorithm", "pairwise,knomial"], "knomial:4 does not do alltoall"),
        (&["app", "is", "--algorithm", "pairwize"], "there is no algorithm 'pairwize'"),
        (&["app", "is", "--vertices", "5"], "--vertices"),
        (&["app", "is", "--repetitions", "0"], "from 1"),
        (&["app", "is", "--pin", "0", "-n", "2"], "one for each"),
        (&["app", "asp", "--vertices", "0"], "from 1 to 65536"),
        (&["app", "asp", "--vertices", "10000", "--check", "serial"], "--check sample"),
        (&["app", "asp", "--algorithm", "bruck"], "bruck does not do bcast"),
        (&["app", "asp", "--class", "S"], "--class"),
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
fn an_algorithm_that_needs_single_copy_is_refused_with_shm_alone() {
    let output = app(&["is", "--class", "S", "--mechanism", "shm", "--algorithm", "pairwise"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("shm by pairwise is left out") && error.contains("messages"), "{error}");
    assert!(error.contains("no algorithm of those that were named can do it"), "{error}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_table_is_for_people() {
    let output = lmt(&["app", "is", "--class", "S", "--mechanism", "shm,auto", "--repetitions", "2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("class S: 65536 keys below 2048, 10 iterations"), "{table}");
    assert!(table.contains("than shm by auto"), "{table}");
    assert_eq!(table.lines().filter(|line| line.ends_with("50, all right")).count(), 2, "{table}");
}

/// The others end, and the command says who has died.
#[test]
fn a_killed_rank_ends_all() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .args(["app", "is", "--class", "W", "-n", "3", "--repetitions", "10000"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut ranks = children(child.id());
    while ranks.len() < 3 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
        ranks = children(child.id());
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(ranks.len(), 3);
    let killed = Command::new("kill").args(["-KILL", &ranks[1].to_string()]).status().unwrap();
    assert!(killed.success());
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it goes on without rank 1");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("rank 1 ended unexpectedly: signal: 9"), "{error}");
}
