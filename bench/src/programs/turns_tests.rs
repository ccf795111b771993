use super::*;

fn ran(seconds: f64, printed: &str) -> Result<Ran, Failure> {
    Ok(Ran { figures: vec![seconds], printed: vec![vec![printed.to_owned()]], statistics: String::new() })
}

fn failed(sentence: &str) -> Result<Ran, Failure> {
    Err(Failure { sentence: sentence.to_owned(), kept: None })
}

/// Takes turns with runs that this makes, and says in which order they came.
fn turns(
    count: u32,
    with_own: bool,
    mut make: impl FnMut(bool, usize) -> Result<Ran, Failure>,
) -> (Turns, Vec<String>) {
    let mut labels = Vec::new();
    let mut run = |transport, label: &str| {
        labels.push(label.to_owned());
        Ok(make(transport == Transport::Lmt, labels.len()))
    };
    let turns = take_turns(count, with_own, &mut run).unwrap();
    (turns, labels)
}

#[test]
fn who_comes_first_changes() {
    let (all, labels) = turns(3, true, |is_lmt, _| ran(if is_lmt { 1.0 } else { 2.0 }, "1"));
    assert_eq!(labels, ["own-1", "lmt-1", "lmt-2", "own-2", "own-3", "lmt-3"]);
    assert_eq!((all.verdict, all.own.len(), all.lmt.len()), (Verdict::Right, 3, 3));
    assert!(all.lmt.iter().all(|run| run.figures == [1.0]));
}

#[test]
fn without_its_own_transport_only_lmt_runs() {
    let (all, labels) = turns(2, false, |_, _| ran(1.0, "1"));
    assert_eq!(labels, ["lmt-1", "lmt-2"]);
    assert_eq!((all.own.len(), all.lmt.len()), (0, 2));
}

#[test]
fn one_that_fails_over_its_own_transport_counts_for_nothing() {
    let (all, labels) = turns(7, true, |is_lmt, _| if is_lmt { ran(1.0, "1") } else { failed("it hangs") });
    assert_eq!((all.verdict, labels.len()), (Verdict::OwnFails("it hangs".into()), 1));
}

#[test]
fn one_that_fails_over_lmt_is_tried_again_over_its_own_transport() {
    let (all, labels) = turns(7, true, |is_lmt, _| if is_lmt { failed("it hangs") } else { ran(1.0, "1") });
    assert_eq!(all.verdict, Verdict::LmtFails("it hangs".into()));
    assert_eq!(labels.len(), 2 + OWN_TRIES as usize);
    // Which fails now and then by any transport.
    let (all, _) = turns(
        7,
        true,
        |is_lmt, number| {
            if is_lmt || number == 5 { failed("it hangs") } else { ran(1.0, "1") }
        },
    );
    assert_eq!(all.verdict, Verdict::OwnFails("it hangs; over lmt: it hangs".into()));
}

#[test]
fn a_wrong_result_is_one_that_the_own_transport_repeats_otherwise() {
    let (all, _) = turns(2, true, |is_lmt, _| ran(1.0, if is_lmt { "1.5" } else { "1.7" }));
    let Verdict::LmtFails(why) = all.verdict else { panic!("{:?}", all.verdict) };
    assert!(why.contains("it prints 1.5, and 1.7 over its own transport"), "{why}");
    assert!(all.lmt.is_empty() && all.own.is_empty());
    // Its results differ from run to run.
    let (all, _) = turns(2, true, |_, number| ran(1.0, &format!("{number}.0")));
    let Verdict::OwnFails(why) = all.verdict else { panic!("{:?}", all.verdict) };
    assert!(why.contains("differ from run to run"), "{why}");
    // Which is no reason to hang.
    let (all, _) = turns(
        2,
        true,
        |is_lmt, number| {
            if is_lmt { failed("it hangs") } else { ran(1.0, &format!("{number}.0")) }
        },
    );
    assert_eq!(all.verdict, Verdict::LmtFails("it hangs".into()));
}

#[test]
fn what_is_kept_is_said() {
    let kept = Failure { sentence: "it hangs".into(), kept: Some("out/failed/x".into()) };
    assert_eq!(sentence(kept), "it hangs (kept in out/failed/x)");
}
