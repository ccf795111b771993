use super::*;

#[test]
fn times_left_are_said_as_people_do() {
    let said = |seconds| rough(Duration::from_secs(seconds));
    assert_eq!(
        [said(0), said(59), said(89), said(90), said(1000)],
        ["1 s", "60 s", "90 s", "2 min", "17 min"]
    );
}

#[test]
fn what_is_left_never_exceeds_the_deadline() {
    let mut shown = Course::new();
    let deadline = Instant::now() + Duration::from_secs(5);
    shown.pass(0, 1000, 1000, deadline);
    std::thread::sleep(Duration::from_millis(20));
    shown.done = 1;
    assert!(shown.left() <= Duration::from_secs(5));
    shown.pass(999, 1000, 2, deadline);
    shown.done = 2;
    assert!(shown.left() < Duration::from_secs(1), "{:?}", shown.left());
}
