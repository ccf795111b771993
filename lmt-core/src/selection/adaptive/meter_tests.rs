use super::*;

fn send(now_ns: u64, events: u64, under_way: u32) -> Send {
    Send { now_ns, bytes: 100, events, under_way }
}

#[test]
fn a_round_ends_with_the_first_send_after_something_has_arrived() {
    let mut meter = Meter::default();
    assert_eq!(meter.send(&send(1_000, 5, 0)), None, "the first begins one");
    assert_eq!(meter.send(&send(1_010, 5, 1)), None, "nothing has come back");
    let sample = meter.send(&send(1_500, 6, 0)).expect("an answer has come");
    assert_eq!(sample, Sample { ns: 500, bytes: 200, messages: 2, is_spoilt: false });
    assert_eq!(sample.ns_per_byte(), 2.5);
}

/// What was under way when a round began is paid for within it.
#[test]
fn a_round_outlasts_what_was_under_way() {
    let mut meter = Meter::default();
    meter.send(&send(0, 1, 2));
    let ended = (1..20).find(|at| meter.send(&send(at * 10, at + 1, 2)).is_some());
    assert_eq!(ended, Some(8), "four times two messages");
}

#[test]
fn a_stream_without_answers_is_cut_by_its_bytes() {
    let mut meter = Meter::default();
    let long = |now_ns| Send { now_ns, bytes: 1 << 20, events: 0, under_way: 0 };
    let ended = (0..100).find(|at| meter.send(&long(*at)).is_some());
    assert_eq!(ended, Some(u64::from(UNANSWERED_MESSAGES)));
}

#[test]
fn a_block_is_worth_its_least_sample_unless_it_is_spoilt() {
    let sample = |ns, is_spoilt| Sample { ns, bytes: 10, messages: 1, is_spoilt };
    let mut block = Block::default();
    assert_eq!(block.least(), None);
    assert!(!block.add(&sample(40, false)));
    assert!(!block.add(&sample(2_000, false)));
    assert!(block.add(&sample(30, false)));
    assert_eq!(block.least(), Some(3.0));
    let mut spoilt = Block::default();
    spoilt.add(&sample(40, true));
    assert_eq!(spoilt.least(), None);
}
