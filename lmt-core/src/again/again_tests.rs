use super::{MOST_WANTED, Mark, Patience, Record, WORTH};

#[test]
fn each_of_some_words_and_the_length_tell_messages_apart() {
    let first = [1; 4096];
    let one = Mark::of(8192, &first).unwrap();
    assert_eq!(Mark::of(8192, &first), Some(one));
    assert_ne!(Mark::of(8193, &first), Some(one));
    for at in Mark::WORDS {
        for within in [0, 7] {
            let mut other = first;
            other[at + within] ^= 0x80;
            assert_ne!(Mark::of(8192, &other), Some(one), "{at} + {within}");
        }
    }
    let changed = |at: usize| {
        let mut other = first;
        other[at] = 2;
        Mark::of(8192, &other)
    };
    assert_ne!(changed(0), changed(Mark::WORDS[1]), "where a word stands counts");
}

#[test]
fn too_few_bytes_have_no_mark() {
    let first = [1; Mark::BYTES];
    assert!(Mark::of(8192, &first).is_some());
    assert_eq!(Mark::of(8192, &first[1..]), None);
    assert_eq!(Mark::of(0, &[]), None);
}

/// How often a message comes until it is kept.
fn until_kept(record: &mut Record) -> u32 {
    (1..=2 * MOST_WANTED).find(|_| record.comes()).unwrap()
}

#[test]
fn what_was_in_vain_is_to_come_more_often_and_what_was_not_soon() {
    let mut record = Record::new(Patience::default());
    let first = until_kept(&mut record);
    let mut before = first;
    while before < MOST_WANTED {
        assert!(!record.is_found(65536, 65536));
        record.has_changed();
        let wanted = until_kept(&mut record);
        assert!(wanted > before);
        before = wanted;
    }
    record.has_changed();
    assert_eq!(until_kept(&mut record), MOST_WANTED);
    assert!((1..WORTH).all(|_| record.is_found(65536, 0)));
    record.has_changed();
    assert_eq!(until_kept(&mut record), MOST_WANTED, "not often enough yet");
    assert!((0..WORTH).all(|_| record.is_found(65536, 0)));
    record.has_changed();
    assert_eq!(until_kept(&mut record), first + 1);
    record.is_kept_no_more();
    assert_eq!(until_kept(&mut record), first + 1, "that was not its fault");
}

#[test]
fn a_message_is_found_if_no_more_than_a_quarter_was_written() {
    let mut record = Record::new(Patience::default());
    assert!(record.is_found(65536, 0) && record.is_found(65536, 16384));
    assert!(!record.is_found(65536, 16385));
}

#[test]
fn others_wait_longer_after_one_that_was_in_vain() {
    let mut patience = Patience::default();
    let mut lost = Record::new(patience);
    patience.lost(lost.found());
    assert!(until_kept(&mut Record::new(patience)) > until_kept(&mut Record::new(Patience::default())));
    (0..WORTH).for_each(|_| {
        lost.is_found(1, 0);
        patience.found(lost.found());
    });
    assert_eq!(until_kept(&mut Record::new(patience)), until_kept(&mut Record::new(Patience::default())));
}

/// Asked before it comes, it is as often as when it has come.
#[test]
fn what_is_kept_the_next_time_is_known_before() {
    let (mut asked, mut came) = (Record::new(Patience::default()), Record::new(Patience::default()));
    for _ in 0..20 {
        let is_next = asked.is_next_kept();
        assert_eq!(is_next, came.comes());
        assert_eq!(asked.is_next_kept(), is_next || came.comes(), "asked twice, it came twice");
    }
}
