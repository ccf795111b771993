use std::path::Path;

use lmt_core::config_key::Value;
use lmt_core::selection::{Reuse, Warmth};

use crate::config::parse_file;
use crate::config::test_support::{complaints, known, parse};
use crate::configuration::DmaMinSetting;
use crate::rules::{Authority, Bound, Take};
use crate::topology::Place;

#[test]
fn all_of_a_rule_is_read() {
    let parsed = parse(
        "[[rule]]\nabove = \"64 KiB\"\nup_to = \"DMAmin\"\nplace = [\"shared-l2\", \"other\"]\nsegments = \"many\"\nsender = \"cold\"\nreuse = \"again\"\nmin_processes = 3\ntake = [\"cma:put\", \"net\"]\nmax_readers = 4\n\n[[rule]]\nup_to = 0x1000\nplace = \"same-core\"\ntake = \"eager\"\n",
    )
    .unwrap();
    let [rule, eager] = &parsed.layer.rules[..] else { panic!("{:?}", parsed.layer.rules) };
    assert_eq!((rule.above, rule.up_to), (Some(Bound::Bytes(65536)), Some(Bound::DmaMin)));
    assert_eq!(rule.places, [Place::SharedL2, Place::Other]);
    assert_eq!(
        (rule.contiguous, rule.warmth, rule.reuse),
        (Some(false), Some(Warmth::Cold), Some(Reuse::Again))
    );
    assert_eq!((rule.min_processes, rule.max_readers, rule.line), (Some(3), Some(4), 1));
    let Take::Ways(ways) = &rule.take else { panic!("{:?}", rule.take) };
    assert_eq!(ways.iter().map(ToString::to_string).collect::<Vec<_>>(), ["cma:put", "net"]);
    assert_eq!((&eager.take, eager.up_to, eager.line), (&Take::Eager, Some(Bound::Bytes(4096)), 12));
}

#[test]
fn keys_are_read_with_their_lines_and_units() {
    let parsed = parse(
        "[endpoint]\neager_max_bytes = \"64 KiB\"\nconnect_timeout_ms = \"2 min\"\nsocket_dir = \"none\"\nallow_other_users = true\n\n[selection]\ndma_min = \"1MiB\"\nmax_readers = 2\n\n[mechanism.shm]\nbuffer_bytes = 8192\nabove = \"4 KiB\"\n",
    )
    .unwrap();
    let endpoint = |key: &str| {
        parsed.endpoint.iter().find(|(name, ..)| *name == key).map(|(_, v, line)| (v.clone(), *line))
    };
    assert_eq!(endpoint("eager_max_bytes"), Some((Value::Number(65536), 2)));
    assert_eq!(endpoint("connect_timeout_ms"), Some((Value::Number(120_000), 3)));
    assert_eq!(endpoint("socket_dir"), Some((Value::Absent, 4)));
    assert_eq!(endpoint("allow_other_users"), Some((Value::Flag(true), 5)));
    assert_eq!(parsed.dma_min, Some((DmaMinSetting::Bytes(1 << 20), 8)));
    assert_eq!(parsed.max_readers, Some((2, 9)));
    assert_eq!((parsed.mechanisms[0].value.clone(), parsed.mechanisms[0].line), (Value::Number(8192), 12));
    assert_eq!(parsed.layer.ranges[0].above, Some(Bound::Bytes(4096)));
    assert_eq!(parsed.layer.ranges[0].line, 11);
}

