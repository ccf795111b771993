//! The examples, run as a user runs them.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// The example's program; cargo builds it with the tests, or is asked to.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    // target/PROFILE/deps/test-HASH
    let profile = test.ancestors().nth(2).expect("the folder of the profile");
    let path = profile.join("examples").join(name);
    if !path.exists() {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--package", "lmt", "--example", name]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo runs").success(), "the example {name} must build");
    }
    path
}

/// What the example prints, sorted by lines.
fn run(name: &str) -> Vec<String> {
    let mut command = Command::new(program(name));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the example starts");
    let begun = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if begun.elapsed() > LIMIT {
            // Its ranks end with it.
            child.kill().expect("it is our child");
            panic!("{name} has not ended after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{errors}", output.status);
    let text = String::from_utf8(output.stdout).expect("it prints text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn two_processes() {
    assert_eq!(run("two_processes"), ["67108864 bytes arrived"]);
}

#[test]
fn device_layer() {
    let line = |rank| format!("rank {rank}: 9 messages of 22993386 bytes arrived, one was taken back");
    assert_eq!(run("device_layer"), [line(0), line(1)]);
}
