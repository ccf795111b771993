use super::*;

const TAG: u64 = 0xff_1234_5678;

#[test]
fn a_message_goes_its_way() {
    let slot = Slot::new();
    assert!(!slot.has(TAG) && !slot.attach(TAG));
    slot.open(TAG, 5, 17, 100);
    assert_eq!(slot.emptied(TAG), (0, State::Open));
    assert!(slot.has(TAG) && !slot.has(TAG - 1) && !slot.attach(TAG - 1));
    assert!(slot.attach(TAG) && !slot.attach(TAG), "one receiver");
    assert_eq!((slot.cells_at_begin(), slot.produced(), slot.emptied(TAG).1), (5, 0, State::Attached));
    slot.name_cell(0, 9);
    slot.publish(100);
    assert_eq!((slot.produced(), slot.cell(0)), (100, 9));
    slot.empty(0, true);
    assert!(slot.close(TAG, true), "the sender looks");
    assert_eq!(slot.emptied(TAG), (1, State::Whole));
    assert!(slot.leave(TAG), "the sender learns of the end here");
    assert_eq!(slot.emptied(TAG + 1).1, State::Other);
}

#[test]
fn a_sender_that_has_left_is_to_be_told() {
    for attaches_first in [true, false] {
        let slot = Slot::new();
        slot.open(TAG, 0, 17, 100);
        assert!(!attaches_first || slot.attach(TAG));
        assert!(!slot.leave(TAG));
        assert!(attaches_first || slot.attach(TAG), "it stands there all the same");
        assert!(!slot.close(TAG, true));
    }
}

#[test]
fn what_has_left_can_still_be_taken_back() {
    let slot = Slot::new();
    slot.open(TAG, 0, 17, 100);
    assert!(!slot.leave(TAG) && slot.withdraw(TAG, true));
    assert!(!slot.attach(TAG) && !slot.has(TAG));
    assert_eq!(slot.emptied(TAG).1, State::Withdrawn);
}

#[test]
fn only_what_is_not_all_given_is_abandoned() {
    for is_all_given in [true, false] {
        let slot = Slot::new();
        slot.open(TAG, 0, 17, 100);
        slot.publish(3);
        assert!(slot.attach(TAG) && !slot.withdraw(TAG, is_all_given));
        assert_eq!(slot.produced(), if is_all_given { 3 } else { ABANDONED });
    }
}

#[test]
fn numbers_and_marks_wrap_around() {
    let slot = Slot::new();
    slot.open(TAG, 0, 17, 100);
    for k in 0..200 {
        slot.name_cell(k, (k * 7) as u8);
        slot.empty(k, k % 3 == 0);
        let first = (k + 1).saturating_sub(CELLS_IN_FLIGHT);
        for earlier in first..=k {
            assert_eq!(slot.cell(earlier), (earlier * 7) as u8);
            assert_eq!(slot.is_returned(earlier), earlier % 3 == 0);
        }
        assert_eq!(slot.emptied(TAG).0, k + 1);
    }
}

#[test]
fn garbage_is_nobodys_message() {
    for state in [0, 6, 7] {
        assert_eq!(state_of(TAG << TAG_SHIFT | state, TAG), State::Other);
    }
    assert_eq!(state_of(u64::MAX, TAG), State::Other);
}
