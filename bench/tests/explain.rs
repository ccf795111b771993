//! `lmt explain` and `LMT_STATS`, as users start them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Two packages, each with two L2 of 4 MiB that two cores share: the Xeon E5345
/// of the ICPP 2009 paper.
const E5345: &str = "package:2 l2:2(size=4194304) core:2 pu:1";

/// An empty folder in place of the user's own.
fn nowhere() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain-nowhere");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
    command.args(arguments);
    for (variable, _) in std::env::vars_os() {
        if ["LMT_", "HWLOC_"].iter().any(|prefix| variable.to_string_lossy().starts_with(prefix)) {
            command.env_remove(variable);
        }
    }
    command.env_remove("HOME").env("XDG_CONFIG_HOME", nowhere());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn succeed(output: &Output) -> &str {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// On the paper's machine, with all mechanisms taken to work that are named. A look
/// at how fast single copies are would be one at this machine.
fn on_e5345(arguments: &[&str]) -> Output {
    let mut command = command(arguments);
    command.env("HWLOC_SYNTHETIC", E5345).env("LMT_SINGLE_COPY", "slow").output().unwrap()
}

/// A file of configuration of a test's own.
fn config(name: &str, content: &str) -> String {
    let path = nowhere().join(format!("{}.toml", name.replace(':', "-")));
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(succeed(output)).unwrap()
}

#[test]
fn the_decision_its_rule_and_its_place_in_a_file() {
    let file = config(
        "decision",
        "[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n\n[[rule]]\nabove = \"64 KiB\"\nup_to = \"DMAmin\"\n\
         place = \"shared-l2\"\ntake = [\"shm\", \"cma\"]\n\n[[rule]]\nabove = \"DMAmin\"\ntake = [\"knem\"]\n",
    );
    let ask = |to: &str| {
        let answer = json(&on_e5345(&[
            "explain",
            "--bytes",
            "64KiB,1MiB,2MiB",
            "--from",
            "0",
            "--to",
            to,
            "--config",
            &file,
            "--assume",
            "cma,shm,knem",
            "--format",
            "json",
        ]));
        assert_eq!(answer["is_this_machine"], false);
        answer["explanations"].as_array().unwrap().clone()
    };
    let near = ask("1");
    assert_eq!(near[0]["taken"], "eager");
    assert_eq!(near[0]["source"]["file"]["line"], 1);
    assert_eq!(near[1]["taken"]["by"]["mechanism"], "shm");
    assert_eq!(near[1]["source"]["file"]["line"], 5);
    assert_eq!(near[1]["source"]["file"]["path"], file.as_str());
    assert_eq!(near[1]["place"], "shared L2");
    assert_eq!(near[2]["taken"]["by"]["mechanism"], "knem-ioctl");
    let notes = near[2]["notes"].as_array().unwrap();
    assert!(notes.contains(&"DMAmin 1 MiB = 4 MiB of L2 / (2 x 2 cores that share it)".into()), "{notes:?}");
    let far = ask("4");
    assert_eq!(far[1]["taken"]["by"]["mechanism"], "ring", "the rule of the shared L2 does not hold");
    assert_eq!(far[1]["place"], "nothing shared but the machine");
}

#[test]
fn hints_segments_readers_and_processes_are_asked_for() {
    let ask = |condition: &str, way: &str, more: &[&str]| {
        let exception = match condition {
            "" => String::new(),
            condition => format!("[[rule]]\nabove = \"4 KiB\"\n{condition}\ntake = [\"{way}\"]\n"),
        };
        let general = "[[rule]]\nabove = \"4 KiB\"\ntake = [\"cma\"]\nmax_readers = 2\n";
        let file = config(&format!("condition-{way}"), &format!("{exception}{general}"));
        let mut arguments = vec!["explain", "--bytes", "1MiB", "--from", "0", "--to", "1", "--config", &file];
        arguments.extend(["--assume", "cma,shm,knem-user,writev", "--format", "json"]);
        arguments.extend(more);
        let taken = json(&on_e5345(&arguments))["explanations"][0]["taken"]["by"].clone();
        format!("{}:{}", taken["mechanism"].as_str().unwrap(), taken["model"].as_str().unwrap())
    };
    assert_eq!(ask("", "", &[]), "cma:get");
    assert_eq!(ask("", "", &["--sender", "warm"]), "cma:put");
    assert_eq!(ask("", "", &["--sender", "cold"]), "cma:get");
    assert_eq!(ask("", "", &["--readers", "2"]), "cma:put");
    for (condition, way, option) in [
        ("segments = \"many\"", "shm:cooperative", ["--segments", "many"]),
        ("reuse = \"again\"", "knem-user:get", ["--reuse", "again"]),
        ("sender = \"cold\"", "knem-user:put", ["--sender", "cold"]),
        ("min_processes = 3", "writev:cooperative", ["--processes", "3"]),
    ] {
        assert_eq!(ask(condition, way, &[]), "cma:get");
        assert_eq!(ask(condition, way, &option), way);
    }
}

#[test]
fn a_table_has_a_line_for_each_power_of_two() {
    let output = on_e5345(&["explain", "--table", "--from", "0", "--to", "1", "--assume", "cma"]);
    let out = succeed(&output);
    assert!(out.contains("it is not this machine"), "{out}");
    let rows: Vec<&str> =
        out.lines().skip_while(|line| !line.trim_start().starts_with("bytes")).skip(1).collect();
    assert_eq!(rows.len(), 25, "{out}");
    let words = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(rows[0])[..3], ["1", "B", "eager"]);
    assert_eq!(words(rows[24])[..3], ["16", "MiB", "ring:stream"]);
    assert!(rows[24].contains("default.toml:"), "{out}");
}

