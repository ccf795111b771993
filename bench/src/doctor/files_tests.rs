use super::*;

fn limits(soft: u64, hard: u64) -> Result<Limit, String> {
    Ok(Limit { soft: Some(soft), hard: Some(hard) })
}

#[test]
fn descriptors_are_counted_for_all_peers() {
    // 64 to spare, 10 of its own, 3 + 4 for each peer.
    let measured = Some((10, 3));
    let good = open_files(limits(1024, 1024), 2, measured);
    assert_eq!(good.state, State::Good);
    assert!(good.meaning.contains("so 135 peers fit"), "{good:?}");
    assert_eq!(open_files(limits(1024, 1024), 136, measured).state, State::Good);
    let tight = open_files(limits(1024, 4096), 137, measured);
    assert_eq!(tight.state, State::Limited);
    assert_eq!(tight.fix.as_deref(), Some("ulimit -n 1026"));
    let hard = open_files(limits(1024, 1024), 137, measured);
    assert!(hard.fix.unwrap().contains("limits.conf (nofile 1026)"));
}

#[test]
fn what_is_not_known_is_not_guessed() {
    assert_eq!(open_files(limits(1024, 1024), 2, None).state, State::Unknown);
    assert_eq!(open_files(limits(1024, 1024), 2, Some((0, 0))).state, State::Unknown);
    assert_eq!(open_files(Err("x".into()), 2, Some((1, 1))).state, State::Unknown);
    assert_eq!(open_files(Ok(Limit { soft: None, hard: None }), 2, None).state, State::Good);
    assert_eq!(open_files(limits(0, 0), 2, Some((10, 3))).state, State::Limited);
}
