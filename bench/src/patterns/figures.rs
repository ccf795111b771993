//! What the patterns measure that are more than the time of a message.

use super::Pattern;

/// In what a figure is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Usec,
    /// A part of a whole: tables show percent, 0 to 100.
    Part,
    /// One time by another.
    Ratio,
    /// So many of something.
    Count,
}

/// One figure: a column of tables and CSV.
#[derive(Debug)]
pub struct FigureDefinition {
    /// Its name in CSV and JSON.
    pub name: &'static str,
    /// Its name above a table's column.
    pub heading: &'static str,
    /// In what it is given.
    pub unit: Unit,
}

const fn figure(name: &'static str, heading: &'static str, unit: Unit) -> FigureDefinition {
    FigureDefinition { name, heading, unit }
}

/// The overlap's: a transfer alone, a computation alone, both at once, and how
/// much of the shorter one was hidden.
const OVERLAP: &[FigureDefinition] = &[
    figure("both_usec", "both", Unit::Usec),
    figure("comm_usec", "comm", Unit::Usec),
    figure("comp_usec", "comp", Unit::Usec),
    figure("overlap", "overlap", Unit::Part),
];

/// The pollution's: reading after a message and after as much time without.
const POLLUTION: &[FigureDefinition] = &[
    figure("after_usec", "after", Unit::Usec),
    figure("control_usec", "control", Unit::Usec),
    figure("slowdown", "slowdown", Unit::Ratio),
    figure("after_misses", "misses", Unit::Count),
    figure("control_misses", "of control", Unit::Count),
];

/// The regions': one call each.
const REGIONS: &[FigureDefinition] = &[
    figure("register_usec", "declare", Unit::Usec),
    figure("first_lookup_usec", "first get", Unit::Usec),
    figure("lookup_usec", "next get", Unit::Usec),
    figure("destroy_usec", "destroy", Unit::Usec),
];

/// The figures of a pattern; the first one is its time.
pub(super) fn of(pattern: Pattern) -> &'static [FigureDefinition] {
    match pattern {
        Pattern::Overlap => OVERLAP,
        Pattern::Pollution => POLLUTION,
        Pattern::Regions => REGIONS,
        _ => &[],
    }
}
