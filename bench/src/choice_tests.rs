use lmt::mechanism::Reach;

use super::*;

fn known() -> Vec<Mechanism> {
    let mechanism = |name: &str, unavailable: Option<&str>| Mechanism {
        name: name.to_owned(),
        unavailable: unavailable.map(str::to_owned),
        reach: Reach::AnyMemory,
    };
    vec![
        mechanism("one", None),
        mechanism("pair-first", Some("it is closed")),
        mechanism("pair-second", None),
        mechanism("gone", Some("it is gone")),
    ]
}

fn chosen(asked: &str) -> Result<Vec<String>, String> {
    choose_of(&known(), asked).map(|choice| choice.mechanisms).map_err(|error| error.to_string())
}

#[test]
fn a_list_means_each_of_its_parts_once() {
    for (asked, expected) in [
        ("auto", &["auto"][..]),
        ("all", &["one", "pair-second"]),
        ("auto,all", &["auto", "one", "pair-second"]),
        ("pair, one:put ,pair", &["pair-second", "one:put"]),
        ("auto,eager,announced", &["auto", "eager", "announced:one", "announced:pair-second"]),
        ("announced:pair:put", &["announced:pair-second:put"]),
    ] {
        assert_eq!(chosen(asked).unwrap(), expected, "{asked}");
    }
}

#[test]
fn what_does_not_work_is_left_out_of_all_and_refused_by_name() {
    let choice = choose_of(&known(), "all").unwrap();
    let left_out: Vec<&str> = choice.left_out.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(left_out, ["pair-first", "gone"]);
    assert_eq!(chosen("gone").unwrap_err(), "gone does not work here: it is gone");
    assert!(choose_of(&[], "all").is_err());
}

#[test]
fn a_way_by_itself_is_told_from_a_mechanism() {
    let ways = ["auto", "cma", "cma:put", "eager", "announced:cma:put", "announced"].map(path_of);
    assert_eq!(ways, [None, None, None, Some("eager"), Some("cma:put"), None]);
    assert!(chosen("announced:gone").is_err());
    assert_eq!(choose_of(&known(), "all,announced").unwrap().left_out.len(), 2, "each once");
}

#[test]
fn what_does_not_exist_is_told_with_what_does() {
    let error = chosen("one,pear").unwrap_err();
    assert!(error.contains("`pear`") || error.contains("'pear'"), "{error}");
    assert!(error.contains("pair-first"), "{error}");
    let error = chosen("one:sideways").unwrap_err();
    assert!(error.contains("get, put, cooperative"), "{error}");
}

#[test]
fn what_reaches_shared_buffers_only_needs_them() {
    let of = |reach| Mechanism { name: "one".to_owned(), unavailable: None, reach };
    let shared = of(Reach::SharedBuffers);
    let reason = shared.unusable(Memory::Private).unwrap();
    assert!(reason.contains("--buffers shared"), "{reason}");
    assert_eq!(shared.unusable(Memory::Shared), None);
    assert_eq!(of(Reach::AnyMemory).unusable(Memory::Private), None);
    let closed = Mechanism { unavailable: Some("it is closed".to_owned()), ..shared };
    assert_eq!(closed.unusable(Memory::Shared).as_deref(), Some("it is closed"));
}