/// What is wrong, and which words of the sentence are to say so.
const WRONG: &[(&str, &str, &str)] = &[
    // TOML itself.
    ("spins = \n", "1:9", "this is no TOML"),
    ("[endpoint]\nspins = 1\nspins = 2\n", "3:1", "a second time"),
    // Names.
    ("[endpiont]\n", "1:2", "did you mean `endpoint`?"),
    ("spins = 5\n", "1:1", "`spins` stands in [endpoint]"),
    ("max_readers = 5\n", "1:1", "`max_readers` stands in [selection]"),
    ("[endpoint]\neager_max = 5\n", "2:1", "did you mean `eager_max_bytes`?"),
    ("[selection]\nreaders = 5\n", "2:1", "there is no key `readers`"),
    ("[[rule]]\nupto = 5\ntake = \"shm\"\n", "2:1", "did you mean `up_to`?"),
    ("[[rule]]\ntake = [\"cmaa\"]\n", "2:9", "did you mean `cma`?"),
    ("[[rule]]\ntake = [\"cma:got\"]\n", "2:9", "one of get, put, cooperative, both"),
    ("[[rule]]\ntake = [\"shm:get\"]\n", "2:9", "it has `shm:cooperative`"),
    ("[[rule]]\ntake = [\"\"]\n", "2:9", "is no mechanism"),
    (
        "[endpoint]\nmechanisms = [\"cma\", \"infiniband\"]\n",
        "2:22",
        "the mechanisms are cma, net-fast, net-slow, shm, net",
    ),
    ("[mechanism.cna]\nabove = 1\n", "1:12", "did you mean `cma`?"),
    ("[mechanism.\"cma:get\"]\nabove = 1\n", "1:12", "says who copies"),
    ("[mechanism.cma]\nbuffer_bytes = 4096\n", "2:1", "the keys of [mechanism.cma] are above, up_to"),
    ("[[rule]]\nplace = \"shared-l4\"\ntake = \"shm\"\n", "2:9", "did you mean `shared-l1`?"),
    ("[calibration]\ndates = \"\"\n", "2:1", "did you mean `date`?"),
    // Types.
    ("endpoint = 5\n", "1:12", "not a table"),
    ("rule = 5\n", "1:8", "not a list of tables"),
    ("rule = [5]\n", "1:9", "not a table"),
    ("mechanism = 5\n", "1:13", "[mechanism.cma]"),
    ("[endpoint]\nspins = \"5\"\n", "2:9", "without quotes"),
    ("[endpoint]\nspins = 1.5\n", "2:9", "is a number with a point"),
    ("[endpoint]\nspins = -1\n", "2:9", "negative"),
    ("[endpoint]\nallow_other_users = \"true\"\n", "2:21", "true or false without quotes"),
    ("[endpoint]\nmechanisms = [1]\n", "2:14", "a list of more than names"),
    ("[endpoint]\nmechanisms = []\n", "2:14", "an empty list"),
    ("[endpoint]\nsocket_dir = \"\"\n", "2:14", "is empty"),
    ("[[rule]]\nabove = true\ntake = \"shm\"\n", "2:9", "a size such as"),
    ("[[rule]]\nplace = []\ntake = \"shm\"\n", "2:9", "an empty list"),
    ("[[rule]]\ntake = []\n", "2:8", "an empty list"),
    ("[[rule]]\ntake = [1]\n", "2:9", "is a whole number"),
    ("[[rule]]\nsegments = \"two\"\ntake = \"shm\"\n", "2:12", "one of one, many"),
    // Units.
    ("[endpoint]\neager_max_bytes = \"64 kB\"\n", "2:19", "write \"64 KiB\""),
    ("[endpoint]\neager_max_bytes = \"64 ms\"\n", "2:19", "whose unit `ms` is not known"),
    ("[endpoint]\neager_max_bytes = \"64\"\n", "2:19", "write \"64 B\""),
    ("[endpoint]\nconnect_timeout_ms = \"5 KiB\"\n", "2:22", "text with ms, s or min"),
    ("[endpoint]\nconnect_timeout_ms = \"5 sec\"\n", "2:22", "write \"5 s\""),
    ("[[rule]]\nup_to = \"1 mb\"\ntake = \"shm\"\n", "2:9", "write \"1 MiB\""),
    ("[[rule]]\nup_to = \"dma-min\"\ntake = \"shm\"\n", "2:9", "it is written \"DMAmin\""),
    ("[selection]\ndma_min = \"by-core\"\n", "2:11", "did you mean `by-cores`?"),
    // Bounds.
    ("[endpoint]\neager_max_bytes = \"2 MiB\"\n", "2:19", "it must be a size, at most 1 MiB"),
    ("[endpoint]\ncell_bytes = 1000\n", "2:14", "a multiple of 64 B from 512 B to 1 MiB"),
    ("[endpoint]\ninbox_cells = 100\n", "2:15", "a power of two from 8 to 65536"),
    ("[endpoint]\nquota_bytes = \"99999999999 GiB\"\n", "2:15", "too large"),
    ("[selection]\nmax_readers = 0\n", "2:15", "from 1 to 4294967295"),
    ("[selection]\ndma_min = 0\n", "2:11", "no size from 1 B up"),
    ("[[rule]]\nmin_processes = 1\ntake = \"shm\"\n", "2:17", "from 2 to 65536"),
    ("[selection]\ndma_min = \"0\"\n", "2:11", "it must be \"by-cores\""),
    ("[endpoint]\nquota_bytes = \"1 kB\"\n", "2:15", "it must be a size, at least 4 KiB"),
    // Rules.
    ("[[rule]]\nup_to = 5\n", "1:1", "does not say what is taken"),
    ("[[rule]]\nabove = 5\nup_to = 5\ntake = \"shm\"\n", "2:9", "no length is in this range"),
    ("[mechanism.shm]\nabove = \"DMAmin\"\nup_to = \"DMAmin\"\n", "2:9", "no length is in this range"),
    ("[[rule]]\ntake = \"eager\"\n", "2:8", "ends at 1 MiB at most"),
    ("[[rule]]\nup_to = \"2 MiB\"\ntake = \"eager\"\n", "3:8", "ends at 1 MiB at most"),
    ("[[rule]]\nup_to = \"DMAmin\"\ntake = \"eager\"\n", "3:8", "ends at 1 MiB at most"),
    ("[[rule]]\nabove = 1\nup_to = 9\ntake = \"eager\"\n", "4:8", "leave `above` out"),
    ("[[rule]]\nup_to = 9\nmax_readers = 9\ntake = \"eager\"\n", "4:8", "leave `max_readers` out"),
    ("[[rule]]\nup_to = 9\nsegments = \"one\"\ntake = \"eager\"\n", "4:8", "leave `segments` out"),
    ("[[rule]]\nup_to = 9\nsender = \"warm\"\ntake = \"eager\"\n", "4:8", "leave `sender` out"),
    ("[[rule]]\nup_to = 9\nreuse = \"once\"\ntake = \"eager\"\n", "4:8", "leave `reuse` out"),
    // Rules beside others, keys and ranges.
    (
        "[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n[[rule]]\nup_to = \"64 KiB\"\ntake = \"shm\"\n",
        "4:1",
        "all that it fits is eager",
    ),
    (
        "[[rule]]\nup_to = 4096\ntake = \"shm\"\n[endpoint]\neager_max_bytes = 4096\n",
        "1:1",
        "let less travel in cells",
    ),
    ("[[rule]]\nup_to = 0\ntake = \"shm\"\n", "1:1", "only the empty message"),
    (
        "[[rule]]\nabove = 9\nup_to = 99\nsender = \"cold\"\ntake = \"shm\"\n[[rule]]\nup_to = 99\ntake = \"eager\"\n",
        "1:1",
        "all that it fits is eager",
    ),
    (
        "[[rule]]\ntake = \"shm\"\n[[rule]]\nup_to = 99\ntake = \"eager\"\n",
        "3:1",
        "no message reaches this rule",
    ),
    (
        "[[rule]]\nabove = 9\ntake = \"shm\"\n[[rule]]\nup_to = 99\ntake = \"eager\"\n",
        "4:1",
        "the one on line 1 fit the same messages",
    ),
    (
        "[endpoint]\neager_max_bytes = 5\n[[rule]]\nup_to = 9\ntake = \"eager\"\n",
        "2:1",
        "`eager_max_bytes` has no effect",
    ),
    (
        "[mechanism.cma]\nabove = \"1 MiB\"\n[[rule]]\nup_to = \"64 KiB\"\ntake = [\"cma\"]\n",
        "3:1",
        "nothing that this rule takes may be taken",
    ),
    (
        "[mechanism.net]\nabove = \"DMAmin\"\n[[rule]]\nup_to = \"DMAmin\"\ntake = [\"net-slow\", \"net-fast:put\"]\n",
        "3:1",
        "nothing that this rule takes may be taken",
    ),
    (
        "[selection]\ndma_min = \"2 MiB\"\n[[rule]]\nabove = \"4 MiB\"\nup_to = \"DMAmin\"\ntake = \"shm\"\n",
        "4:9",
        "no length is in this range",
    ),
    ("[calibration]\n[endpoint]\nmechanisms = [\"cma\"]\n", "3:1", "leaves out no mechanism"),
    ("[[rule]]\ntake = [\"eager\", \"shm\"]\n", "2:9", "cannot stand in a list"),
    ("[[rule]]\ntake = [\"shm\", \"shm\"]\n", "2:16", "named twice"),
    ("[[rule]]\nplace = [\"other\", \"other\"]\ntake = \"shm\"\n", "2:19", "named twice"),
    (
        "[[rule]]\nup_to = 9\ntake = \"shm\"\n[[rule]]\nabove = 5\ntake = \"cma\"\n",
        "4:1",
        "the one on line 1 fit the same messages",
    ),
    (
        "[[rule]]\ntake = \"shm\"\n[[rule]]\nabove = 5\ntake = \"cma\"\n",
        "3:1",
        "no message reaches this rule",
    ),
    // Calibrations.
    ("[calibration]\ncomplete = 1\n", "2:12", "true or false"),
    ("[calibration]\ncpus = 2\n", "2:8", "a text"),
    ("[calibration]\nskipped = [1]\n", "2:11", "a list of texts"),
    (
        "[calibration]\n[[figure]]\nplace = \"other\"\n",
        "2:1",
        "lacks pairs, off_cache, bytes, way, median_ns",
    ),
];

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_would_be_right() {
    for (text, place, words) in WRONG {
        let told = complaints(text);
        assert_eq!(told.len(), 1, "{text}\n{told:#?}");
        let prefix = format!("lmt.toml:{place}: ");
        assert!(
            told[0].starts_with(&prefix) && told[0].contains(words),
            "{text}\n{}\nshould be at {place}: {words}",
            told[0]
        );
        assert!(!told[0].contains('\n'), "one sentence: {}", told[0]);
    }
}

