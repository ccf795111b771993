//! Which tests may be skipped: `LMT_REQUIRE=shm,cma` makes the skip of a test
//! of these mechanisms a failure.

/// Variable with the names, separated by commas, of what must not be skipped.
pub const ENV_REQUIRE: &str = "LMT_REQUIRE";

/// Whether `list`, as in [`ENV_REQUIRE`], names `name`.
///
/// ```
/// assert!(lmt_conformance::require::is_required("shm, cma", "cma"));
/// assert!(!lmt_conformance::require::is_required("", "cma"));
/// ```
pub fn is_required(list: &str, name: &str) -> bool {
    list.split(',').any(|required| required.trim() == name)
}

/// Says on standard error that a test of `name` is skipped, and why.
///
/// # Panics
/// When `LMT_REQUIRE` names it.
pub fn skipped(name: &str, why: &str) {
    let list = std::env::var(ENV_REQUIRE).unwrap_or_default();
    skipped_under(&list, name, why);
}

/// As [`skipped`], with the list given.
///
/// # Panics
/// When `list` names it.
pub fn skipped_under(list: &str, name: &str, why: &str) {
    assert!(!is_required(list, name), "{name} is required ({ENV_REQUIRE}={list}) and does not work: {why}");
    eprintln!("SKIPPED: {name} does not work here: {why}");
}
