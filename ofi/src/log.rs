//! Messages as libfabric's own log has them (fi_log(3)), under the same
//! variables: `FI_LOG_LEVEL` (warn, trace, info, debug), `FI_LOG_PROV`,
//! `FI_LOG_SUBSYS`. libfabric's functions for it are not called: their symbols
//! have versions, and this library is loaded by libfabrics of several.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::OnceLock;

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subsystem {
    /// `fi_getinfo`.
    Core,
    /// Fabrics.
    Fabric,
    /// Domains.
    Domain,
    /// Making and binding endpoints.
    EpCtrl,
    /// Messages.
    EpData,
    /// Address vectors.
    Av,
    /// Completion queues.
    Cq,
    /// Event queues.
    Eq,
    /// Counters.
    Cntr,
    /// Memory regions.
    Mr,
}

impl Subsystem {
    const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Fabric => "fabric",
            Self::Domain => "domain",
            Self::EpCtrl => "ep_ctrl",
            Self::EpData => "ep_data",
            Self::Av => "av",
            Self::Cq => "cq",
            Self::Eq => "eq",
            Self::Cntr => "cntr",
            Self::Mr => "mr",
        }
    }
}

/// How much is said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    Warn,
    Trace,
    Info,
    Debug,
}

/// What the variables ask for.
#[derive(Debug)]
struct Filter {
    level: Option<Level>,
    subsystems: Option<String>,
}

impl Filter {
    fn new(level: Option<&str>, providers: Option<&str>, subsystems: Option<&str>) -> Self {
        let level = match level {
            Some("warn") => Some(Level::Warn),
            Some("trace") => Some(Level::Trace),
            Some("info") => Some(Level::Info),
            Some("debug") => Some(Level::Debug),
            _ => None,
        };
        let ours = providers.is_none_or(|list| crate::choice::names(list, crate::NAME));
        Self { level: level.filter(|_| ours), subsystems: subsystems.map(str::to_owned) }
    }

    fn passes(&self, level: Level, subsystem: Subsystem) -> bool {
        self.level.is_some_and(|most| level <= most)
            && self.subsystems.as_deref().is_none_or(|list| crate::choice::names(list, subsystem.name()))
    }
}

fn filter() -> &'static Filter {
    static FILTER: OnceLock<Filter> = OnceLock::new();
    FILTER.get_or_init(|| {
        let variable = |name| std::env::var(name).ok();
        let (level, providers) = (variable("FI_LOG_LEVEL"), variable("FI_LOG_PROV"));
        Filter::new(level.as_deref(), providers.as_deref(), variable("FI_LOG_SUBSYS").as_deref())
    })
}

fn print(level: Level, word: &str, subsystem: Subsystem, text: Arguments<'_>) {
    if filter().passes(level, subsystem) {
        let line =
            format!("libfabric:{}:{}:{}<{word}> {text}\n", std::process::id(), crate::NAME, subsystem.name());
        // If nobody reads standard error, nobody wants to know.
        let _written = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// Something is wrong.
#[cold]
pub fn warn(subsystem: Subsystem, text: Arguments<'_>) {
    print(Level::Warn, "warn", subsystem, text);
}

/// Something is as asked, and worth knowing when one looks for a reason.
#[cold]
pub fn info(subsystem: Subsystem, text: Arguments<'_>) {
    print(Level::Info, "info", subsystem, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_unless_asked_for() {
        assert!(!Filter::new(None, None, None).passes(Level::Warn, Subsystem::Core));
        assert!(!Filter::new(Some("loud"), None, None).passes(Level::Warn, Subsystem::Core));
    }

    #[test]
    fn levels_providers_and_subsystems_narrow_it() {
        let warn = Filter::new(Some("warn"), None, None);
        assert!(warn.passes(Level::Warn, Subsystem::Cq) && !warn.passes(Level::Info, Subsystem::Cq));
        assert!(!Filter::new(Some("debug"), Some("tcp,shm"), None).passes(Level::Warn, Subsystem::Cq));
        assert!(!Filter::new(Some("debug"), Some("^lmt"), None).passes(Level::Warn, Subsystem::Cq));
        let some = Filter::new(Some("info"), Some("lmt"), Some("av,cq"));
        assert!(some.passes(Level::Info, Subsystem::Cq) && !some.passes(Level::Info, Subsystem::EpData));
    }
}
