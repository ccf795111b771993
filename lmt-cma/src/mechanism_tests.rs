use super::*;

fn hello(bytes: &[u8]) -> Hello {
    Hello { bytes: bytes.to_vec(), descriptors: Vec::new() }
}

#[test]
fn both_ends_take_the_lesser_figure() {
    let said = |times: f32| hello(&times.to_le_bytes());
    assert_eq!(agreed(Some(2.0), &said(4.0)), Some(2.0));
    assert_eq!(agreed(Some(4.0), &said(2.0)), Some(2.0));
    assert_eq!(agreed(None, &said(2.0)), Some(2.0));
}

#[test]
fn what_a_peer_says_amiss_does_not_count() {
    for bytes in [
        &[][..],
        &[1, 2, 3],
        &[0; 5],
        &f32::NAN.to_le_bytes(),
        &f32::NEG_INFINITY.to_le_bytes(),
        &0.0_f32.to_le_bytes(),
        &(-1.0_f32).to_le_bytes(),
        &0.2_f32.to_le_bytes(),
        &f32::MAX.to_le_bytes(),
    ] {
        assert_eq!(agreed(Some(2.0), &hello(bytes)), Some(2.0), "{bytes:?}");
        assert_eq!(agreed(None, &hello(bytes)), None, "{bytes:?}");
        assert_eq!(agreed(Some(0.1), &hello(bytes)), None, "{bytes:?}");
    }
}
