use super::*;

fn names(kind: Kind, asked: Option<&str>) -> Vec<String> {
    algorithms(kind, asked).unwrap().into_iter().map(name_of).collect()
}

#[test]
fn lists_mean_each_once() {
    assert_eq!(names(Kind::Broadcast, None), ["auto"]);
    assert_eq!(
        names(Kind::Broadcast, Some("knomial:8, auto,knomial:8,knomial")),
        ["knomial:8", "auto", "knomial:4"]
    );
    let all = names(Kind::Scatter, Some("all"));
    assert_eq!(all[0], AUTO);
    assert_eq!(all.len(), 1 + Algorithm::of(Kind::Scatter).count());
    assert_eq!(names(Kind::Scatter, Some("throttled-read:2,all"))[..2], ["throttled-read:2", "auto"]);
}

#[test]
fn what_cannot_be_is_one_sentence_with_what_could() {
    for (asked, part) in [
        (
            "kmonial",
            "there is no algorithm 'kmonial'; bcast is done by slots, messages, pipelined:64, direct-read",
        ),
        ("pairwise", "pairwise does not do bcast; bcast is done by"),
        ("knomial:0", "there is no algorithm"),
        ("", "there is no algorithm"),
    ] {
        let error = algorithms(Kind::Broadcast, Some(asked)).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains(part), "{error}");
    }
}
