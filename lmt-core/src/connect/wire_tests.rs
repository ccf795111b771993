use super::*;
use proptest::prelude::*;

const ID: EndpointId = EndpointId::from_bytes(*b"0123456789abcdef");

#[test]
fn what_is_written_is_read() {
    let hello = HelloBody { probe_address: 0x7fff_1234_5678, nonce: [7; 16] };
    let bytes = encode(ID, Kind::Hello, 2, Some(&hello), b"blob");
    assert_eq!(
        parse(&bytes, 2),
        Ok(Packet { id: ID, kind: Kind::Hello, hello, blob: b"blob", lost_descriptors: 0, errno: None })
    );
    for kind in [Kind::Report, Kind::Merge, Kind::Goodbye, Kind::Descriptors] {
        let bytes = encode(ID, kind, 0, None, b"xyz");
        assert_eq!(
            parse(&bytes, 0),
            Ok(Packet {
                id: ID,
                kind,
                hello: HelloBody::default(),
                blob: b"xyz",
                lost_descriptors: 0,
                errno: None
            })
        );
    }
}

#[test]
fn the_max_datagram_fits() {
    let bytes = encode(ID, Kind::Hello, 32, Some(&HelloBody::default()), &[1; MAX_BLOB_BYTES]);
    assert_eq!(bytes.len(), MAX_DATAGRAM_BYTES);
    assert!(parse(&bytes, 32).is_ok());
}

#[test]
fn another_version_is_named_and_its_refusal_read() {
    let mut bytes = encode(ID, Kind::Hello, 0, Some(&HelloBody::default()), b"");
    bytes[4..6].copy_from_slice(&77u16.to_ne_bytes());
    let sentence = parse(&bytes, 0).unwrap_err().to_string();
    assert!(
        sentence.contains(&format!("version {PROTOCOL_VERSION} ")) && sentence.contains("version 77"),
        "{sentence}"
    );
    let mut refusal = encode_refusal(ID, "because\n");
    refusal[4..6].copy_from_slice(&77u16.to_ne_bytes());
    assert_eq!(parse(&refusal, 0).unwrap().reason(), "because ");
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let refusal = encode_refusal(ID, &"ä".repeat(1000));
    let reason = parse(&refusal, 0).unwrap().reason();
    assert_eq!(reason, "ä".repeat(MAX_REASON_BYTES / 2));
}

#[test]
fn descriptors_must_be_as_many_as_announced() {
    let hello = HelloBody { probe_address: 1, nonce: [2; 16] };
    let bytes = encode(ID, Kind::Hello, 3, Some(&hello), b"");
    assert_eq!(parse(&bytes, 2).map(|packet| packet.lost_descriptors), Ok(1));
    assert_eq!(parse(&bytes, 3).map(|packet| packet.lost_descriptors), Ok(0));
    assert!(matches!(parse(&bytes, 4), Err(Malformed::Wrong { .. })));
    let bytes = encode(ID, Kind::Descriptors, 3, None, b"");
    assert_eq!(
        parse(&bytes, 0).map(|packet| (packet.kind, packet.lost_descriptors)),
        Ok((Kind::Descriptors, 3))
    );
    assert!(matches!(parse(&bytes, 4), Err(Malformed::Wrong { .. })));
    let bytes = encode(ID, Kind::Report, 3, None, b"");
    assert!(matches!(parse(&bytes, 2), Err(Malformed::Wrong { .. })));
}

proptest! {
    #[test]
    fn garbage_is_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), n in 0usize..300) {
        prop_assert!(parse(&bytes, n).is_err());
    }

    #[test]
    fn a_changed_or_cut_hello_never_panics(at in 0usize..60, value: u8, cut in 0usize..61) {
        let hello = HelloBody { probe_address: 1, nonce: [2; 16] };
        let mut bytes = encode(ID, Kind::Hello, 0, Some(&hello), b"blob");
        bytes[at] = value;
        bytes.truncate(cut);
        if let Ok(packet) = parse(&bytes, 0) {
            prop_assert!(packet.blob.len() <= MAX_BLOB_BYTES);
        }
    }
}

#[test]
fn a_refusal_brings_the_number_of_the_system() {
    let errno_of = |bytes: &[u8]| parse(bytes, 0).unwrap().errno;
    assert_eq!(errno_of(&encode_refusal_by(ID, "no", Some(Errno::EMFILE))), Some(Errno::EMFILE));
    assert_eq!(errno_of(&encode_refusal(ID, "no")), None);
    // Numbers that no kernel has are none, and those with which no connection ends.
    let mut wrong = encode_refusal(ID, "no");
    for number in [u32::MAX, 60_000, Errno::EAGAIN as u32, Errno::EINTR as u32, Errno::EBADF as u32] {
        wrong[28..32].copy_from_slice(&number.to_ne_bytes());
        assert_eq!(errno_of(&wrong), None);
    }
    // Nobody else's datagrams have one.
    let mut hello = encode(ID, Kind::Report, 0, None, b"");
    hello[28..32].copy_from_slice(&24_u32.to_ne_bytes());
    assert_eq!(errno_of(&hello), None);
}
