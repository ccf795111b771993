use super::*;

#[test]
fn lists_of_cpus_are_counted() {
    for (list, count) in [("0-1\n", Some(2)), ("0", Some(1)), ("0-3,8,10-11", Some(7))] {
        assert_eq!(count_list(list), count, "{list}");
    }
    for list in ["", "a", "3-1", "0-"] {
        assert_eq!(count_list(list), None, "{list}");
    }
    assert!(cpus() >= 1);
}
