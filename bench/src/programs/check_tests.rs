use super::*;
use crate::programs::table::parse;

fn program() -> Program {
    let text = r#"
        [[program]]
        name = "one"
        title = "One"
        kind = "halo"
        mpi = "debian"
        command = ["one"]
        must_match = ['^PASSED$']
        must_not_match = ['FAILED.*']
        agree = ['^energy (\S+)']
    "#;
    parse(text, "x").unwrap().remove(0)
}

#[test]
fn results_are_right_wrong_or_missing() {
    assert_eq!(check(&program(), "a\nPASSED\n"), Ok(()));
    let missing = check(&program(), "NOT PASSED\n").unwrap_err();
    assert!(missing.contains("nothing that it prints matches '^PASSED$'"), "{missing}");
    let wrong = check(&program(), "PASSED\nFAILED by 3\n").unwrap_err();
    assert!(wrong.contains("it prints 'FAILED by 3'"), "{wrong}");
}

#[test]
fn numbers_agree_within_their_last_digit() {
    let agrees = |one: &str, other: &str| {
        let read = |number: &str| printed(&program(), &format!("energy {number}\n")).unwrap();
        agree(&read(one), &read(other)).is_ok()
    };
    assert!(agrees("-2.280141", "-2.280141") && agrees("-2.280141", "-2.280142"));
    assert!(!agrees("-2.280141", "-2.280143") && !agrees("-2.280141", "2.280141"));
    assert!(agrees("1.234e-05", "1.235e-05") && !agrees("1.234e-05", "1.334e-05"));
    assert!(agrees("0.99999", "1.00000") && agrees("12", "13") && !agrees("12", "14"));
    assert!(agrees("same", "same") && !agrees("same", "other"));
}

#[test]
fn what_is_compared_must_be_there_as_often() {
    assert!(printed(&program(), "nothing").unwrap_err().contains("^energy"));
    assert!(printed(&program(), "energy nan\n").unwrap_err().contains("it prints nan, which is no number"));
    let once = printed(&program(), "energy 1\n").unwrap();
    let twice = printed(&program(), "energy 1\nenergy 2\n").unwrap();
    assert!(agree(&once, &twice).unwrap_err().contains("1 numbers, and 2"));
    let other = printed(&program(), "energy 1\nenergy 9\n").unwrap();
    assert_eq!(agree(&twice, &other).unwrap_err(), "it prints 2, and 9 over its own transport");
}
