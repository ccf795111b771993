use lmt_core::selection::Source;
use proptest::option::of;
use proptest::prelude::*;

use super::*;
use crate::config::test_support::{complaints, known, parse};
use crate::config::write_collective;

fn one(text: &str) -> CollectiveRule {
    let parsed = parse(text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    parsed.collectives.into_iter().next().expect("a rule")
}

const WHOLE: &str = "[[collective]]
operation = \"spread\"
above = \"64 KiB\"
up_to = 1048576
min_ranks = 3
max_ranks = 64
algorithm = \"tree:4\"
";

#[test]
fn a_rule_has_all_that_it_says_and_where_it_stands() {
    let source = Source::File { path: "lmt.toml".into(), line: 3 };
    let expected = CollectiveRule {
        above: Some(65536),
        up_to: Some(1 << 20),
        min_ranks: Some(3),
        max_ranks: Some(64),
        ..CollectiveRule::new("spread", "tree:4", source)
    };
    assert_eq!(one(&format!("\n\n{WHOLE}")), expected);
    assert_eq!(expected.to_string(), "spread above 64 KiB up to 1 MiB on 3 to 64 ranks: tree:4");
    assert!(expected.fits(65537, 3) && expected.fits(1 << 20, 64));
    assert!(!expected.fits(65536, 3) && !expected.fits((1 << 20) + 1, 3));
    assert!(!expected.fits(65537, 2) && !expected.fits(65537, 65));
}

#[test]
fn a_calibrations_rules_are_its_own_wherever_it_says_that_it_is_one() {
    for text in [
        format!("{WHOLE}[calibration]\ncomplete = true\n"),
        format!("[calibration]\ncomplete = true\n{WHOLE}"),
    ] {
        assert!(matches!(one(&text).source, Source::Calibration { .. }), "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_with_what_would_be_right() {
    let with = |from: &str, to: &str| {
        assert!(WHOLE.contains(from), "{from}");
        let told = complaints(&WHOLE.replace(from, to));
        assert_eq!(told.len(), 1, "{from} -> {to}: {told:?}");
        told.into_iter().next().unwrap_or_default()
    };
    assert!(with("operation = \"spread\"\n", "").contains("has no `operation`"));
    assert!(with("algorithm = \"tree:4\"\n", "").contains("has no `algorithm`"));
    assert!(with("\"spread\"", "\" \"").contains("`operation` is empty"));
    assert!(with("\"spread\"", "3").contains("`operation` is a whole number"));
    let told = with("\"spread\"", "\"spred\"");
    assert_eq!(told, "lmt.toml:2:13: there is no operation spred; there are spread and collect");
    let told = with("\"tree:4\"", "\"ring\"");
    assert_eq!(told, "lmt.toml:7:13: spread is not done by ring; all-at-once does it");
    assert!(with("min_ranks", "min_rank").contains("did you mean `min_ranks`?"));
    assert!(with("= 3", "= 0").contains("`min_ranks` is 0; it must be a whole number from 1 to 1024"));
    assert!(with("max_ranks = 64", "max_ranks = 2").contains("`max_ranks` must be at least `min_ranks`"));
    assert!(with("\"64 KiB\"", "\"64 kB\"").contains("write \"64 KiB\""));
    for text in ["DMAmin", "dma_min"] {
        let told = with("\"64 KiB\"", &format!("\"{text}\""));
        assert!(
            told.ends_with(&format!("`above` is `{text}`; it must be a size such as \"64 KiB\"")),
            "{told}"
        );
    }
    let told = with("\"64 KiB\"", "1.5");
    assert!(
        told.ends_with("`above` is a number with a point; it must be a size such as \"64 KiB\""),
        "{told}"
    );
    let told =
        complaints("[[collective]]\noperation = \"collect\"\nup_to = 8\nalgorithm = \"all-at-once\"\n");
    assert_eq!(told, ["lmt.toml:3:9: collect has no lengths; leave them out"]);
    assert!(with("1048576", "65536").contains("no length is in this range"));
    assert!(complaints("[collective]\noperation = 1\n")[0].contains("begin each with [[collective]]"));
}

#[test]
fn where_nobody_knows_the_names_any_are_taken() {
    let text = "[[collective]]\noperation = \"dance\"\nalgorithm = \"waltz:3\"\n";
    assert!(!complaints(text).is_empty());
    let known = Known { collectives: None, ..known() };
    let path = std::path::Path::new("lmt.toml");
    let parsed = crate::config::parse_file(path, text, crate::rules::Authority::User, &known);
    assert_eq!(parsed.map(|parsed| parsed.collectives.len()), Ok(1));
}

#[test]
fn a_variable_has_pairs_with_commas() {
    let rules = of_variable(&known(), " spread=tree:4, *=all-at-once ").unwrap();
    let source = || Source::Environment { variable: "LMT_COLLECTIVES".into() };
    let expected = ["spread", "*"].map(|name| name.to_owned());
    assert_eq!(rules.iter().map(|rule| rule.operation.clone()).collect::<Vec<_>>(), expected);
    assert_eq!(rules[0], CollectiveRule::new("spread", "tree:4", source()));
    for (text, words) in [
        ("spread", "names no operation and algorithm"),
        ("spread=tree:4,", "names no operation and algorithm"),
        ("=tree:4", "names no operation and algorithm"),
        ("spread=ring", "has `spread=ring`: spread is not done by ring"),
        ("spred=tree:4", "there is no operation spred"),
    ] {
        let wrong = of_variable(&known(), text).unwrap_err();
        assert!(wrong.is.contains(words), "{text}: {wrong:?}");
        assert!(!wrong.help.is_empty());
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        above in of(0u64..1 << 30),
        length in of(1u64..1 << 30),
        least in of(1u32..100),
        more in of(0u32..100),
    ) {
        let up_to = length.map(|length| above.unwrap_or(0) + length);
        let max_ranks = more.map(|more| least.unwrap_or(1) + more);
        let source = Source::File { path: "lmt.toml".into(), line: 1 };
        let rule = CollectiveRule::new("*", "tree:2", source);
        let rule = CollectiveRule { above, up_to, min_ranks: least, max_ranks, ..rule };
        prop_assert_eq!(one(&write_collective(&rule)), rule);
    }
}
