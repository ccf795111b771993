use super::{KNOWN, LOOKED_AT_EVERY, MOST_STRANGERS, STANDING_BYTES, Standing};

/// A message of so many bytes, all of them `byte`.
fn message(bytes: usize, byte: u8) -> Vec<u8> {
    vec![byte; bytes]
}

fn standing() -> Standing {
    Standing::new(STANDING_BYTES, 0)
}

/// Sends a message whole, in line number `line`, and has so much of it written; where it stands.
fn send(standing: &mut Standing, message: &[u8], written: usize, line: u64) -> Option<usize> {
    let place = standing.begin(message, 0)?;
    assert_eq!((standing.at(), place.at.len()), (Some(place.at.start), message.len()));
    standing.stands(message.len(), written, line, true);
    assert_eq!(standing.at(), None, "it has ended");
    Some(place.at.start)
}

/// How often a message has to be sent until it has a place.
fn until_placed(standing: &mut Standing, message: &[u8]) -> u32 {
    (1..100_000).find(|_| send(standing, message, 0, 0).is_some()).unwrap()
}

#[test]
fn what_comes_often_gets_a_place_and_keeps_it() {
    let mut standing = standing();
    let (one, other) = (message(65536, 1), message(65536, 2));
    assert_eq!(until_placed(&mut standing, &one), 3);
    let place = send(&mut standing, &one, 0, 0);
    for _ in 0..100 {
        assert_eq!(send(&mut standing, &one, 0, 0), place);
        assert!(send(&mut standing, &other, 0, 0) != place);
    }
    assert!(standing.takes_all(), "the other one stands, too");
    send(&mut standing, &message(8192, 3), 0, 0);
    assert!(!standing.takes_all());
}

#[test]
fn what_is_never_the_same_gets_none_and_is_looked_at_ever_less() {
    let mut standing = standing();
    for round in 0..1000_u32 {
        let mut one = message(8192, 0);
        one[..4].copy_from_slice(&round.to_ne_bytes());
        assert_eq!(send(&mut standing, &one, 0, 0), None);
        assert!(!standing.takes_all());
    }
    assert!(standing.looked_at < 1000 / u64::from(LOOKED_AT_EVERY) + 2 * u64::from(MOST_STRANGERS));
    let again = message(8192, 7);
    assert!(until_placed(&mut standing, &again) < 4 * u32::from(LOOKED_AT_EVERY), "it is found in time");
}

#[test]
fn two_that_take_turns_behind_many_others_both_stand() {
    let mut standing = standing();
    for byte in 0..KNOWN as u8 {
        for _ in 0..20 {
            send(&mut standing, &message(16384, byte), 0, 0);
        }
    }
    let (one, other) = (message(65536, 101), message(65536, 102));
    for _ in 0..4 {
        send(&mut standing, &one, 0, 0);
        send(&mut standing, &other, 0, 0);
    }
    let places = (send(&mut standing, &one, 0, 0), send(&mut standing, &other, 0, 0));
    assert!(matches!(places, (Some(first), Some(second)) if first != second), "{places:?}");
}

#[test]
fn pieces_stand_one_behind_the_other_from_where_their_buffer_begins_in_a_line() {
    let mut standing = standing();
    let one = message(40_000, 1);
    while standing.begin(&one, 16).is_none() {}
    assert_eq!(standing.at(), Some(16));
    standing.stands(8192, 0, 0, false);
    assert_eq!(standing.at(), Some(16 + 8192));
    standing.stands(40_000 - 8192, 0, 0, true);
    assert_eq!(standing.at(), None);
}

#[test]
fn places_never_overlap_and_lie_within() {
    let mut standing = standing();
    let sizes = [100_000, 64 << 10, 200_000, 4096, 256 << 10, 300_000, 5000, 12_345, 64 << 10];
    for round in 0..200 {
        let number = round % sizes.len();
        let one = message(sizes[number], number as u8);
        for _ in 0..4 {
            send(&mut standing, &one, 0, 0);
        }
        let mut places: Vec<_> = standing.known.iter().filter(|known| known.has_place()).collect();
        places.sort_by_key(|place| place.begin);
        assert!(places.windows(2).all(|two| two[0].end <= two[1].begin), "{places:?}");
        assert!(places.last().is_none_or(|last| last.end <= STANDING_BYTES), "{places:?}");
    }
}

