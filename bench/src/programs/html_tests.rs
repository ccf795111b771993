use super::*;
use crate::programs::figures::{Better, Role};
use crate::programs::result::FigureResult;
use crate::programs::turns::Verdict;
use crate::stats::Spread;

#[test]
fn the_page_has_each_figure_and_says_what_failed() {
    let figure = |name: &str, ratio: f64| FigureResult {
        name: name.into(),
        unit: "s".into(),
        better: Better::Lower,
        role: Role::Time,
        own: vec![1.0; 3],
        lmt: vec![1.0; 3],
        ratio: Some(Spread { lower: 0.5, median: ratio, upper: 2.0 }),
    };
    let result = |program: &str, verdict| CaseResult {
        program: program.into(),
        title: "a <small> one".into(),
        kind: "sparse algebra",
        mpi: "openmpi 4.1.4".into(),
        ranks: 2,
        verdict,
        figures: vec![figure("loop", 1.25), figure("rest", 0.75)],
        paths: "cma 99.0 %".into(),
        bytes: 1,
    };
    let results = [result("one", Verdict::Right), result("two", Verdict::LmtFails("it hangs".into()))];
    let left_out = [LeftOut { name: "three".into(), reason: "it is not there".into() }];
    let environment = Environment::of(&[], "as they are".into());
    let html = to_html(&results, &Totals::of(&results), &left_out, &environment, 7, true);
    for part in [
        "<td class=\"chosen\">1.25</td><td>0.50..2.00</td><td>cma 99.0 %</td>",
        "<td>0.75</td>",
        "a &lt;small&gt; one",
        "FAILS over lmt: it hangs",
        "three: it is not there",
        "1 of 1",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert_eq!(html.matches("<tr>").count(), html.matches("</tr>").count());
}
