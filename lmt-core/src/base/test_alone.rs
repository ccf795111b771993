//! Tests that need a process of their own: one that ends by a signal, and one
//! that forks and then does what takes locks (a panic does), which the
//! thread of another test may hold at the fork, and so for ever in the child.

use std::process::{Command, Output};

/// Set in the process that runs one test alone.
const ALONE: &str = "LMT_TEST_ALONE";

/// Runs the test `name`, given with its modules, in a process of its own and
/// returns how that ended; `None` within that process, which runs no other
/// test: the harness has one more thread at most, which waits for its end.
pub(crate) fn run(name: &str) -> Option<Output> {
    if std::env::var_os(ALONE).is_some() {
        return None;
    }
    let mut again = Command::new(std::env::current_exe().expect("this binary"));
    again.args(["--exact", name, "--test-threads=1"]).env(ALONE, "1");
    Some(again.output().expect("it can be started"))
}

/// As [`run`], for a test that passes there as it would here: true within its
/// process.
pub(crate) fn passes(name: &str) -> bool {
    let Some(ended) = run(name) else { return true };
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{ended:?}");
    false
}
