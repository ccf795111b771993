use super::*;

#[test]
fn the_tag_is_fnv_1a() {
    assert_eq!(MechanismTag::of(""), MechanismTag(0x811c_9dc5));
    assert_eq!(MechanismTag::of("foobar"), MechanismTag(0xbf9c_f968));
}
