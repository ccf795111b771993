//! All sources made into one configuration.

use std::io;
use std::path::{Path, PathBuf};

use lmt_core::config::Config;
use lmt_core::config_key::Value;
use lmt_core::selection::Source;

use super::environment::{self, FromEnvironment};
use super::known::Known;
use super::parsed::Parsed;
use super::problem::{ConfigFailure, Problem};
use super::read::parse_file;
use super::sources::{Sources, named_files};
use super::table::SINGLE_COPY;
use crate::configuration::{Configuration, MechanismSetting};
use crate::rules::Authority;

/// A configuration longer than this is none: somebody has named a wrong file.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Reads everything and puts it together by authority: the environment, the
/// user's files, a calibration of this machine, the defaults.
///
/// # Errors
/// [`ConfigFailure`] with everything that is wrong with any of them.
pub fn load(sources: &Sources) -> Result<Configuration, ConfigFailure> {
    let remarks = environment::remarks(&sources.environment, &sources.known, &sources.other_variables);
    let mut loading = Loading { sources, problems: Vec::new(), remarks };
    let from_environment = environment::read(&sources.environment, &sources.known, &mut loading.problems);
    let mut files = loading.user_files();
    if !files.iter().any(|file| file.calibration.is_some()) {
        files.extend(loading.calibration_of_this_machine());
    }
    let default =
        parse_file(&sources.default_name, &sources.default_text, Authority::Default, &sources.known);
    files.extend(loading.noted(default));
    // Stable: the user's files stay in the order in which they were named.
    files.sort_by_key(|file| file.layer.authority);
    let Loading { problems, remarks, .. } = loading;
    ConfigFailure::of(problems)?;
    let mut configuration = Configuration { remarks, ..Configuration::default() };
    for file in files.iter().rev() {
        apply_file(&mut configuration, file, &sources.known);
    }
    let of_files = files.iter().flat_map(|file| &file.collective_problems);
    let problems: Vec<Problem> =
        from_environment.collective_problems.iter().chain(of_files).cloned().collect();
    configuration.collective_failure = ConfigFailure::of(problems).err();
    configuration.collectives = from_environment.collectives.clone();
    configuration.collectives.extend(files.iter().flat_map(|file| file.collectives.iter().cloned()));
    apply_environment(&mut configuration, from_environment);
    configuration.layers = files.into_iter().map(|file| file.layer).collect();
    Ok(configuration)
}

/// Reads and checks one file, as a user's.
///
/// # Errors
/// [`ConfigFailure`] with everything that is wrong with it.
pub fn check_file(path: &Path, known: &Known) -> Result<Parsed, ConfigFailure> {
    let parsed = match read_file(path) {
        Ok(text) => parse_file(path, &text, Authority::User, known),
        Err(error) => {
            let message = format!("the file cannot be read: {}", error.what);
            Err(vec![Problem::of_file(path, message, error.help)])
        }
    };
    parsed.map_err(ConfigFailure::new)
}

impl Configuration {
    /// See [`load`](super::load()).
    ///
    /// # Errors
    /// [`ConfigFailure`] with everything that is wrong.
    pub fn load(sources: &Sources) -> Result<Self, ConfigFailure> {
        load(sources)
    }
}

struct Loading<'s> {
    sources: &'s Sources,
    problems: Vec<Problem>,
    remarks: Vec<String>,
}

impl Loading<'_> {
    fn noted(&mut self, parsed: Result<Parsed, Vec<Problem>>) -> Option<Parsed> {
        match parsed {
            Ok(parsed) => Some(parsed),
            Err(problems) => {
                self.problems.extend(problems);
                None
            }
        }
    }

    fn parse(&mut self, path: &Path, text: &str, authority: Authority) -> Option<Parsed> {
        let parsed = parse_file(path, text, authority, &self.sources.known);
        let parsed = self.noted(parsed)?;
        if let Some(provenance) = &parsed.calibration {
            let path = path.display();
            match &provenance.machine {
                Some(machine) if *machine != self.sources.fingerprint => self.remarks.push(format!(
                    "the calibration {path} was made on another machine ({machine}, and this is {}); `lmt tune` makes one of this",
                    self.sources.fingerprint
                )),
                _ => {}
            }
            if !provenance.complete {
                self.remarks.push(format!(
                    "the calibration {path} was interrupted and holds only a part; `lmt tune` measures all"
                ));
            }
        }
        Some(parsed)
    }

    /// The files that LMT_CONFIG names, which must be there, or else the user's
    /// own if it is.
    fn user_files(&mut self) -> Vec<Parsed> {
        let Some(named) = environment::find(&self.sources.environment, "LMT_CONFIG") else {
            let own = self.sources.folder.as_ref().map(|folder| folder.join("lmt.toml"));
            return own.and_then(|path| self.optional(&path, Authority::User)).into_iter().collect();
        };
        let files: Vec<PathBuf> = named_files(named);
        files.iter().filter_map(|path| self.required(path)).collect()
    }

    fn calibration_of_this_machine(&mut self) -> Option<Parsed> {
        let folder = self.sources.folder.as_ref()?;
        let name = format!("{}.toml", self.sources.fingerprint);
        let path = folder.join("calibration").join(name);
        let before = self.problems.len();
        let parsed = self.optional(&path, Authority::Calibration);
        // Nobody has asked for it, so it stops nobody: one that an older lmt
        // wrote may have what this one does not know.
        let first = self.problems.drain(before..).next().map(|problem| problem.to_string());
        let reason = match (first, &parsed) {
            (Some(problem), _) => problem,
            (None, Some(parsed)) if parsed.calibration.is_none() => {
                format!("{} has no table [calibration]", path.display())
            }
            (None, _) => return parsed,
        };
        self.remarks.push(format!(
            "the calibration of this machine is left out: {reason}; `lmt tune` writes it anew"
        ));
        None
    }

    fn required(&mut self, path: &Path) -> Option<Parsed> {
        match read_file(path) {
            Ok(text) => self.parse(path, &text, Authority::User),
            Err(error) => {
                let message = format!("the file that LMT_CONFIG names cannot be read: {}", error.what);
                self.problems.push(Problem::of_file(path, message, error.help));
                None
            }
        }
    }

    /// A file that is used if it is there. Where the user may not look (another
    /// user's home, after a change of uid) nothing of theirs can be.
    fn optional(&mut self, path: &Path, authority: Authority) -> Option<Parsed> {
        match read_file(path) {
            Ok(text) => self.parse(path, &text, authority),
            Err(error) if error.is_absent => None,
            Err(error) if error.is_denied => {
                self.remarks.push(format!("{} is left out: permission is denied", path.display()));
                None
            }
            Err(error) => {
                let message = format!("the file cannot be read: {}", error.what);
                self.problems.push(Problem::of_file(path, message, error.help));
                None
            }
        }
    }
}

