//! `make test`: every stage runs, and what failed is listed at the end.

use std::path::Path;
use std::process::Command;

/// A stage that holds and does nothing: a file of which no rule says how it is made. Not
/// `tools`, which installs what is missing.
const HARMLESS: &str = "LICENSE-MIT";

/// Runs it with these stages: whether it succeeded, and all that it said.
fn make_test(stages: &str) -> (bool, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = std::env::temp_dir().join(format!("lmt-test-make-{}-{}", std::process::id(), stages.len()));
    let mut command = Command::new("make");
    // No flags of a make that runs this.
    command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(root);
    command.env("CARGO_TARGET_DIR", &folder).args(["test", "--old-file=tools", &format!("STAGES={stages}")]);
    let output = command.output().expect("make is there");
    let _ = std::fs::remove_dir_all(folder);
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), said.concat())
}

#[test]
fn all_stages_run_and_failures_are_listed_at_the_end() {
    let (success, said) = make_test(&format!("no-such-stage {HARMLESS} nor-this-one"));
    assert!(!success, "{said}");
    for stage in ["no-such-stage", HARMLESS, "nor-this-one"] {
        assert!(said.contains(&format!("make test: {stage}\n")), "{said}");
    }
    assert!(said.contains("make test: failed: no-such-stage nor-this-one\n"), "{said}");
    assert!(!said.contains("is in order"), "{said}");
}

#[test]
fn stages_that_hold_are_in_order() {
    let (success, said) = make_test(HARMLESS);
    assert!(success && said.contains("is in order") && !said.contains("failed"), "{said}");
}

/// The lines by which tests and compilers tell what failed.
#[test]
fn what_failed_in_a_stage_is_named() {
    let folder = std::env::temp_dir().join(format!("lmt-test-failures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = "        FAIL [   0.5s] (1/2) lmt::denied seccomp::one\n        PASS [   0.1s] (2/2) lmt other\n\
               test both::two ... FAILED\ntest fine ... ok\nerror: unused variable\n        \
               FAIL [   0.5s] (1/2) lmt::denied seccomp::one\n     TIMEOUT [ 180.0s] lmt::death three\n";
    std::fs::write(folder.join("test-tests.log"), log).expect("a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/failures");
    let output = Command::new(script).arg(&folder).arg("tests").output().expect("bash is there");
    std::fs::remove_dir_all(&folder).expect("it is there");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let listed: Vec<&str> = said.lines().skip(2).collect();
    assert_eq!(
        listed,
        [
            "  test lmt::denied seccomp::one",
            "  test both::two",
            "  error: unused variable",
            "  test lmt::death three"
        ]
    );
}