#[test]
fn all_problems_of_a_file_are_told_in_its_order() {
    let told = complaints(
        "[selection]\nmax_reader = 1\n\n[endpoint]\nspins = true\nyields = -1\n\n[[rule]]\ntake = [\"cna\", \"shn\"]\n",
    );
    let lines: Vec<&str> = told.iter().filter_map(|sentence| sentence.split(':').nth(1)).collect();
    assert_eq!(lines, ["2", "5", "6", "9", "9"], "{told:#?}");
}

#[test]
fn figures_without_a_table_that_says_where_they_come_from_are_refused() {
    let figure = "[[figure]]\nplace = \"other\"\npairs = 1\noff_cache = false\nbytes = \"64 KiB\"\nway = \"gone:get\"\nmedian_ns = 9\n";
    assert!(complaints(figure)[0].contains("no table [calibration]"));
    let parsed =
        parse(&format!("[calibration]\ndate = 2026-11-21T10:00:00Z\ncpus = \"0-1\"\n{figure}")).unwrap();
    assert_eq!(parsed.layer.authority, Authority::Calibration);
    assert_eq!((parsed.layer.figures[0].bytes, parsed.layer.figures[0].median_ns), (65536, 9));
    let told = parsed.calibration.unwrap().told;
    assert_eq!(told, [("cpus", "0-1".to_owned()), ("date", "2026-11-21T10:00:00Z".to_owned())]);
}

