use super::*;

#[test]
fn an_oob_message_arrives_as_it_was_sent() {
    let content = Hello { bytes: vec![7; Hello::MAX_BYTES], descriptors: Vec::new() };
    let (bytes, descriptors) = OobMessage { mechanism: MechanismTag(0x0102_0304), content }.encode();
    let Arrival::OobMessage(oob_message) = parse(&bytes, descriptors) else {
        panic!("no out-of-band message")
    };
    assert_eq!(oob_message.mechanism, MechanismTag(0x0102_0304));
    assert_eq!(oob_message.content.bytes, vec![7; Hello::MAX_BYTES]);
}

#[test]
fn regions_get_their_answers() {
    let bytes = for_regions(b"answer");
    assert!(matches!(parse(&bytes, Vec::new()), Arrival::Region(b"answer", _)));
}

#[test]
fn what_is_neither_is_a_stray() {
    let too_long = [&[MECHANISM, 0, 0, 0, 0][..], &[0; Hello::MAX_BYTES + 1]].concat();
    for bytes in [&[][..], &[0], &[9, 9, 9, 9, 9], &[MECHANISM], &[MECHANISM, 1, 2, 3], &too_long] {
        assert!(matches!(parse(bytes, Vec::new()), Arrival::Stray), "{bytes:?}");
    }
}
