//! The one table of what can be set.

use lmt_core::config::{Config, KEYS};
use lmt_core::config_key::{Key, Kind, Value};

use super::known::Known;
use super::value::{self, shown};
use crate::size;

/// One key, as it is documented.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: &'static str,
    /// Its unit; empty when it has none.
    pub unit: &'static str,
    /// What holds where it is not set.
    pub default: String,
    /// What it may be; empty when anything of its type.
    pub bounds: String,
    /// The variable of the environment that sets it.
    pub variable: Option<String>,
    /// What it does, in one sentence without a full stop.
    pub meaning: &'static str,
    /// Why the default is what it is, in one sentence without a full stop.
    pub reason: &'static str,
}

/// One table of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// As it is written: `[endpoint]`, `[[rule]]`, `[mechanism.NAME]`.
    pub title: String,
    /// What it is for, in one sentence without a full stop.
    pub meaning: &'static str,
    /// Its keys, in order.
    pub keys: Vec<Entry>,
}

/// A key that no [`Key`] describes.
pub(super) struct Field {
    pub name: &'static str,
    kind: &'static str,
    unit: &'static str,
    default: &'static str,
    bounds: &'static str,
    variable: Option<&'static str>,
    meaning: &'static str,
    reason: &'static str,
}

/// The variable that sets how DMAmin is found.
pub(super) const DMA_MIN_VARIABLE: &str = "LMT_DMA_MIN";
/// The variable that sets algorithms of collective operations.
pub(super) const COLLECTIVES_VARIABLE: &str = "LMT_COLLECTIVES";
/// The words that say how DMAmin is found.
pub(super) const BY_CORES: &str = "by-cores";
pub(super) const BY_PROCESSES: &str = "by-processes";

/// The cap on readers where no rule has one.
pub(super) const MAX_READERS: Key = Key {
    name: "max_readers",
    kind: Kind::Count { least: 1, most: u32::MAX as u64 },
    variable: Some("LMT_MAX_READERS"),
    meaning: "how many messages of one process may be read by others at once where no rule says otherwise; a further one takes a path that does not read this process's memory",
    reason: "readers of one process share its page-table locks: on the machines of contention-aware-cma 4 to 8 at once were best; of these the most, since a cap that is too low leaves cores idle on every machine",
};

/// The word that says that a look at the machine finds out how fast single copies are.
pub(super) const BY_MEASUREMENT: &str = "measured";

/// How fast single copies are taken to be.
pub(super) const SINGLE_COPY: Key = Key {
    name: "single_copy",
    kind: Kind::Word(&[BY_MEASUREMENT, "fast", "slow"]),
    variable: Some("LMT_SINGLE_COPY"),
    meaning: "what rules with `single_copy` go by: whether the kernel copies between processes in at most 3 times the time of a plain copy, measured for some tenths of a millisecond when an endpoint of a process connects to its first peer, or as set",
    reason: "kernels and processors differ by a multiple in this; set it where every run is to decide alike, or where another machine is explained",
};

/// The key that says how DMAmin is found.
pub const fn dma_min_key() -> &'static str {
    DMA_MIN.name
}

/// The key of the cap on readers.
pub const fn max_readers_key() -> &'static Key {
    const { &MAX_READERS }
}

/// The key that says how fast single copies are.
pub const fn single_copy_key() -> &'static Key {
    const { &SINGLE_COPY }
}

/// The value of [`single_copy_key`], as a file has it.
pub fn single_copy_value(selection: &crate::configuration::SelectionSettings) -> Value {
    Value::Text(selection.single_copy.map_or(BY_MEASUREMENT, crate::rules::SingleCopy::name).to_owned())
}

/// The keys of `[contention]`.
pub fn contention_keys() -> Vec<&'static str> {
    names(CONTENTION)
}

const DMA_MIN: Field = Field {
    name: "dma_min",
    kind: "word or size",
    unit: "bytes",
    default: "\"by-cores\"",
    bounds: "by-cores, by-processes or a size",
    variable: Some(DMA_MIN_VARIABLE),
    meaning: "what DMAmin is in rules: the size of the largest cache over twice the cores that share it, or over twice the processes that use it, or this size",
    reason: "the cores are known without the group, and who shares a cache need not run yet (nemesis-lmt, section 3.5)",
};

/// A key without a unit, which need not be there and may be anything.
const ANY: Field = Field {
    name: "",
    kind: "",
    unit: "",
    default: "any",
    bounds: "",
    variable: None,
    meaning: "",
    reason: "",
};

