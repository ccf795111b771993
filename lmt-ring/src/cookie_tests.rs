use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_cookie_says_what_was_put_into_it(
        is_senders: bool,
        ring in 0..MAX_RINGS as u32,
        slot in proptest::option::of(0..SLOTS),
        tag in 0..TAGS,
        past_caches: bool,
    ) {
        let place = Where { is_senders, ring, slot, tag, past_caches };
        let cookie = place.cookie();
        prop_assert_eq!(cookie.as_bytes().len(), 8);
        prop_assert_eq!(Where::read(&cookie), Some(place));
    }

    #[test]
    fn whatever_a_peer_sends_names_a_place_within_bounds(bytes: [u8; 8]) {
        if let Some(place) = Where::read(&Cookie::new(&bytes).unwrap()) {
            prop_assert!(u64::from(place.ring) < MAX_RINGS && place.tag < TAGS);
            prop_assert!(place.slot.is_none_or(|slot| slot < SLOTS));
        }
    }
}

#[test]
fn what_no_sender_makes_is_refused() {
    let cookie = |word: u64| Cookie::new(&word.to_le_bytes()).unwrap();
    assert!(Where::read(&cookie(MAX_RINGS << 48)).is_none(), "ring");
    assert!(Where::read(&cookie(u64::from(SLOTS) << TAG_BITS)).is_none(), "slot");
    assert!(Where::read(&cookie((MAX_RINGS - 1) << 48)).is_some());
    for bytes in [&[][..], &[0; 7], &[0; 9]] {
        assert!(Where::read(&Cookie::new(bytes).unwrap()).is_none(), "{} bytes", bytes.len());
    }
}
