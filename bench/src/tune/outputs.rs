//! Where everything goes that tuning writes.

use std::io;
use std::path::{Path, PathBuf};

use lmt_selector::calibration::{Calibration, Provenance, rules};
use lmt_selector::contention::Parameters;

use super::collectives::Found;
use super::measuring::Outcome;
use super::previous::Previous;
use super::report::Page;
use super::summary::Summary;
use crate::args::TuneArgs;
use crate::console::{complain, print};
use crate::error::BenchError;
use crate::whole_file::WholeFile;

/// What was found beside messages.
pub struct Copying {
    /// By what bytes are best copied, as the key `copy_routine` has it.
    pub copy_routine: Option<String>,
    /// What single copy costs.
    pub contention: Option<Parameters>,
    /// What collective operations are best done by.
    pub collectives: Found,
}

/// All files, known to be writable.
pub struct Outputs {
    /// The calibration.
    pub output: PathBuf,
    /// Whether endpoints find it there by themselves.
    is_found: bool,
    report: PathBuf,
    file: WholeFile,
    page: WholeFile,
    picture: Option<WholeFile>,
    previous: Previous,
}

impl Outputs {
    /// Finds out that all can be written, before the minutes of measuring and
    /// not after. Nothing that is there is touched.
    ///
    /// # Errors
    /// Two are the same file, or one cannot be written.
    pub fn prepare(args: &TuneArgs, fingerprint: &str) -> Result<Self, BenchError> {
        let output = match &args.output {
            Some(output) => output.clone(),
            None => default_output(fingerprint)?,
        };
        let report = args.report.clone().unwrap_or_else(|| output.with_extension("html"));
        let mut named = vec![("--output", output.as_path()), ("--report", report.as_path())];
        named.extend(args.picture.as_deref().map(|picture| ("--picture", picture)));
        all_differ(&named)?;
        let file = WholeFile::create(&output, "--output")?;
        let page = WholeFile::create(&report, "--report")?;
        let picture = args.picture.as_ref().map(|path| WholeFile::create(path, "--picture")).transpose()?;
        let previous = Previous::read(&output);
        Ok(Self { output, is_found: args.output.is_none(), report, file, page, picture, previous })
    }

    /// Writes all, and says what came of it.
    ///
    /// # Errors
    /// What was there cannot be kept, and is there still; or something cannot be
    /// written.
    pub fn write(
        self,
        provenance: Provenance,
        outcome: &Outcome,
        copying: Copying,
    ) -> Result<(), BenchError> {
        let of_courses = rules(&outcome.courses, &outcome.ways);
        let kept = keep(&self.previous, &self.output, provenance.complete)?;
        let calibration = Calibration::new(provenance, &outcome.courses, &outcome.ways);
        let Found { rules: of_collectives, cases, .. } = copying.collectives;
        let calibration = calibration.with_contention(copying.contention).with_collectives(of_collectives);
        let calibration = match copying.copy_routine {
            Some(copy_routine) => calibration.with_copy_routine(copy_routine),
            None => calibration,
        };
        self.file.write(&calibration.to_toml())?;
        let shown = Page { calibration: &calibration, measured: &outcome.courses, courses: &of_courses };
        self.page.write(&shown.to_html()?)?;
        if let Some(picture) = self.picture {
            picture.write(&shown.to_svg()?)?;
        }
        let changes = self.previous.changes(&of_courses);
        let summary = Summary {
            calibration: &calibration,
            courses: &of_courses,
            changes: &changes,
            collective_cases: cases,
            is_found: self.is_found,
        };
        print(&summary.text(&self.output, &self.report, kept.as_deref()))
    }
}

/// Where endpoints look for the calibration of this machine.
fn default_output(fingerprint: &str) -> Result<PathBuf, BenchError> {
    let Some(folder) = lmt::configuration::sources().folder else {
        return Err(BenchError::Usage(
            "neither XDG_CONFIG_HOME nor HOME names a folder; give the file with --output".into(),
        ));
    };
    let folder = folder.join("calibration");
    std::fs::create_dir_all(&folder).map_err(|error| {
        BenchError::Failure(format!(
            "the folder {} cannot be created: {error}; choose another --output",
            folder.display()
        ))
    })?;
    Ok(folder.join(format!("{fingerprint}.toml")))
}

/// Whether no two options name one file, by whatever path. What is no file, such
/// as /dev/null, may be named twice.
fn all_differ(named: &[(&str, &Path)]) -> Result<(), BenchError> {
    for (at, (option, path)) in named.iter().enumerate() {
        let is_special = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let same = named[at + 1..].iter().find(|(_, other)| resolved(path) == resolved(other));
        if let (Some((other, _)), false) = (same, is_special) {
            return Err(BenchError::Usage(format!(
                "{option} and {other} are both {}; name two files",
                path.display()
            )));
        }
    }
    Ok(())
}

/// The path without links and dots, also of a file that is not there yet.
fn resolved(path: &Path) -> PathBuf {
    let beside = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}

/// Keeps what is about to be replaced and may be missed: a complete calibration
/// when the new one is not, and whatever cannot be read. Says under which name
/// a complete one is kept.
fn keep(previous: &Previous, output: &Path, complete: bool) -> Result<Option<PathBuf>, BenchError> {
    let (what, ending) = match previous {
        Previous::Unreadable(_) => ("calibration, which cannot be read,", "unreadable"),
        Previous::Rules { complete: true, .. } if !complete => ("complete calibration", "complete"),
        Previous::Absent | Previous::Rules { .. } => return Ok(None),
    };
    let failed = |kept: &Path, error: &io::Error| {
        BenchError::Failure(format!(
            "the {what} {} cannot be kept as {}: {error}; it is as it was, and nothing was written",
            output.display(),
            kept.display()
        ))
    };
    let kept = match previous {
        // Each of them may be somebody's work.
        Previous::Unreadable(_) => free_name(output, ending),
        _ => with_ending(output, ending),
    };
    keep_as(output, &kept).map_err(|error| failed(&kept, &error))?;
    if matches!(previous, Previous::Unreadable(_)) {
        complain(&format!("the calibration before cannot be read and is kept as {}", kept.display()));
        return Ok(None);
    }
    Ok(Some(kept))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    PathBuf::from(name)
}

/// The first of `x.unreadable`, `x.unreadable.2`, ... that is not there.
fn free_name(path: &Path, ending: &str) -> PathBuf {
    let names = (2..).map(|number| with_ending(path, &format!("{ending}.{number}")));
    let is_free = |name: &PathBuf| name.symlink_metadata().is_err();
    // Some number is free.
    std::iter::once(with_ending(path, ending)).chain(names).find(is_free).unwrap_or_default()
}

/// Gives a file a second name, whole or not at all: by a link, or by a copy
/// where the file system has none.
fn keep_as(path: &Path, kept: &Path) -> io::Result<()> {
    let part = with_ending(kept, &format!("part-{}", std::process::id()));
    // A link to a link would lead to what is written next.
    let path = path.canonicalize()?;
    let made = std::fs::hard_link(&path, &part).or_else(|_| std::fs::copy(&path, &part).map(drop));
    let renamed = made.and_then(|()| std::fs::rename(&part, kept));
    if renamed.is_err() {
        // If it cannot be removed, nothing can be done about it.
        let _ = std::fs::remove_file(&part);
    }
    renamed
}

#[cfg(test)]
#[path = "outputs_tests.rs"]
mod tests;
