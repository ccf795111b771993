use super::*;

#[test]
fn a_small_pipe_is_a_limit_unless_one_is_exempt() {
    assert_eq!(size(&Ok(Some(1 << 20)), false).state, State::Good);
    let tiny = size(&Ok(Some(4096)), false);
    assert_eq!(tiny.state, State::Limited);
    assert!(tiny.meaning.contains("4096 bytes"), "{tiny:?}");
    assert_eq!(tiny.fix.as_deref(), Some("sudo sysctl fs.pipe-max-size=1048576"));
    assert_eq!(size(&Ok(Some(4096)), true).state, State::Good);
    assert_eq!(size(&Ok(None), false).state, State::Unknown);
    assert_eq!(size(&Err("x".into()), false).state, State::Unknown);
    assert!(size(&Ok(Some(1 << 40)), false).meaning.contains("asks for 67108864"));
}

#[test]
fn the_pages_of_a_user_are_counted_in_pipes() {
    let largest = Ok(Some(1 << 20));
    let usual = total(&Ok(Some(16384)), &largest, false);
    assert_eq!(usual.state, State::Good);
    assert!(usual.meaning.contains("64 of the largest size"), "{usual:?}");
    let few = total(&Ok(Some(256)), &largest, false);
    assert_eq!(few.state, State::Limited);
    assert!(few.fix.is_some());
    assert_eq!(total(&Ok(Some(256)), &largest, true).state, State::Good);
    assert_eq!(total(&Ok(Some(0)), &largest, false).state, State::Good);
    assert_eq!(total(&Ok(None), &largest, false).state, State::Unknown);
    assert_eq!(total(&Ok(Some(u64::MAX)), &Ok(Some(0)), false).state, State::Good);
}

#[test]
fn the_trial_is_a_real_one() {
    let found = diagnostics(&Host::default(), Way::Vmsplice, "vmsplice");
    let names: Vec<&str> = found.iter().map(|finding| finding.name.as_str()).collect();
    assert_eq!(names, ["vmsplice into a pipe", "pipe-max-size", "pipe-user-pages-soft"]);
    assert!(matches!(found[0].state, State::Good | State::Blocked), "{found:?}");
}
