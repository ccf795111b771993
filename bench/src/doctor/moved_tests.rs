use super::super::fixture::named;
use super::*;
use crate::job::PathCount;

#[test]
fn each_path_has_its_part() {
    let way = |way: &str, messages, bytes| PathCount { way: way.to_owned(), messages, bytes };
    let received = vec![way("eager", 9, 25), way("cma", 1, 75)];
    let found = findings(&Statistics { endpoints: 2, received, demotions: 3 });
    assert_eq!(named(&found, "all paths").meaning, "2 endpoints received 100 bytes");
    assert_eq!(named(&found, "cma").meaning, "1 messages, 75 bytes, 75.0 %");
    assert_eq!(named(&found, "demotions").state, State::Limited);
    let none = findings(&Statistics { endpoints: 2, ..Statistics::default() });
    assert!(none.len() == 1 && none[0].state == State::Limited, "{none:?}");
}