/// The keys of `[[rule]]`.
pub(super) const RULE: &[Field] = &[
    ABOVE,
    UP_TO,
    Field {
        name: "place",
        kind: "word or list of words",
        bounds: "same-core, shared-l1, shared-l2, shared-l3, same-numa, same-package, other",
        meaning: "the narrowest that the two processes share is one of these",
        reason: "most rules hold wherever the processes are",
        ..ANY
    },
    Field {
        name: "segments",
        kind: "word",
        bounds: "one, many",
        meaning: "whether the message is one segment at the sender or several",
        reason: "the mechanisms of lmt take segments as they are",
        ..ANY
    },
    Field {
        name: "sender",
        kind: "word",
        bounds: "warm, cold",
        meaning: "whether the sender has said that it has just written the bytes (warm) or wrote them long ago (cold); a message of which nothing was said fits neither",
        reason: "few programs say so (knem-jpdc, section 5.3)",
        ..ANY
    },
    Field {
        name: "reuse",
        kind: "word",
        bounds: "again, once",
        meaning: "whether the sender has said that the buffer is used again or once only; a message of which nothing was said fits neither",
        reason: "few programs say so",
        ..ANY
    },
    Field {
        name: "min_processes",
        kind: "whole number",
        unit: "processes",
        bounds: "from 2 to 65536",
        meaning: "the endpoint knows at least so many processes, itself included",
        reason: "most rules hold for two processes as for many",
        ..ANY
    },
    Field {
        name: "single_copy",
        kind: "word",
        bounds: "fast, slow",
        meaning: "whether the kernel copies between the two processes in at most 3 times the time of a plain copy, by a short measurement when the first two connect (fast), or takes longer or may not (slow)",
        reason: "most rules hold whatever the kernel's copies cost",
        ..ANY
    },
    Field {
        name: "take",
        kind: "\"eager\" or list of paths",
        default: "must be there",
        bounds: "mechanisms or families, each perhaps with :get, :put, :cooperative, :both or :stream; \"eager\" begins at 0 and ends at 1 MiB at most",
        meaning: "what messages that fit take: inbox cells, or the first of these paths that works; what else works follows",
        reason: "a rule that says nothing would be of no use",
        ..ANY
    },
    Field {
        name: "max_readers",
        kind: "whole number",
        unit: "messages",
        default: "[selection]'s",
        bounds: "from 1 to 4294967295",
        meaning: "how many messages of one process may be read at once under this rule",
        reason: "the cap depends on the machine more than on the message",
        ..ANY
    },
];

const ABOVE: Field = Field {
    name: "above",
    kind: "size or \"DMAmin\"",
    unit: "bytes",
    default: "from the shortest",
    meaning: "messages longer than this; one of just this length does not fit",
    reason: "what has no lower bound begins with the empty message",
    ..ANY
};

const UP_TO: Field = Field {
    name: "up_to",
    kind: "size or \"DMAmin\"",
    unit: "bytes",
    default: "to the longest",
    bounds: "more than `above`",
    meaning: "messages up to this length, which fits",
    reason: "what has no upper bound holds for all that is longer",
    ..ANY
};

/// The keys of `[[collective]]`.
pub(super) const COLLECTIVE: &[Field] = &[
    Field {
        name: "operation",
        kind: "text",
        default: "must be there",
        bounds: "a name of collectives.md, or * for all that the algorithm can do",
        variable: Some(COLLECTIVES_VARIABLE),
        meaning: "the collective operation; the variable has OPERATION=ALGORITHM, with commas between several, for all lengths and groups",
        reason: "operations differ in what is fast",
        ..ANY
    },
    Field {
        name: "algorithm",
        kind: "text",
        default: "must be there",
        bounds: "a name of collectives.md, with a colon and a number where it has one",
        variable: Some(COLLECTIVES_VARIABLE),
        meaning: "what the operation is done by; where it cannot do a call, the next rule that fits speaks",
        reason: "a rule that says nothing would be of no use",
        ..ANY
    },
    Field {
        kind: "size",
        meaning: "calls of more bytes than this: of a broadcast the message, one rank's block of what is divided among the ranks, else the vector of a reduction; a rule with bounds fits no call whose ranks have blocks of different lengths",
        ..ABOVE
    },
    Field { kind: "size", meaning: "calls of up to so many bytes, which fits", ..UP_TO },
    Field {
        name: "min_ranks",
        kind: "whole number",
        unit: "ranks",
        bounds: "from 1 to 1024",
        meaning: "groups of at least so many ranks",
        reason: "what is fast depends on how many read one process at once",
        ..ANY
    },
    Field {
        name: "max_ranks",
        kind: "whole number",
        unit: "ranks",
        bounds: "at least `min_ranks`, at most 1024",
        meaning: "groups of at most so many ranks",
        reason: "`lmt tune` writes rules for just the groups that it has measured",
        ..ANY
    },
];

