use super::*;

#[test]
fn every_kind_comes_back_with_its_marks() {
    for kind in 1..8 {
        for space in Space::all() {
            for has_immediate in [false, true] {
                let marks = KindByte { space, has_immediate };
                assert_eq!(KindByte::read(marks.on(kind)), (kind, marks));
            }
        }
    }
}

#[test]
fn a_message_of_the_first_space_has_the_bare_kind() {
    assert_eq!(KindByte::of(&Label::from(9)).on(5), 5);
}

#[test]
fn bits_that_nobody_sets_give_no_kind() {
    for byte in HAS_IMMEDIATE << 1..=u8::MAX {
        assert_eq!(KindByte::read(byte).0, 0);
    }
}
