use super::*;

fn record(status: u8, result: u8, bytes_completed: u32) -> CompletionRecord {
    CompletionRecord { status, result, bytes_completed, ..CompletionRecord::default() }
}

#[test]
fn what_is_left_goes_by_the_direction_of_the_copy() {
    assert!(left_over(&record(1, 0, 0), 100).is_empty());
    assert_eq!(left_over(&record(3, 0, 40), 100), 40..100);
    assert_eq!(left_over(&record(3 | FAULT_WAS_WRITE, 0, 40), 100), 40..100);
    assert_eq!(left_over(&record(3, 1, 40), 100), 0..60);
    assert!(left_over(&record(3, 1, 100), 100).is_empty());
}

#[test]
fn what_cannot_be_counts_as_nothing_done() {
    assert_eq!(left_over(&record(3, 0, 101), 100), 0..100);
    assert_eq!(left_over(&record(3, 7, 40), 100), 0..100);
    for status in (0..=0x7f).filter(|status| !matches!(status, 1 | 3)) {
        assert_eq!(left_over(&record(status, 0, 40), 100), 0..100, "{status:#x}");
    }
}

#[test]
fn every_status_has_a_sentence_with_its_number() {
    assert_eq!(
        Status(0x13).to_string(),
        "the transfer is larger than the work queue's max_transfer_size (status 0x13)"
    );
    assert_eq!(Status(0x55).to_string(), "a status that linux/idxd.h does not know (status 0x55)");
    assert!(Status(0x11).is_refusal() && Status::BATCH_FAIL.is_refusal());
    assert!(!Status::PAGE_FAULT.is_refusal() && !Status::SUCCESS.is_refusal());
}