struct Unreadable {
    what: String,
    help: &'static str,
    is_absent: bool,
    is_denied: bool,
}

impl Unreadable {
    fn new(what: &str, help: &'static str) -> Self {
        Self { what: what.to_owned(), help, is_absent: false, is_denied: false }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        let is_absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        let help = match error.kind() {
            _ if is_absent => "name a file that exists",
            io::ErrorKind::PermissionDenied => "let this user read it",
            io::ErrorKind::InvalidInput => "name a file",
            io::ErrorKind::FileTooLarge => "name a file of configuration",
            _ => "name a file that can be read",
        };
        Self { what: error.to_string(), help, is_absent, is_denied }
    }
}

fn read_file(path: &Path) -> Result<String, Unreadable> {
    let bytes = lmt_core::bounded_file::read(path, MAX_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Unreadable::new(&format!("byte {at} is no UTF-8"), "save it as UTF-8")
    })
}

/// Sets what a file sets, over what those below it have set.
fn apply_file(configuration: &mut Configuration, file: &Parsed, known: &Known) {
    for (key, value, line) in &file.endpoint {
        set(&mut configuration.config, key, value.clone());
        note(configuration, key, file.layer.source(*line));
    }
    if let Some((setting, line)) = file.dma_min {
        configuration.selection.dma_min = setting;
        note(configuration, "dma_min", file.layer.source(line));
    }
    if let Some((readers, line)) = file.max_readers {
        configuration.selection.max_readers = readers;
        note(configuration, "max_readers", file.layer.source(line));
    }
    if let Some((setting, line)) = file.single_copy {
        configuration.selection.single_copy = setting;
        note(configuration, SINGLE_COPY.name, file.layer.source(line));
    }
    if let Some((contention, line)) = &file.contention {
        configuration.contention = Some(contention.clone());
        note(configuration, "contention", file.layer.source(*line));
    }
    // The longer name is the narrower one: what is said of a mechanism stands
    // above what is said of its family.
    let mut entries: Vec<_> = file.mechanisms.iter().collect();
    entries.sort_by_key(|entry| entry.mechanism.len());
    for entry in entries {
        let has_it =
            known.meant(&entry.mechanism).filter(|facts| facts.keys.iter().any(|k| k.name == entry.key));
        for facts in has_it {
            set_mechanism(configuration, facts.name, entry.key, &entry.value, file.layer.source(entry.line));
        }
    }
}

fn apply_environment(configuration: &mut Configuration, read: FromEnvironment) {
    let by = |variable: &str| Source::Environment { variable: variable.to_owned() };
    for (key, value, variable) in read.endpoint {
        set(&mut configuration.config, key, value);
        note(configuration, key, by(variable));
    }
    if let Some(setting) = read.dma_min {
        configuration.selection.dma_min = setting;
        note(configuration, "dma_min", by(super::table::DMA_MIN_VARIABLE));
    }
    if let Some(readers) = read.max_readers {
        configuration.selection.max_readers = readers;
        note(configuration, "max_readers", by(super::table::MAX_READERS.variable.unwrap_or_default()));
    }
    if let Some(setting) = read.single_copy {
        configuration.selection.single_copy = setting;
        note(configuration, SINGLE_COPY.name, by(SINGLE_COPY.variable.unwrap_or_default()));
    }
    for (mechanism, key, value, variable) in read.mechanisms {
        set_mechanism(configuration, mechanism, key, &value, by(&variable));
    }
}

fn set(config: &mut Config, key: &str, value: Value) {
    let done = config.set(key, value);
    debug_assert!(done.is_ok(), "a value was checked by its key and is refused: {done:?}");
}

/// Notes who set a key; what is built in needs no note.
fn note(configuration: &mut Configuration, key: &'static str, source: Source) {
    match source {
        Source::Default { .. } => configuration.sources.remove(key),
        other => configuration.sources.insert(key, other),
    };
}

fn set_mechanism(
    configuration: &mut Configuration,
    mechanism: &str,
    key: &str,
    value: &Value,
    source: Source,
) {
    let settings = &mut configuration.mechanisms;
    settings.retain(|setting| setting.mechanism != mechanism || setting.key != key);
    let (mechanism, key) = (mechanism.to_owned(), key.to_owned());
    settings.push(MechanismSetting { mechanism, key, value: value.clone(), source });
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
