use super::*;
use crate::programs::figures::Role;
use crate::stats::Spread;

fn figure(name: &str, own: &[f64], lmt: &[f64]) -> FigureResult {
    let ratio = Spread::of(&crate::stats::ratios(own, lmt));
    let (name, unit) = (name.to_owned(), "s".to_owned());
    FigureResult {
        name,
        unit,
        better: Better::Lower,
        role: Role::Time,
        own: own.into(),
        lmt: lmt.into(),
        ratio,
    }
}

fn result(verdict: Verdict, figures: Vec<FigureResult>) -> CaseResult {
    CaseResult {
        program: "one".into(),
        title: "One".into(),
        kind: "halo exchange",
        mpi: "openmpi 4.1.4".into(),
        ranks: 2,
        verdict,
        figures,
        paths: "ring 100.0 %".into(),
        bytes: 1,
    }
}

#[test]
fn what_lines_have_in_common_stands_once() {
    let figures = vec![figure("loop", &[2.0, 2.0, 4.0], &[1.0, 2.0, 1.0]), figure("rest", &[1.0], &[2.0])];
    let text = lines(&result(Verdict::Right, figures));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines[0],
        [
            "one",
            "openmpi",
            "4.1.4",
            "2",
            "loop",
            "2.00",
            "1.00",
            "s",
            "2.00",
            "1.50..3.00",
            "ring",
            "100.0",
            "%"
        ]
    );
    assert_eq!(lines[1], ["rest", "1.00", "2.00", "s", "0.50"]);
}

#[test]
fn failures_are_named() {
    let text = lines(&result(Verdict::LmtFails("it hangs".into()), vec![figure("loop", &[], &[])]));
    assert!(text.contains("FAILS over lmt: it hangs") && text.lines().count() == 1, "{text}");
    let text = lines(&result(Verdict::OwnFails("it hangs".into()), vec![]));
    assert!(text.contains("fails over its own transport too, and counts for nothing: it hangs"), "{text}");
}

#[test]
fn numbers_have_three_digits_that_count() {
    let all = [1234.5, 12.34, 1.234, 0.1234, 0.01234, 0.0, 0.0000123].map(number);
    assert_eq!(all, ["1234", "12.3", "1.23", "0.123", "0.01234", "0", "1.23e-5"]);
}

#[test]
fn what_is_left_out_stands_below_with_its_reason() {
    let left_out = [LeftOut { name: "two".into(), reason: "lmp is not there".into() }];
    let text = foot(&Totals { right: 3, timed: 3, no_slower: 2, ..Totals::default() }, &left_out, true);
    assert!(text.contains("# two is left out: lmp is not there\n") && text.contains("2 of 3"), "{text}");
    assert!(!foot(&Totals::default(), &[], false).contains("slower"));
}