/// The keys that every `[mechanism.NAME]` has.
pub(super) const RANGE: &[Field] = &[
    Field { meaning: "rules take the mechanism only for messages longer than this", ..ABOVE },
    Field { meaning: "rules take the mechanism only for messages up to this length", ..UP_TO },
];

const fn told(name: &'static str, kind: &'static str, meaning: &'static str) -> Field {
    Field { name, kind, default: "not told", meaning, reason: "`lmt tune` writes it", ..ANY }
}

/// The keys of `[calibration]`.
pub(super) const CALIBRATION: &[Field] = &[
    told("date", "text", "when it was measured, in UTC as RFC 3339 has it"),
    told("machine", "text", "the machine's fingerprint: model of the processor and number of CPUs"),
    told("cpu", "text", "the processor's model"),
    told("kernel", "text", "the kernel's name and release"),
    told("cpus", "text", "the CPUs that could be used"),
    told("lmt", "text", "the version of lmt"),
    told("hwloc", "text", "what hwloc says of the machine"),
    told("options", "text", "with which options it was measured, and how long that took"),
    told("complete", "true or false", "whether everything was measured, or the run was interrupted"),
    told("skipped", "list of texts", "what was not measured and why, a sentence each"),
];

const fn measured(
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Field {
    Field { name, kind, unit, default: "must be there", meaning, reason: "`lmt tune` writes it", ..ANY }
}

/// The keys of `[[figure]]`.
pub(super) const FIGURE: &[Field] = &[
    Field {
        bounds: "same-core, shared-l1, shared-l2, shared-l3, same-numa, same-package, other",
        ..measured("place", "word", "", "what the two processes shared")
    },
    Field {
        bounds: "from 1 to 4294967295",
        ..measured("pairs", "whole number", "pairs", "how many pairs of processes were at it at once")
    },
    measured("off_cache", "true or false", "", "whether the buffers were out of the caches"),
    measured("bytes", "size", "bytes", "the message's length"),
    measured("way", "text", "", "by which path: eager, or a mechanism and who copies, NAME:get"),
    measured("median_ns", "whole number", "nanoseconds", "the median time of one transfer"),
];

/// The keys of `[contention]`.
pub(super) const CONTENTION: &[Field] = &[
    measured("alpha_us", "number", "microseconds", "alpha: the start of a copy out of another process"),
    measured("byte_ns", "number", "nanoseconds", "beta: each byte of such a copy"),
    measured(
        "lock_us",
        "number",
        "microseconds",
        "l: locking and pinning a page of a process that nobody else reads",
    ),
    measured(
        "line_us",
        "number",
        "microseconds",
        "a cache line from one core to another, a step of collective operations without bytes",
    ),
    measured("copy_ns", "number", "nanoseconds", "each byte of a copy within a process"),
    measured("combine_ns", "number", "nanoseconds", "each byte that a reduction combines with another"),
    Field {
        bounds: "at least 1",
        ..measured("page_bytes", "whole number", "bytes", "s: the length of a page")
    },
    Field {
        default: "not known",
        ..measured("message_us", "number", "microseconds", "the shortest message through shared memory")
    },
    Field {
        default: "not known",
        ..measured(
            "message_byte_ns",
            "number",
            "nanoseconds",
            "each byte of a long message, by the fastest path",
        )
    },
    Field {
        default: "one for each process",
        bounds: "at least 1",
        ..measured("cpus", "whole number", "CPUs", "how many processes run at a time")
    },
    Field {
        default: "none",
        ..measured(
            "gamma",
            "list of numbers",
            "",
            "how many times as long locking and pinning a page takes with 1, 2, ... readers of one process at once",
        )
    },
    Field {
        default: "no curve",
        bounds: "two numbers",
        ..measured(
            "gamma_fit",
            "list of numbers",
            "",
            "of the curve through gamma the factors of the square and of the number of readers",
        )
    },
];

/// Names of the keys of a table.
pub(super) fn names(fields: &[Field]) -> Vec<&'static str> {
    fields.iter().map(|field| field.name).collect()
}

