use super::super::fixture::named;
use super::*;

fn found(set: &[&str]) -> Vec<Finding> {
    of(set.iter().map(ToString::to_string).collect(), &lmt::configuration::variables(), None)
}

#[test]
fn known_variables_are_listed() {
    assert_eq!(found(&[])[0].meaning, "none of lmt's is set");
    let set = found(&["LMT_MECHANISM", "LMT_CONFIG", "LMT_RANK"]);
    assert_eq!(set.len(), 1, "{set:?}");
    assert_eq!(set[0].meaning, "set and read: LMT_CONFIG, LMT_MECHANISM, LMT_RANK");
}

#[test]
fn a_slip_is_told_with_what_was_meant() {
    let set = found(&["LMT_EAGERMAX", "LMT_MECHANISMS", "LMT_ZEBRA", "LMT_MECHANISM"]);
    assert_eq!(set.len(), 4);
    for (slip, meant) in [("LMT_EAGERMAX", "LMT_EAGER_MAX"), ("LMT_MECHANISMS", "LMT_MECHANISM?")] {
        let slip = named(&set, slip);
        assert_eq!(slip.state, State::Limited);
        assert!(slip.fix.as_ref().unwrap().contains(meant), "{slip:?}");
    }
    assert_eq!(named(&set, "LMT_ZEBRA").fix.as_deref(), Some("unset LMT_ZEBRA"));
}

#[test]
fn a_value_that_cannot_be_read_is_blocked() {
    let error = Some("LMT_EAGER_MAX is `x`".to_owned());
    let found = of(vec!["LMT_EAGER_MAX".into()], &["LMT_EAGER_MAX".to_owned()], error);
    assert_eq!(found[0].state, State::Blocked);
    assert!(found[0].meaning.contains("`x`"));
}
