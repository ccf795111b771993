use std::ffi::OsString;

use super::super::fixture::{Files, named};
use super::*;

const COMPLETE: &str =
    "[calibration]\nmachine = \"here-2\"\ndate = \"2026-01-02T03:04:05Z\"\ncomplete = true\n";

fn sources(folder: &Path, lmt_config: Option<PathBuf>) -> Sources {
    let mut sources = lmt::configuration::sources();
    sources.folder = Some(folder.join("proc"));
    sources.environment =
        lmt_config.map(|path| ("LMT_CONFIG".to_owned(), OsString::from(path))).into_iter().collect();
    sources.fingerprint = "here-2".to_owned();
    sources
}

/// The state, the meaning and the fix of one finding.
fn said(sources: &Sources, name: &str) -> (State, String, String) {
    let findings = of(sources);
    let found = named(&findings, name);
    (found.state, found.meaning.clone(), found.fix.clone().unwrap_or_default())
}

#[test]
fn without_a_calibration_tuning_is_advised() {
    let files = Files::new("no-calibration");
    let sources = sources(files.root(), None);
    let (state, _, fix) = said(&sources, "calibration");
    assert_eq!((state, fix.as_str()), (State::Limited, "lmt tune --quick"));
    let (state, meaning, _) = said(&sources, "configuration");
    assert_eq!((state, meaning.as_str()), (State::Good, "no file of the user's is read"));
}

#[test]
fn what_is_read_is_named() {
    let files = Files::new("read")
        .with("proc/lmt.toml", "[endpoint]\neager_max_bytes = 4096\n")
        .with("proc/calibration/here-2.toml", COMPLETE);
    let sources = sources(files.root(), None);
    let (state, meaning, _) = said(&sources, "configuration");
    assert!(state == State::Good && meaning.ends_with("proc/lmt.toml"), "{meaning}");
    let (state, meaning, _) = said(&sources, "calibration");
    assert!(state == State::Good && meaning.contains("here-2.toml, of 2026-01-02"), "{meaning}");
}

#[test]
fn what_is_broken_is_blocked_since_no_endpoint_starts() {
    let files = Files::new("broken")
        .with("proc/lmt.toml", "[endpoint]\neager_max_bytes = \"much\"\n")
        .with("proc/calibration/here-2.toml", "[calibration]\nmachine = 7\n");
    let sources = sources(files.root(), None);
    let (state, _, fix) = said(&sources, "configuration");
    assert!(state == State::Blocked && fix.contains("lmt config --check"), "{fix}");
    let (state, _, fix) = said(&sources, "calibration");
    assert!(state == State::Blocked && fix.starts_with("lmt tune"), "{fix}");
    let files = Files::new("none").with("proc/calibration/here-2.toml", "[endpoint]\n");
    let (state, meaning, _) = said(&self::sources(files.root(), None), "calibration");
    assert!(state == State::Blocked && meaning.contains("no table [calibration]"), "{meaning}");
}

#[test]
fn a_calibration_of_another_machine_or_a_part_of_one_is_limited() {
    let files = Files::new("other")
        .with("a.toml", &COMPLETE.replace("here-2", "there-4"))
        .with("proc/calibration/here-2.toml", &COMPLETE.replace("true", "false"));
    let other = sources(files.root(), Some(files.root().join("a.toml")));
    let (state, meaning, _) = said(&other, "calibration");
    assert!(state == State::Limited && meaning.contains("another machine (there-4"), "{meaning}");
    assert!(said(&other, "configuration").1.ends_with("a.toml"));
    let (state, meaning, _) = said(&sources(files.root(), None), "calibration");
    assert!(state == State::Limited && meaning.contains("only a part"), "{meaning}");
    let absent = sources(files.root(), Some(files.root().join("absent.toml")));
    assert_eq!(said(&absent, "configuration").0, State::Blocked, "what is named must be there");
}
