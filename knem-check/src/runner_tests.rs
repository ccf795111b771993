use super::*;
use crate::verdict::{holds, skip};

#[test]
fn the_summary_says_how_many_were_skipped_and_why() {
    let mut counts = Counts::default();
    assert_eq!(counts.to_string(), "0 ok, 0 failed, 0 skipped");
    for verdict in [
        holds(),
        skip("there is no engine"),
        fails("this"),
        skip("only root may"),
        skip("there is no engine"),
    ] {
        counts.add(&verdict);
    }
    let expected = "1 ok, 1 failed, 3 skipped: 2 as there is no engine, 1 as only root may";
    assert_eq!(counts.to_string(), expected);
}
