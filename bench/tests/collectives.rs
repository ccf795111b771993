//! `lmt bench` of collective operations and of concurrent accesses, as users start it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lmt_conformance::require;

/// However loaded the machine is, this is longer than any of these takes.
const PATIENCE: Duration = Duration::from_secs(150);

/// Runs the command with few short repetitions.
fn lmt(arguments: &[&str]) -> Output {
    let folder = std::env::temp_dir().join(format!("lmt-test-collectives-{}", std::process::id()));
    let name = arguments.join("-").replace('/', "-");
    std::fs::create_dir_all(&folder).unwrap();
    let (out, err) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
    let mut child = Command::new(env!("CARGO_BIN_EXE_lmt"))
        .arg("bench")
        .args(arguments)
        .args(["--repetitions", "2", "--iterations", "3"])
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_dir_all(&folder);
            panic!("{arguments:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let output =
        Output { status, stdout: std::fs::read(&out).unwrap(), stderr: std::fs::read(&err).unwrap() };
    let _ = (std::fs::remove_file(out), std::fs::remove_file(err));
    // Another test may have its files there still.
    let _ = std::fs::remove_dir(folder);
    output
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_operation_runs_by_every_algorithm_and_is_checked() {
    for operation in [
        "barrier",
        "bcast",
        "scatter",
        "gather",
        "allgather",
        "alltoall",
        "reduce",
        "allreduce",
        "reduce_scatter",
        "scan",
        "exscan",
    ] {
        let mut arguments = vec![operation, "-n", "3", "--algorithm", "all", "--verify", "--format", "json"];
        if operation != "barrier" {
            arguments.extend(["--sizes", "0,64,64KiB"]);
        }
        let found = json(&lmt(&arguments));
        let rows = found["rows"].as_array().unwrap();
        assert_eq!(rows.len(), if operation == "barrier" { 1 } else { 3 }, "{operation}");
        for row in rows {
            let contenders = row["contenders"].as_array().unwrap();
            assert_eq!(contenders[0]["name"], "auto", "{operation}");
            assert!(contenders.len() > 1, "{operation}: {row}");
            assert!(contenders.iter().all(|one| one["usec"]["median"].as_f64().unwrap() > 0.0), "{row}");
            assert_eq!(row["verified_calls"].as_u64(), Some(contenders.len() as u64), "{row}");
            assert!(row["auto"]["algorithm"].is_string(), "{row}");
        }
    }
}

#[test]
fn buffers_are_in_use_rotated_and_shared() {
    for option in ["--touch", "--unmodified", "--off-cache", "--buffers=shared"] {
        let output = lmt(&["allgather", "--sizes", "40KiB", option, "--verify", "--format", "csv"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{option}: {}", String::from_utf8_lossy(&output.stderr));
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("allgather,2,"), "{text}");
        let mode = match option {
            "--unmodified" => ",false,false,",
            "--off-cache" => ",true,true,",
            _ => ",true,false,",
        };
        assert!(line.contains(mode), "{option}: {text}");
    }
}

#[test]
fn accesses_at_once_are_measured_against_one_alone() {
    for (pattern, cases) in [("one-to-all", 7), ("all-to-one", 7), ("all-to-all", 6)] {
        let found = json(&lmt(&[pattern, "-n", "3", "--sizes", "4KiB,64KiB", "--format", "json"]));
        let rows = found["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{pattern}");
        for row in rows {
            let contenders = row["contenders"].as_array().unwrap();
            assert_eq!(contenders.len(), cases, "{pattern}: {row}");
            assert_eq!(row["reference"], contenders[0]["name"]);
            assert!(contenders.iter().all(|one| one["usec"]["median"].as_f64().unwrap() > 0.0), "{row}");
        }
    }
}

#[test]
fn an_algorithm_that_does_not_suit_is_one_sentence() {
    for (arguments, status, part) in [
        (&["bcast", "--algorithm", "kmonial"][..], 2, "there is no algorithm 'kmonial'"),
        (&["bcast", "--algorithm", "pairwise"], 2, "pairwise does not do bcast"),
        (&["bcast", "--algorithm", "slots", "--sizes", "2MiB"], 1, "slots cannot do this"),
        (&["pingpong", "--algorithm", "slots"], 2, "--algorithm is for collective operations"),
        (&["bcast", "--mechanism", "shm"], 2, "has no --mechanism"),
        (&["bcast", "--fetch"], 2, "--peers"),
    ] {
        let output = lmt(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(error.contains(part) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
}

#[test]
fn what_suits_some_sizes_is_left_out_at_the_others() {
    let found =
        json(&lmt(&["bcast", "--algorithm", "slots,messages", "--sizes", "8,2MiB", "--format", "json"]));
    let names = |row: usize| -> Vec<String> {
        let contenders = found["rows"][row]["contenders"].as_array().unwrap();
        contenders.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names(0), names(1)), (vec!["slots".into(), "messages".into()], vec!["messages".into()]));
}

#[test]
fn mpis_take_turns_with_ours() {
    let path = std::env::var("PATH").unwrap_or_default();
    let has = |folder: &&str| ["mpicc", "mpiexec"].iter().all(|name| Path::new(folder).join(name).is_file());
    if path.split(':').find(has).is_none() {
        require::skipped("mpi", "neither mpicc nor mpiexec is on the PATH");
        return;
    }
    let cache = std::env::temp_dir().join(format!("lmt-test-collectives-cache-{}", std::process::id()));
    for operation in ["alltoall", "bcast", "gather", "scatter", "allgather", "allreduce", "scan", "barrier"] {
        let mut arguments =
            vec![operation, "--peers", "--cache", cache.to_str().unwrap(), "--format", "json"];
        if operation != "barrier" {
            arguments.extend(["--sizes", "8,64KiB"]);
        }
        let found = json(&lmt(&arguments));
        let peers = found["peers"].as_array().unwrap().len();
        assert!(peers > 0);
        for row in found["rows"].as_array().unwrap() {
            let contenders = row["contenders"].as_array().unwrap();
            assert_eq!(contenders.len(), 1 + peers, "{operation}: {row}");
            assert!(contenders.iter().all(|one| one["usec"]["median"].as_f64().unwrap() > 0.0), "{row}");
            assert_eq!(contenders.iter().filter(|one| one["is_peer"] == true).count(), peers);
            assert!(contenders.iter().any(|one| one["name"] == row["reference"] && one["is_peer"] == true));
        }
    }
    let _ = std::fs::remove_dir_all(cache);
}