#[test]
fn a_key_twice_hides_no_other_problem() {
    let told = complaints("[endpoint]\nspins = 1\nspins = 2\nyield = 1\n");
    assert_eq!(told.len(), 2, "{told:#?}");
}

/// The parser's limits hold, whatever a file nests.
#[test]
fn deep_nesting_is_refused() {
    for open in ["[", "{a="] {
        let told = complaints(&format!("x = {}", open.repeat(50_000)));
        assert!(told.iter().any(|sentence| sentence.contains("no TOML")), "{:?}", told.first());
    }
}

#[test]
fn more_rules_than_a_file_may_have_are_refused() {
    let rule = |at: u32| format!("[[rule]]\nabove = {at}\nup_to = {}\ntake = \"shm\"\n", at + 1);
    let rules = |count: u32| (0..count).map(rule).collect::<String>();
    assert!(complaints(&rules(1024)).is_empty());
    let told = complaints(&rules(1025));
    assert_eq!(told.len(), 1, "{:?}", told.first());
    assert!(told[0].contains("at most 1024"), "{}", told[0]);
}

#[test]
fn an_exception_may_stand_before_its_rule() {
    let told = complaints(
        "[[rule]]\nplace = \"shared-l2\"\nabove = 5\ntake = \"shm\"\n[[rule]]\nup_to = 9\ntake = \"cma\"\n[[rule]]\nabove = 9\ntake = \"net\"\n",
    );
    assert!(told.is_empty(), "{told:#?}");
}

