//! Reading a machine from hwloc, or where there is none, the running one from the kernel's files.

use std::env;
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::sys::{Library, Loaded, Unloaded};
use super::sysfs::Files;
use super::{Machine, Source, TopologyError, WithoutHwloc, synthetic, xml};

/// A machine longer than this is none: hwloc takes some KiB for each CPU.
const MAX_XML_BYTES: u64 = 64 << 20;

/// What hwloc has for all machines of a process is made by the first; reading one is rare, so all
/// are read alone.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Why hwloc describes no machine here; `None` where it does.
pub fn without_hwloc() -> Option<&'static WithoutHwloc> {
    Library::get().err()
}

impl Machine {
    /// The running machine, or the one that hwloc's variables describe:
    /// `HWLOC_FSROOT`, `HWLOC_SYNTHETIC`, `HWLOC_XMLFILE`, the first of them
    /// that is set. Where there is no hwloc ([`without_hwloc`]) the running one, as the kernel's
    /// files below /sys have it.
    ///
    /// It takes some milliseconds (docs/topology.md), so do it once and share the result. Like
    /// every reader of the environment, it must not run while another thread
    /// changes variables (`std::env::set_var` is unsafe for that reason).
    ///
    /// # Errors
    ///
    /// A variable that describes no machine, where hwloc itself would say
    /// nothing and describe the running one; a variable where there is no hwloc.
    pub fn load() -> Result<Self, TopologyError> {
        let source = Source::of_environment();
        let Source::Variable { name, value } = &source else {
            return match Library::get() {
                Ok(_) => read(source, |_| Ok(())),
                Err(_) => Self::copy_of(&Files::of_this_machine(), source),
            };
        };
        let named = |name| env::var_os(name).unwrap_or_default();
        match *name {
            "HWLOC_SYNTHETIC" => {
                let description = value.clone();
                Self::from_synthetic("HWLOC_SYNTHETIC: ", &description, source)
            }
            "HWLOC_XMLFILE" => {
                Self::from_xml_file("HWLOC_XMLFILE: ", &PathBuf::from(named("HWLOC_XMLFILE")), source)
            }
            "HWLOC_FSROOT" => Self::from_root(PathBuf::from(named("HWLOC_FSROOT")), source),
            _ => Self::by_components(source),
        }
    }

    /// A machine in hwloc's synthetic notation, from the outside in:
    /// "package:2 l2:2(size=4194304) core:2 pu:1" is two packages, each with two
    /// caches of 4 MiB that two cores of one hardware thread share. See
    /// "Synthetic topologies" in hwloc's manual.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Synthetic`] when it is none.
    pub fn synthetic(description: &str) -> Result<Self, TopologyError> {
        Self::from_synthetic("", description, Source::Synthetic(description.to_owned()))
    }

    /// A machine that `lstopo` or hwloc_topology_export_xml() wrote to a file.
    ///
    /// # Errors
    ///
    /// [`TopologyError::File`] when it cannot be read, [`TopologyError::Xml`]
    /// when it is no machine.
    pub fn from_xml(path: impl AsRef<Path>) -> Result<Self, TopologyError> {
        Self::from_xml_file("", path.as_ref(), Source::Xml(path.as_ref().to_owned()))
    }

    fn from_synthetic(
        origin: &'static str,
        description: &str,
        source: Source,
    ) -> Result<Self, TopologyError> {
        let wrong =
            |reason: String| TopologyError::Synthetic { origin, description: description.to_owned(), reason };
        synthetic::check(description).map_err(wrong)?;
        let text = CString::new(description).map_err(|_| wrong("it holds a NUL".to_owned()))?;
        read(source, |topology| {
            topology.set_synthetic(&text).map_err(|e| {
                wrong(format!("hwloc refuses the kinds of its levels or what stands in parentheses ({e})"))
            })
        })
    }

