//! Whether a process was started by a test.

/// Variable with the name of the test and the number of its run that a rank
/// belongs to.
pub(crate) const ENV_TEST: &str = "LMT_TEST";

/// Whether this process belongs to the group of a test.
pub(crate) fn is_started_by_a_test() -> bool {
    lmt::launch::hook();
    std::env::var_os(ENV_TEST).is_some()
}
