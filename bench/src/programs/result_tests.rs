use super::*;
use crate::programs::figures::Several;
use crate::programs::pattern::Pattern;

fn figure(better: Better, role: Role, own: &[f64], lmt: &[f64]) -> FigureResult {
    let pattern = Pattern::try_from("(x)".to_owned()).unwrap();
    let (name, unit, several) = ("time".into(), "s".into(), Several::Last);
    FigureResult::of(FigureRule { name, pattern, unit, better, role, several }, own.into(), lmt.into())
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
        paths: String::new(),
        bytes: 1,
    }
}

#[test]
fn ratios_are_of_turns_and_above_one_where_lmt_is_better() {
    let time = figure(Better::Lower, Role::Time, &[2.0, 4.0, 3.0], &[1.0, 4.0, 1.0]);
    assert_eq!(time.ratio, Some(Spread { lower: 1.5, median: 2.0, upper: 2.5 }));
    let rate = figure(Better::Higher, Role::Other, &[2.0], &[1.0]);
    assert_eq!(rate.ratio.unwrap().median, 0.5);
    assert_eq!(figure(Better::Lower, Role::Time, &[], &[1.0]).ratio, None);
}

#[test]
fn totals_count_what_was_right() {
    let one = |ratio: f64| figure(Better::Lower, Role::Time, &[ratio], &[1.0]);
    let communication = |ratio: f64| figure(Better::Lower, Role::Communication, &[ratio], &[1.0]);
    let results = [
        result(Verdict::Right, vec![one(0.96), communication(1.2)]),
        result(Verdict::Right, vec![one(0.9), communication(0.9)]),
        result(Verdict::Right, vec![one(1.5)]),
        result(Verdict::OwnFails("it hangs".into()), vec![one(9.0), communication(9.0)]),
        result(Verdict::LmtFails("it hangs".into()), vec![one(9.0)]),
    ];
    let totals = Totals::of(&results);
    let expected =
        Totals { all: 4, right: 3, no_slower: 2, timed: 3, faster_communication: 1, with_communication: 2 };
    assert_eq!(totals, expected);
}
