use super::*;
use crate::programs::files::{TABLE, embedded};

const ONE: &str = r#"
[[program]]
name = "one"
title = "One"
kind = "halo"
mpi = "debian"
command = ["one"]
must_match = ['^right$']
"#;

#[test]
fn the_table_is_right_and_its_files_are_there() {
    let all = parse(embedded(TABLE).unwrap(), TABLE).unwrap();
    assert!(all.len() >= 8, "{}", all.len());
    let mut kinds: Vec<&str> = all.iter().map(|program| program.kind.name()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert!(kinds.len() >= 4, "{kinds:?}");
    let short = choose(all.clone(), &[], true).unwrap();
    assert!(short.len() >= 4);
    for program in all.iter().chain(&short) {
        for file in &program.files {
            assert!(embedded(file).is_some(), "{}: {file}", program.name);
        }
    }
}

#[test]
fn what_is_not_said_has_a_value() {
    let all = parse(ONE, "x.toml").unwrap();
    assert_eq!((all[0].ranks(&[]), all[0].limit_s), (vec![2, 4], 300));
    assert!(all[0].short.is_none());
}

#[test]
fn a_program_runs_with_as_many_ranks_as_are_asked_for_if_it_can() {
    let any = parse(ONE, "x.toml").unwrap();
    assert_eq!(any[0].ranks(&[8, 16]), [8, 16]);
    let pairs = parse(&format!("{ONE}ranks = [2]"), "x.toml").unwrap();
    assert_eq!((pairs[0].ranks(&[]), pairs[0].ranks(&[8, 2])), (vec![2], vec![2]));
    assert!(pairs[0].ranks(&[8]).is_empty());
}

#[test]
fn a_wrong_table_is_said_with_its_place() {
    let wrong = |text: &str| parse(text, "x.toml").unwrap_err();
    let cases = [
        (ONE.replace("halo", "games"), "games"),
        (ONE.replace("title", "heading"), "heading"),
        (ONE.replace("^right$", "(right"), "unclosed group"),
        (ONE.replace("[\"one\"]", "[]"), "no command"),
        (ONE.replace("[\"one\"]", "['']"), "no command"),
        (ONE.replace("name = \"one\"", "name = '../one'"), "no name of a program"),
        (ONE.replace("name = \"one\"", "name = ''"), "no name of a program"),
        (format!("{ONE}limit_s = 0"), "take 1 to 86400"),
        (format!("{ONE}limit_s = 9223372036854775807"), "take 1 to 86400"),
        (format!("{ONE}ranks = [0]"), "take 2 to 1024"),
        (ONE.replace("must_match = ['^right$']", "must_match = []"), "no check of its result"),
        (format!("{ONE}agree = ['energy \\d+']"), "captures no number"),
        (format!("{ONE}{ONE}"), "there twice"),
    ];
    for (text, part) in cases {
        let sentence = wrong(&text);
        assert!(
            sentence.starts_with("x.toml is no table of programs") && sentence.contains(part),
            "{sentence}"
        );
    }
}

#[test]
fn programs_are_chosen_by_name_and_by_their_short_form() {
    let text = format!(
        "{ONE}short = {{ command = [\"one\", \"-s\"], ranks = [2] }}\n{}",
        ONE.replace("\"one\"", "\"two\"")
    );
    let all = || parse(&text, "x.toml").unwrap();
    let names = |chosen: Vec<Program>| chosen.into_iter().map(|program| program.name).collect::<Vec<_>>();
    assert_eq!(names(choose(all(), &[], false).unwrap()), ["one", "two"]);
    assert_eq!(names(choose(all(), &["two".into()], false).unwrap()), ["two"]);
    let short = choose(all(), &[], true).unwrap();
    assert_eq!(
        (short.len(), short[0].command.as_slice(), short[0].ranks(&[])),
        (1, ["one".into(), "-s".to_owned()].as_slice(), vec![2])
    );
    let sentence = choose(all(), &["three".into()], false).unwrap_err();
    assert_eq!(sentence, "there is no program three; take of one, two");
    let sentence = choose(all(), &["two".into()], true).unwrap_err();
    assert_eq!(sentence, "two has no short form; run it without --short");
}
