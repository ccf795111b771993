use super::super::diagnosis::Diagnosis;
use super::super::{Grouped, Report};
use super::*;

fn finding(name: &str, state: State) -> Finding {
    Finding::new(name, state, format!("{name} is so")).fixed_by(format!("change {name}"))
}

fn report() -> Report {
    let mechanism = |name, state, findings| Diagnosis {
        name,
        state,
        meaning: format!("how {name} does"),
        fix: Some("change common".to_owned()),
        errno: 0,
        needs: "kernel",
        any_memory: true,
        is_best: name == "first",
        findings,
    };
    let common = finding("common", State::Blocked);
    Report {
        lmt: "0",
        root: None,
        ranks: 2,
        findings: vec![
            Grouped { group: "one", finding: finding("a", State::Limited) },
            Grouped { group: "two", finding: finding("b", State::Missing) },
        ],
        mechanisms: vec![
            mechanism("first", State::Blocked, vec![common.clone()]),
            mechanism("second", State::Blocked, vec![common]),
        ],
        best: vec!["first"],
        ok: false,
        verdict: "That is all.".to_owned(),
    }
}

#[test]
fn groups_marks_and_fixes_stand_in_order_and_the_verdict_last() {
    let text = table(&report(), false);
    let expected = [
        "mechanisms",
        "[blocked]",
        "first",
        "how first does (of the best",
        "common is so",
        "-> change common",
        "second",
        "-> change common",
        "one\n",
        "[limited]",
        "-> change a",
        "two\n",
        "[missing]",
        "That is all.\n",
    ];
    let mut rest = text.as_str();
    for part in expected {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part} in its place in\n{text}"));
        rest = &rest[at + part.len()..];
    }
    assert_eq!(rest, "");
    assert_eq!(text.matches("common is so").count(), 1, "what two have in common is told once:\n{text}");
}

#[test]
fn colours_are_only_where_they_were_asked_for() {
    assert!(!table(&report(), false).contains('\x1b'));
    let coloured = table(&report(), true);
    assert!(coloured.contains("\x1b[31m[blocked] \x1b[0m"), "{coloured:?}");
}

#[test]
fn another_machines_files_are_announced() {
    let root = Some("/elsewhere".into());
    assert!(table(&Report { root, ..report() }, false).starts_with("Files are read below /elsewhere;"));
}

#[test]
fn lines_are_wrapped_between_words() {
    let text = wrap(&"word ".repeat(60), 10);
    assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("          word")), "{text}");
    assert_eq!(text.split_whitespace().count(), 60);
    let long = "x".repeat(200);
    assert_eq!(wrap(&format!("a {long} b"), 2), format!("  a\n  {long}\n  b\n"));
}

#[test]
fn a_long_name_has_its_own_line() {
    let mut text = String::new();
    line(&mut text, 2, State::Good, "a name that is far too long for its column", "so it is", None, false);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().nth(1).unwrap().trim_start() == "so it is", "{text}");
}
