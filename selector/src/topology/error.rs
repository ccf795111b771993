//! Why a machine could not be described.

use std::io;
use std::path::PathBuf;

use super::Source;

/// Why a machine could not be described.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A synthetic description that hwloc does not take.
    #[error(
        "{origin}'{}' is not a synthetic machine, for {reason}: give its levels from the outside in, \
         each as type:count within the level before, the last being pu, \
         as in 'package:2 l2:2(size=4194304) core:2 pu:1'", .description.escape_debug()
    )]
    Synthetic {
        /// "HWLOC_SYNTHETIC: ", or empty.
        origin: &'static str,
        /// What was given.
        description: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A file that cannot be read.
    #[error(
        "{origin}the machine's XML file '{}' cannot be read ({source}): name a file that lstopo wrote, \
         as by 'lstopo machine.xml'", .path.display()
    )]
    File {
        /// "HWLOC_XMLFILE: ", or empty.
        origin: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// A file that is not hwloc's XML.
    #[error(
        "{origin}'{}' is not a machine in the XML of hwloc 2, for {}: \
         write one by 'lstopo machine.xml' with hwloc 2", .path.display(), .reason.escape_debug()
    )]
    Xml {
        /// "HWLOC_XMLFILE: ", or empty.
        origin: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A root of a file system that describes no CPUs.
    #[error(
        "HWLOC_FSROOT: no machine is described under '{}/sys/devices/system/cpu' ({source}): name a directory \
         with the /proc and /sys of a machine, as hwloc-gather-topology packs it", .root.display()
    )]
    FsRoot {
        /// What the variable says.
        root: PathBuf,
        /// Why it describes none.
        source: io::Error,
    },

    /// hwloc set the variable aside and described the running machine.
    #[error(
        "{variable}: hwloc set '{value}' aside and described the running machine instead: \
         correct the variable, or unset it to mean this machine"
    )]
    SetAside {
        /// Which variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },

    /// What only hwloc reads, where there is none.
    #[error("only hwloc 2 describes {origin}, and {}: {}{otherwise}", .missing.reason, .missing.remedy)]
    WithoutHwloc {
        /// What was to be described.
        origin: String,
        /// What else would do, as the end of a sentence.
        otherwise: String,
        /// Why there is no hwloc.
        missing: &'static WithoutHwloc,
    },

    /// No CPU was described.
    #[error("no CPU was found in {origin}: give a machine with at least one that is online")]
    NoCpu {
        /// What was described.
        origin: String,
    },

    /// hwloc failed for another reason.
    #[error("hwloc cannot describe {origin} ({source}); 'lstopo' on the same machine shows what it sees")]
    Hwloc {
        /// What was to be described.
        origin: String,
        /// Its errno.
        source: io::Error,
    },
}

impl TopologyError {
    pub(super) fn without_hwloc(source: &Source, missing: &'static WithoutHwloc) -> Self {
        let otherwise =
            source.variable().map_or_else(String::new, |variable| format!(", or unset {variable}"));
        Self::WithoutHwloc { origin: source.to_string(), otherwise, missing }
    }
}

/// Why there is no hwloc, and what would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutHwloc {
    /// The end of a sentence: "libhwloc.so.15: cannot open shared object file".
    pub reason: String,
    /// What to do: "install hwloc 2".
    pub remedy: &'static str,
}