#[test]
fn this_machine_is_tried_and_the_environment_is_heard() {
    let output = command(&["explain", "--bytes", "1MiB"]).env("LMT_MECHANISM", "shm").output().unwrap();
    let out = succeed(&output);
    assert!(out.contains("1048576 bytes"), "{out}");
    assert!(out.contains("  from  LMT_MECHANISM in the environment\n"), "{out}");
    assert!(out.contains("found out with a second process\n"), "{out}");
    assert!(out.contains("not   cma"), "{out}");
}

#[test]
fn mistakes_say_what_would_be_right() {
    for (arguments, status, part) in [
        (&["explain"][..], 2, "--bytes"),
        (&["explain", "--bytes", "1", "--from", "99"], 2, "names CPU 99, which does not exist"),
        (&["explain", "--bytes", "1", "--to", "a"], 2, "no list of CPUs"),
        (&["explain", "--bytes", "1", "--assume", "smh"], 2, "did you mean 'shm'"),
        (&["explain", "--bytes", "1", "--config", "/no/such.toml"], 1, "/no/such.toml"),
    ] {
        let output = on_e5345(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
    let output = command(&["explain", "--bytes", "1"]).env("HWLOC_SYNTHETIC", "rubbish").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is not a synthetic machine"), "{}", text(&output.stderr));
}

/// The ranks of a benchmark tell what went by which path.
#[test]
fn statistics_prove_the_path() {
    let measure = |mechanism: &str| {
        let sizes = ["--sizes", "1MiB", "--iterations", "3", "--repetitions", "1", "--pin", "none"];
        let mut command = command(&["bench", "pingpong", "--mechanism", mechanism]);
        let output = command.args(sizes).env("LMT_STATS", "1").output().unwrap();
        succeed(&output);
        let errors = text(&output.stderr).to_owned();
        let rows = errors.lines().filter_map(|line| line.strip_prefix("lmt stats "));
        rows.filter_map(|row| row.split_whitespace().nth(1).map(str::to_owned)).collect::<Vec<_>>()
    };
    let paths = measure("shm");
    assert_eq!(paths.iter().filter(|path| *path == "shm").count(), 2, "both ranks: {paths:?}");
    assert_eq!(paths.iter().filter(|path| *path == "eager").count(), 2, "and nobody else: {paths:?}");
    assert!(!paths.iter().any(|path| path == "writev"), "{paths:?}");
    assert!(measure("writev").iter().any(|path| path == "writev"));
}

/// The example of docs/selection.md does what the page says.
#[test]
fn the_worked_example_is_true() {
    let page = include_str!("../../docs/selection.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let file = config("example", example);
    let ask = |bytes: &str, to: &str, readers: &str| {
        let answer = json(&on_e5345(&[
            "explain",
            "--bytes",
            bytes,
            "--from",
            "0",
            "--to",
            to,
            "--readers",
            readers,
            "--config",
            &file,
            "--assume",
            "cma,shm,ioat-knem",
            "--format",
            "json",
        ]));
        let explanation = &answer["explanations"][0];
        let way = match explanation["taken"].as_str() {
            Some(way) => way.to_owned(),
            None => {
                let by = &explanation["taken"]["by"];
                format!("{}:{}", by["mechanism"].as_str().unwrap(), by["model"].as_str().unwrap())
            }
        };
        (way, explanation["source"]["file"]["line"].as_u64())
    };
    for (bytes, to, readers, way, line) in [
        ("8KiB", "1", "0", "eager", Some(1)),
        ("8KiB", "4", "0", "eager", Some(1)),
        ("1MiB", "1", "0", "shm:cooperative", Some(5)),
        ("1MiB", "4", "0", "ring:stream", None),
        ("4MiB", "1", "0", "ioat-knem:get", Some(11)),
        ("4MiB", "4", "0", "ioat-knem:get", Some(11)),
        ("4MiB", "4", "4", "ioat-knem:put", Some(11)),
    ] {
        assert_eq!(ask(bytes, to, readers), (way.to_owned(), line), "{bytes} to CPU {to}");
    }
}

#[test]
fn a_file_that_is_given_takes_the_place_of_a_broken_one() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain-broken");
    std::fs::create_dir_all(folder.join("lmt")).unwrap();
    std::fs::write(folder.join("lmt").join("lmt.toml"), "[endpoint]\neager_max_bytes = \"much\"\n").unwrap();
    let good = config("good", "[[rule]]\nup_to = \"2 KiB\"\ntake = \"eager\"\n");
    let explain = |arguments: &[&str]| {
        command(&[&["explain", "--bytes", "1KiB"], arguments].concat())
            .env("XDG_CONFIG_HOME", &folder)
            .output()
            .unwrap()
    };
    let broken = explain(&[]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken.stderr).contains("lmt.toml"), "{}", text(&broken.stderr));
    let with_file = explain(&["--config", &good]);
    let said = succeed(&with_file);
    assert!(said.contains("found out with a second process") && said.contains("good.toml"), "{said}");
}

#[test]
fn a_collective_operation_by_a_rule_by_the_model_and_by_what_is_built_in() {
    let rule = "[[collective]]\noperation = \"allgather\"\nalgorithm = \"ring-neighbor:2\"\n\n\
                [[collective]]\noperation = \"bcast\"\nabove = \"512 KiB\"\nalgorithm = \"knomial:2\"\n";
    let file = config("collective", rule);
    let explain = |arguments: &[&str]| {
        let fixed = ["explain", "--config", &file, "-n", "4", "--format", "json"];
        command(&[&fixed[..], arguments].concat()).output().unwrap()
    };
    let told = json(&explain(&["--collective", "bcast", "--bytes", "1KiB,512KiB,513KiB"]));
    let algorithms: Vec<&str> =
        told["calls"].as_array().unwrap().iter().map(|call| call["algorithm"].as_str().unwrap()).collect();
    assert_eq!(algorithms, ["slots", "pipelined:64", "knomial:2"], "{told:#}");
    assert_eq!(told["calls"][2]["reason"], format!("bcast by knomial:2 at {file}:5"));
    let told = json(&explain(&["--collective", "allgather", "--bytes", "8MiB"]));
    assert_eq!(told["calls"][0]["algorithm"], "ring-source-read");
    let passed_over = told["calls"][0]["passed_over"][0].as_str().unwrap();
    assert!(passed_over.contains(&format!("{file}:1 is passed over: its number")), "{passed_over}");
    let told = json(&explain(&["--collective", "bcast", "--bytes", "8MiB", "--denied"]));
    assert_eq!(told["calls"][0]["algorithm"], "messages");
    assert_eq!(told["calls"][0]["copies"].as_array().map(Vec::len), Some(0));

    let mut by_variable = command(&["explain", "--collective", "bcast", "--bytes", "1MiB", "-n", "4"]);
    let output = by_variable.env("LMT_COLLECTIVES", "bcast=direct-read").output().unwrap();
    let text = succeed(&output);
    assert!(text.contains("by    bcast by direct-read at LMT_COLLECTIVES in the environment"), "{text}");
    let table = command(&["explain", "--collective", "bcast", "--table", "-n", "4"]).output().unwrap();
    assert!(succeed(&table).lines().count() > 24);
}

#[test]
fn of_what_ranks_copy_the_mechanism_is_told_by_the_rules_for_their_number() {
    let rule = "[[rule]]\nmin_processes = 4\ntake = [\"ioat-software\", \"knem-user\"]\n";
    let file = config("copies", rule);
    let told = |ranks: &str| {
        let what = ["explain", "--config", &file, "--format", "json", "--collective", "bcast"];
        json(&command(&[&what[..], &["--bytes", "1KiB,8MiB", "-n", ranks]].concat()).output().unwrap())
    };
    let (few, many) = (told("3"), told("4"));
    assert_eq!(few["calls"][0]["copies"].as_array().map(Vec::len), Some(0), "{few:#}");
    let [few, many] = [&few, &many].map(|told| &told["calls"][1]["copies"][0]);
    assert_eq!(few["what"], "gets of 8388608 bytes");
    if many["mechanism"].is_null() {
        eprintln!("skipped: no mechanism reaches another process's memory here");
        return;
    }
    assert!(few["mechanism"] != "ioat-software" && few["source"]["default"].is_object(), "{few:#}");
    assert_eq!((&many["mechanism"], &many["source"]["file"]["line"]), (&"ioat-software".into(), &1.into()));
}

#[test]
fn a_calibrations_figures_have_the_model_speak() {
    let figures = "[calibration]\ncomplete = true\n[contention]\nalpha_us = 1.4\nbyte_ns = 0.3\nlock_us = 0.25\n\
                   line_us = 0.2\ncopy_ns = 0.1\ncombine_ns = 0.1\npage_bytes = 4096\ngamma = [1.0, 2.0]\n";
    let file = config("figures", figures);
    let output =
        command(&["explain", "--collective", "scatter", "--bytes", "1MiB", "-n", "8", "--config", &file])
            .output();
    let output = output.unwrap();
    let text = succeed(&output);
    assert!(text.contains("by the model with this machine's figures, "), "{text}");
    assert!(text.lines().filter(|line| line.starts_with("  model ")).count() > 2, "{text}");
}

#[test]
fn names_of_collective_operations_that_mean_nothing_are_refused() {
    let explain = |variable: &str| {
        let mut command = command(&["explain", "--collective", "bcast", "--bytes", "1MiB", "-n", "4"]);
        let output = command.env("LMT_COLLECTIVES", variable).output().unwrap();
        assert!(!output.status.success());
        text(&output.stderr).to_owned()
    };
    let said = explain("bcast=pairwise");
    assert!(
        said.contains("the variable LMT_COLLECTIVES has `bcast=pairwise`: pairwise does not do bcast"),
        "{said}"
    );
    assert!(explain("bcst=messages").contains("there is no operation bcst"));
    let output =
        command(&["explain", "--collective", "bcst", "--bytes", "1MiB", "-n", "4"]).output().unwrap();
    assert!(text(&output.stderr).contains("'bcst' is no collective operation"));
    let output = command(&["explain", "--collective", "bcast", "--bytes", "1MiB"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "the ranks are missing");
}