/// Rules of ways speak of what is announced, whatever an eager rule before them
/// says; and bounds that leave something for a rule to take leave it be.
#[test]
fn what_means_something_is_accepted() {
    let right = [
        "[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n[[rule]]\ntake = [\"shm\"]\n",
        "[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n[[rule]]\nabove = 9\nup_to = \"1 MiB\"\ntake = [\"shm\"]\n",
        "[[rule]]\nplace = \"shared-l2\"\nabove = 9\nup_to = 99\ntake = \"shm\"\n[[rule]]\nup_to = 99\ntake = \"eager\"\n",
        "[endpoint]\neager_max_bytes = 5\n[[rule]]\nplace = \"other\"\nup_to = 9\ntake = \"eager\"\n",
        "[endpoint]\neager_max_bytes = 5\n[[rule]]\nup_to = 6\ntake = \"shm\"\n",
        "[endpoint]\neager_max_bytes = 99\n[[rule]]\nplace = \"shared-l2\"\nabove = 9\nup_to = 99\ntake = \"shm\"\n",
        "[mechanism.cma]\nabove = \"1 MiB\"\n[[rule]]\nup_to = \"2 MiB\"\ntake = [\"cma\"]\n",
        "[mechanism.cma]\nabove = \"1 MiB\"\n[[rule]]\nup_to = \"64 KiB\"\ntake = [\"cma\", \"shm\"]\n",
        "[mechanism.net]\nabove = \"1 MiB\"\n[mechanism.net-slow]\nup_to = \"1 MiB\"\n[[rule]]\nup_to = \"64 KiB\"\ntake = [\"net\"]\n",
        "[calibration]\n[endpoint]\neager_max_bytes = 5\n[selection]\nmax_readers = 3\n",
    ];
    for text in right {
        assert!(complaints(text).is_empty(), "{text}\n{:#?}", complaints(text));
    }
}

/// What cannot be read is told, and not what would be wrong without it.
#[test]
fn a_rule_that_cannot_be_read_makes_no_other_unreachable() {
    let told = complaints(
        "[[rule]]\nplace = \"shared-l2\"\nabove = \"9 kB\"\nup_to = 9999\ntake = \"shm\"\n[[rule]]\nup_to = \"64 KiB\"\ntake = \"eager\"\n[[rule]]\nup_to = \"32 KiB\"\ntake = \"cma\"\n",
    );
    assert_eq!(told.len(), 1, "{told:#?}");
}

#[test]
fn an_empty_file_is_a_layer_that_says_nothing() {
    let parsed = parse_file(Path::new("x.toml"), "", Authority::User, &known()).unwrap();
    assert!(parsed.endpoint.is_empty() && parsed.layer.rules.is_empty() && parsed.calibration.is_none());
}

mod properties {
    use proptest::prelude::*;

    use crate::config::test_support::parse;

    /// Pieces that files are made of, right and wrong.
    const PIECES: &[&str] = &[
        "[",
        "]",
        "[[",
        "]]",
        "endpoint",
        "selection",
        "mechanism",
        "rule",
        "calibration",
        "contention",
        "gamma",
        "figure",
        ".",
        " = ",
        "\n",
        "\"",
        "'",
        "shm",
        "cma:get",
        "64 KiB",
        "64 kB",
        "DMAmin",
        "above",
        "up_to",
        "take",
        "place",
        "other",
        "5",
        "-1",
        "0x",
        "1e9",
        "18446744073709551616",
        "true",
        "{",
        "}",
        ",",
        "#",
        "\u{e9}",
        "\u{1f980}",
        "\t",
        "\r\n",
        "\u{0}",
        "eager",
        "spins",
        "eager_max_bytes",
        "[[rule]]\n",
        "[endpoint]\n",
        "take = \"shm\"\n",
        "above = 5\n",
        "up_to = \"1 MiB\"\n",
        "[mechanism.shm]\n",
        "buffer_bytes = ",
        "\"\"\"",
        "2026-11-21T10:00:00Z",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Whatever the text, it is read or refused with problems that can be
        /// shown.
        #[test]
        fn no_text_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
            if let Err(problems) = parse(&pieces.concat()) {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!(!problem.render().is_empty());
                    prop_assert!(!problem.to_string().is_empty());
                }
            }
        }

        #[test]
        fn no_characters_make_it_panic(text in any::<String>()) {
            if let Err(problems) = parse(&text) {
                problems.iter().for_each(|problem| drop(problem.render()));
            }
        }
    }
}
