use super::*;

#[test]
fn cookies_of_whole_messages_fit_the_line_of_an_rts() {
    let owner = EndpointId::from_bytes([3; 16]);
    let region = RegionCookie::new(owner, 4095, u32::MAX);
    let whole = to_cookie(&region, 0).expect("short");
    assert_eq!(whole.as_bytes().len(), 8);
    assert_eq!(from_cookie(owner, &whole), Some((region, 0)));
    let part = to_cookie(&region, 1 << 40).expect("short");
    assert_eq!(from_cookie(owner, &part), Some((region, 1 << 40)));
    for bytes in [0, 7, 9, 15, 17, Cookie::MAX_BYTES] {
        let cookie = Cookie::new(&vec![1; bytes]).expect("short");
        assert_eq!(from_cookie(owner, &cookie), None, "{bytes} bytes");
    }
}

#[test]
fn errors_say_whether_the_mechanism_is_of_any_more_use() {
    let dead = Arc::new(PeerProcess::new(0, None));
    let is_for_good = |error: KnemError| match fault_of(&error, &dead) {
        Fault::Demote { errno, for_good, sentence } => {
            assert_eq!((errno, sentence), (error.errno(), error.to_string()));
            for_good
        }
        other => panic!("{other:?}"),
    };
    assert!(is_for_good(KnemError::OtherUser(nix::errno::Errno::EPERM)));
    assert!(is_for_good(KnemError::Forked));
    assert!(!is_for_good(KnemError::NotRegistered));
    assert!(!is_for_good(KnemError::BadMemory("local memory")));
    assert_eq!(fault_of(&KnemError::OwnerDead, &dead), Fault::PeerDead);
}