/// Everything that can be set, with these mechanisms.
pub fn all_keys(known: &Known) -> Vec<Section> {
    let section = |title: &str, meaning, keys| Section { title: title.to_owned(), meaning, keys };
    let fields = |fields: &[Field]| fields.iter().map(Field::entry).collect::<Vec<Entry>>();
    let config = Config::default();
    let endpoint = KEYS.iter().map(|key| {
        entry(key, key.variable.map(str::to_owned), &config.get(key.name).unwrap_or(Value::Absent))
    });
    let selection = crate::configuration::SelectionSettings::default();
    let of_selection = |key: &Key, value: &Value| entry(key, key.variable.map(str::to_owned), value);
    let readers = of_selection(&MAX_READERS, &Value::Number(selection.max_readers.into()));
    let single_copy = of_selection(&SINGLE_COPY, &single_copy_value(&selection));
    let mut sections = vec![
        section("[endpoint]", "sizes, bounds and times of an endpoint", endpoint.collect()),
        section(
            "[selection]",
            "what the choice of paths needs apart from rules",
            vec![DMA_MIN.entry(), readers, single_copy],
        ),
        section("[[rule]]", "which paths messages take; in order, the first that fits speaks", fields(RULE)),
        section(
            "[[collective]]",
            "which algorithms collective operations take (collectives.md); in order, the first that fits and can do the call speaks",
            fields(COLLECTIVE),
        ),
        section("[mechanism.NAME]", "bounds of any mechanism or family", fields(RANGE)),
    ];
    for facts in known.mechanisms.iter().filter(|facts| !facts.keys.is_empty()) {
        let keys = facts.keys.iter().zip(&facts.defaults);
        let keys = keys.map(|(key, default)| entry(key, Some(facts.variable(key.name)), default));
        let title = format!("[mechanism.{}]", facts.name);
        sections.push(section(&title, "what can be set of this mechanism", keys.collect()));
    }
    sections.push(section("[calibration]", "makes the file a calibration of a machine", fields(CALIBRATION)));
    sections.push(section(
        "[contention]",
        "what it costs to copy out of another process, and how much many that do so hold each other up (contention.md)",
        fields(CONTENTION),
    ));
    sections.push(section("[[figure]]", "one measurement of a calibration", fields(FIGURE)));
    sections
}

impl Field {
    fn entry(&self) -> Entry {
        Entry {
            name: self.name,
            kind: self.kind,
            unit: self.unit,
            default: self.default.to_owned(),
            bounds: self.bounds.to_owned(),
            variable: self.variable.map(str::to_owned),
            meaning: self.meaning,
            reason: self.reason,
        }
    }
}

fn entry(key: &Key, variable: Option<String>, default: &Value) -> Entry {
    let (kind, unit) = match key.kind {
        Kind::Bytes { .. } => ("size", "bytes"),
        Kind::Milliseconds { .. } => ("time", "milliseconds"),
        Kind::PowerOfTwo { .. } => ("power of two", ""),
        Kind::Flag => ("true or false", ""),
        Kind::Cpu => ("whole number or \"none\"", ""),
        Kind::Folder => ("folder or \"none\"", ""),
        Kind::Mechanisms => ("list of paths or \"auto\"", ""),
        Kind::Copies => ("text", ""),
        Kind::Word(_) => ("word", ""),
        _ => ("whole number", ""),
    };
    let default = shown(key.kind, default);
    let bounds = bounds(key.kind);
    Entry { name: key.name, kind, unit, default, bounds, variable, meaning: key.meaning, reason: key.reason }
}

fn bounds(kind: Kind) -> String {
    let plain = |number: u64| number.to_string();
    let text = match kind {
        Kind::Bytes { least, most, multiple_of } => {
            let range = value::bounds(least, most, size::written);
            match multiple_of {
                1 => range,
                of => format!("{range}, a multiple of {}", size::written(of)),
            }
        }
        Kind::Count { least, most } | Kind::PowerOfTwo { least, most } => value::bounds(least, most, plain),
        Kind::Milliseconds { least, most } => value::bounds(least, most, size::written_time),
        Kind::Copies => kind.to_string(),
        Kind::Word(words) => words.join(", "),
        _ => String::new(),
    };
    text.trim_start_matches([',', ' ']).to_owned()
}