    fn from_xml_file(origin: &'static str, path: &Path, source: Source) -> Result<Self, TopologyError> {
        let broken = |reason| TopologyError::Xml { origin, path: path.to_owned(), reason };
        let text = checked_xml(origin, path)?;
        let text = CString::new(text).map_err(|_| broken("it holds a NUL".to_owned()))?;
        let refused = |error: io::Error| broken(format!("hwloc refuses it: {error}"));
        read(source, |topology| topology.set_xml(&text).map_err(refused)).map_err(|e| match e {
            // The file is only parsed to its end while it is loaded.
            TopologyError::Hwloc { source, .. } => refused(source),
            other => other,
        })
    }

    fn from_root(root: PathBuf, source: Source) -> Result<Self, TopologyError> {
        if let Err(error) = holds_cpus(&root) {
            return Err(TopologyError::FsRoot { root, source: error });
        }
        let machine = read(source, |_| Ok(()))?;
        if machine.is_this_system && !is_vouched_for() && root != Path::new("/") {
            let value = root.display().to_string();
            return Err(TopologyError::SetAside { variable: "HWLOC_FSROOT", value });
        }
        Ok(machine)
    }

    /// By the variables that hwloc alone interprets, `HWLOC_COMPONENTS` and
    /// `HWLOC_CPUID_PATH`. The first may well leave the running machine.
    fn by_components(source: Source) -> Result<Self, TopologyError> {
        // hwloc may be told by the components' names to read this file itself.
        if source.variable() == Some("HWLOC_COMPONENTS")
            && let Some(path) = env::var_os("HWLOC_XMLFILE")
        {
            checked_xml("HWLOC_XMLFILE: ", Path::new(&path))?;
        }
        let mut machine = read(source, |_| Ok(()))?;
        if machine.is_this_system && !is_vouched_for() {
            match machine.source {
                Source::Variable { name: variable @ "HWLOC_CPUID_PATH", value } => {
                    return Err(TopologyError::SetAside { variable, value });
                }
                _ => machine.source = Source::ThisSystem,
            }
        }
        Ok(machine)
    }
}

/// The text of a file with a machine, in which nothing would harm hwloc.
fn checked_xml(origin: &'static str, path: &Path) -> Result<String, TopologyError> {
    let unreadable = |source| TopologyError::File { origin, path: path.to_owned(), source };
    // hwloc would take standard input, which belongs to the program.
    if path == Path::new("-") {
        return Err(unreadable(io::Error::other("standard input belongs to the program")));
    }
    let broken = |reason| TopologyError::Xml { origin, path: path.to_owned(), reason };
    let bytes = lmt_core::bounded_file::read(path, MAX_XML_BYTES).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| broken("it is no UTF-8 text".to_owned()))?;
    xml::check(&text).map_err(broken)?;
    Ok(text)
}

/// Whether the user says that what the variables describe is this machine.
fn is_vouched_for() -> bool {
    env::var_os("HWLOC_THISSYSTEM").is_some()
}

/// Whether the file system with this root describes a CPU where hwloc looks:
/// without, it would count those of the running machine.
fn holds_cpus(root: &Path) -> io::Result<()> {
    let files = ["package_cpus", "core_cpus", "core_siblings", "thread_siblings"];
    for entry in std::fs::read_dir(root.join("sys/devices/system/cpu"))? {
        let topology = entry?.path().join("topology");
        if files.iter().any(|file| topology.join(file).exists()) {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "no CPU in it has a topology"))
}

/// Loads a topology whose source `choose` sets, and copies it.
fn read(
    source: Source,
    choose: impl FnOnce(&mut Unloaded) -> Result<(), TopologyError>,
) -> Result<Machine, TopologyError> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let loaded = load(&source, choose)?;
    Machine::copy_of(&loaded, source)
}

fn load(
    source: &Source,
    choose: impl FnOnce(&mut Unloaded) -> Result<(), TopologyError>,
) -> Result<Loaded, TopologyError> {
    let library = Library::get().map_err(|missing| TopologyError::without_hwloc(source, missing))?;
    if !matches!(source, Source::ThisSystem | Source::Synthetic(_)) {
        library.admit_plugins();
    }
    let failed = |error| TopologyError::Hwloc { origin: source.to_string(), source: error };
    let mut topology = Unloaded::new(library).map_err(failed)?;
    choose(&mut topology)?;
    topology.load().map_err(failed)
}
