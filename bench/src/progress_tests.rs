use super::*;

#[test]
fn stages_are_parts_of_one_whole() {
    let progress = Progress::new();
    progress.show(3, 4);
    assert_eq!(progress.shown(), (3, Some(4)));
    progress.enter(1, 2);
    progress.show(3, 4);
    assert_eq!(progress.shown(), (7, Some(8)));
}
