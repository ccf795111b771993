use super::*;
use crate::environment::Environment;
use crate::output::tests::job;
use crate::peers::result::tests::size;

fn comparison() -> Comparison {
    let settings = Job { mechanisms: vec!["auto".into()], ..job() };
    let mut rows = vec![Row::of(&size()).unwrap()];
    rows.push(Row { bytes: 1 << 20, ..rows[0].clone() });
    rows.push(Row { bytes: 0, limit: None, best_peer: None, ..rows[0].clone() });
    let peers =
        vec![PeerCard { name: "<mpi>".into(), version: "1 & 2".into(), mpiexec: "/bin/mpiexec".into() }];
    let environment = Environment::record(&settings);
    let figures = vec![Figure {
        number: 1,
        asked: "< 0.7".into(),
        found: "0.5".into(),
        met: Some(true),
        is_shown_only: false,
    }];
    Comparison { peers, scenes: vec![Scene { settings, environment, rows }], figures }
}

#[test]
fn the_page_has_everything_and_needs_nothing() {
    let page = comparison().to_html().unwrap();
    for part in [
        "side by side with MPIs",
        "&lt;mpi&gt;",
        "1 &amp; 2",
        "<dt>kernel</dt>",
        "pingpong, in use, on cache",
        "&lt; 0.7",
        ">met</td>",
        "ours / best peer",
        "intelmpi, µs",
        "best method (bare)",
        "0.500",
        "<td>cma</td></tr>",
        "</html>",
    ] {
        assert!(page.contains(part), "{part} is missing:\n{page}");
    }
    assert_eq!(page.matches("<svg role=\"img\" ").count(), 1);
    assert!(!page.contains("<mpi>") && !page.contains("<script") && !page.contains("src="));
}

#[test]
fn nothing_measured_is_an_error() {
    let empty = Comparison { scenes: Vec::new(), ..comparison() };
    assert!(empty.to_html().is_err());
}
