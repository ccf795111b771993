use std::sync::Arc;

use super::*;

fn failed(data: u64) -> FailedRequest {
    FailedRequest { fid: 1, context: 2, data, error: Errno::INVAL }
}

#[test]
fn events_are_read_in_their_order_and_failures_apart() {
    let events = Events::default();
    assert_eq!(events.read(64, AfterRead::Take, |_, _| ()), Err(Errno::AGAIN));
    events.tell(5, b"five");
    events.fail(failed(7));
    events.tell(6, b"");
    let mut seen = Vec::new();
    let mut see = |number: u32, bytes: &[u8]| seen.push((number, bytes.to_vec()));
    assert_eq!(events.read(3, AfterRead::Take, &mut see), Err(Errno::TOOSMALL));
    assert_eq!(events.take_failure(), None);
    assert_eq!(events.read(4, AfterRead::Leave, &mut see), Ok(4));
    assert_eq!(events.read(4, AfterRead::Take, &mut see), Ok(4));
    assert_eq!(events.read(4, AfterRead::Take, &mut see), Err(Errno::AVAIL));
    assert_eq!(events.take_failure(), Some(failed(7)));
    assert_eq!(events.read(0, AfterRead::Take, &mut see), Ok(0));
    assert_eq!(seen, [(5, b"five".to_vec()), (5, b"five".to_vec()), (6, Vec::new())]);
}

#[test]
fn a_user_who_writes_and_never_reads_is_stopped() {
    let events = Events::default();
    assert_eq!(
        (0..=MAX_WRITTEN).map(|_| events.write(1, b"x")).position(|done| done.is_err()),
        Some(MAX_WRITTEN)
    );
    assert_eq!(events.write(1, b"x"), Err(Errno::AGAIN));
    events.fail(failed(1));
    assert_eq!(events.read(1, AfterRead::Take, |_, _| ()), Ok(1));
    assert_eq!(events.write(1, b"x"), Err(Errno::AGAIN), "what the provider told counts too");
}

#[test]
fn who_waits_is_woken_or_gives_up() {
    let events = Arc::new(Events::default());
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(events.wait(9, AfterRead::Take, Some(soon), |_, _| ()), Err(Errno::AGAIN));
    let teller = Arc::clone(&events);
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        teller.tell(1, b"now");
    });
    let late = Instant::now() + Duration::from_secs(20);
    assert_eq!(events.wait(9, AfterRead::Take, Some(late), |_, _| ()), Ok(3));
    thread.join().expect("no panic");
    assert!(events.may_block());
    events.tell(2, b"");
    assert!(!events.may_block());
}