#[test]
fn what_is_longer_than_all_places_gets_none() {
    let mut small = Standing::new(8192, 0);
    for _ in 0..100 {
        assert_eq!(send(&mut small, &message(8193, 1), 0, 0), None);
        assert_eq!(send(&mut small, &message(8192, 1), 0, 0), None, "it may begin behind a line's begin");
    }
    assert!(until_placed(&mut small, &message(8128, 1)) > 0);
}

#[test]
fn what_changes_beyond_its_first_words_is_waited_for_ever_longer() {
    let mut standing = standing();
    let one = message(65536, 1);
    let mut before = 0;
    for _ in 0..5 {
        let wanted = until_placed(&mut standing, &one);
        assert!(wanted > before, "{wanted} after {before}");
        before = wanted;
        assert!(send(&mut standing, &one, 65536, 0).is_some());
        assert_eq!(send(&mut standing, &one, 0, 0), None, "the place is lost");
    }
}

/// A place that nobody has had may be written at once. One that was another's, or whose message
/// was sent, only behind the last line that named it.
#[test]
fn a_place_is_told_with_the_last_line_that_named_it() {
    let mut standing = Standing::new(100_000, 0);
    let (one, other) = (message(65536, 1), message(65536, 2));
    let placed = |standing: &mut Standing, one: &[u8]| {
        std::iter::repeat_with(|| standing.begin(one, 0)).find_map(|p| p)
    };
    let place = placed(&mut standing, &one).unwrap();
    assert_eq!(place.named, 0);
    standing.stands(65536, 65536, 7, true);
    assert_eq!(standing.begin(&one, 0).unwrap().named, 8);
    standing.stands(65536, 0, 9, true);
    let place = placed(&mut standing, &other).unwrap();
    assert_eq!((place.at.start, place.named), (0, 10), "it has the other's place");
    assert_eq!(standing.known.iter().filter(|known| known.has_place()).count(), 1);
}

#[test]
fn in_a_box_that_was_used_before_each_line_may_have_named_a_place() {
    let mut standing = Standing::new(STANDING_BYTES, 42);
    let one = message(65536, 1);
    let place = std::iter::repeat_with(|| standing.begin(&one, 0)).find_map(|place| place).unwrap();
    assert_eq!(place.named, 42);
}

#[test]
fn a_refused_message_has_no_further_piece_here() {
    let mut standing = standing();
    let one = message(65536, 1);
    while standing.begin(&one, 0).is_none() {}
    standing.stands(8192, 0, 5, false);
    standing.is_refused();
    assert_eq!((standing.at(), standing.takes_all()), (None, false));
    standing.stands(8192, 0, 6, true);
    assert!(standing.begin(&one, 0).is_none(), "its place is lost");
    assert_eq!(standing.lost_named, 6);
}

/// Asked beforehand, what goes another way counts as what comes, and takes no place.
#[test]
fn what_would_stand_is_known_before_it_goes_another_way() {
    let mut standing = standing();
    let one = message(65536, 1);
    let asked = (1..100).find(|_| standing.is_likely(&one)).unwrap();
    assert_eq!(asked, 3, "as often as until it has a place");
    assert!(standing.is_likely(&one), "asked again, it is no less likely");
    assert!(!standing.known[0].has_place());
    assert!(send(&mut standing, &one, 0, 0).is_some());
    assert!(standing.is_likely(&one));
    assert!(!standing.is_likely(&message(65536, 2)) && !standing.is_likely(&one[..100]));
    // Others, that differ in the words that messages are known by, are not likely to.
    for number in 0..=255 {
        assert!(!standing.is_likely(&message(32768, number)));
    }
}

#[test]
fn what_fits_no_place_or_interrupts_another_message_is_not_likely() {
    let mut standing = Standing::new(32768, 0);
    assert!((0..100).all(|_| !standing.is_likely(&message(65536, 1))));
    let one = message(8192, 1);
    while standing.begin(&one, 0).is_none() {}
    standing.stands(4096, 0, 5, false);
    let strangers = (0..=255).map(|number| message(16384, number));
    assert!(strangers.into_iter().all(|stranger| !standing.is_likely(&stranger)));
    assert_eq!(standing.at(), Some(4096), "it goes on");
    standing.stands(4096, 0, 6, true);
    assert!(standing.is_likely(&one));
}

#[test]
fn what_has_changed_where_it_stood_is_less_likely() {
    let mut standing = standing();
    let one = message(65536, 1);
    until_placed(&mut standing, &one);
    send(&mut standing, &one, 65536, 0);
    let asked = (1..100).find(|_| standing.is_likely(&one)).unwrap();
    assert!(asked > 3, "{asked}");
}
