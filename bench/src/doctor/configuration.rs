//! The configuration: which files are read, and whether there is a calibration
//! of this machine.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lmt::diagnostic::{Finding, State};
use lmt_selector::config::{ConfigFailure, Known, Parsed, Provenance, Sources, check_file, parse_file};
use lmt_selector::rules::Authority;

pub(super) fn findings() -> Vec<Finding> {
    of(&crate::config::sources())
}

fn of(sources: &Sources) -> Vec<Finding> {
    let read: Vec<(PathBuf, Result<Parsed, ConfigFailure>)> = user_files(sources)
        .into_iter()
        .map(|path| {
            let parsed = check_file(&path, &sources.known);
            (path, parsed)
        })
        .collect();
    let named = read.iter().find_map(|(path, parsed)| {
        let provenance = parsed.as_ref().ok()?.calibration.as_ref()?;
        Some((path.as_path(), provenance))
    });
    let calibration = match named {
        Some((path, provenance)) => of_calibration(path, provenance, &sources.fingerprint),
        None => of_this_machine(sources),
    };
    vec![of_files(&read), calibration]
}

/// The files that an endpoint reads beside a calibration: those that LMT_CONFIG
/// names, or else the user's own if it is there and may be read.
fn user_files(sources: &Sources) -> Vec<PathBuf> {
    let named = sources.environment.iter().find(|(name, value)| name == "LMT_CONFIG" && !value.is_empty());
    if let Some((_, value)) = named {
        return std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect();
    }
    let own = sources.folder.as_ref().map(|folder| folder.join("lmt.toml"));
    own.into_iter().filter(|path| is_there(path)).collect()
}

/// Whether an endpoint takes notice of a file that need not be there.
fn is_there(path: &Path) -> bool {
    let absent = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied];
    !std::fs::File::open(path).is_err_and(|error| absent.contains(&error.kind()))
}

fn of_files(read: &[(PathBuf, Result<Parsed, ConfigFailure>)]) -> Finding {
    let name = "configuration";
    let wrong = read.iter().find_map(|(path, parsed)| Some((path, parsed.as_ref().err()?)));
    if let Some((path, failure)) = wrong {
        return Finding::new(name, State::Blocked, failure.to_string())
            .fixed_by(format!("correct it; lmt config --check {} shows all that is wrong", path.display()));
    }
    let paths: Vec<String> = read.iter().map(|(path, _)| path.display().to_string()).collect();
    let meaning = match paths.is_empty() {
        true => "no file of the user's is read".to_owned(),
        false => format!("read: {}", paths.join(", ")),
    };
    Finding::new(name, State::Good, meaning)
}

/// The one that lies where endpoints look for it.
fn of_this_machine(sources: &Sources) -> Finding {
    let path = sources.folder.as_ref().map(|folder| calibration_file(folder, &sources.fingerprint));
    match path.filter(|path| is_there(path)) {
        None => Finding::new(
            "calibration",
            State::Limited,
            "there is none of this machine, and the built-in rules choose between mechanisms",
        )
        .fixed_by("lmt tune --quick"),
        Some(path) => match read_calibration(&path, &sources.known) {
            Ok(provenance) => of_calibration(&path, &provenance, &sources.fingerprint),
            Err(why) => Finding::new("calibration", State::Blocked, why)
                .fixed_by("lmt tune --quick, which keeps it under another name"),
        },
    }
}

fn calibration_file(folder: &Path, fingerprint: &str) -> PathBuf {
    folder.join("calibration").join(format!("{fingerprint}.toml"))
}

fn read_calibration(path: &Path, known: &Known) -> Result<Provenance, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{} cannot be read: {why}", path.display());
    if !path.is_file() {
        return Err(failed(&"it is no regular file"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let parsed = parse_file(path, &text, Authority::Calibration, known)
        .map_err(|problems| problems.first().map(ToString::to_string).unwrap_or_default())?;
    parsed.calibration.ok_or_else(|| failed(&"it has no table [calibration]"))
}

fn of_calibration(path: &Path, provenance: &Provenance, fingerprint: &str) -> Finding {
    let path = path.display();
    let date = provenance.told.iter().find(|(name, _)| *name == "date");
    let date = date.map_or_else(String::new, |(_, date)| format!(", of {date}"));
    let found = |state, what: &str| Finding::new("calibration", state, format!("{path}{date}{what}"));
    match &provenance.machine {
        Some(machine) if machine != fingerprint => found(
            State::Limited,
            &format!(", made on another machine ({machine}, and this is {fingerprint})"),
        )
        .fixed_by("lmt tune --quick, and no LMT_CONFIG that names the other"),
        _ if !provenance.complete => found(State::Limited, ", which was ended early and holds only a part")
            .fixed_by("lmt tune, with more time"),
        _ => found(State::Good, ""),
    }
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
