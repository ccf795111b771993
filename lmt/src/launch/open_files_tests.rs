use super::*;

#[test]
fn the_soft_limit_becomes_the_hard_one() {
    let limits = || getrlimit(Resource::RLIMIT_NOFILE).expect("getrlimit");
    let (before, hard) = limits();
    // Other tests of this process go on having as many as they may need.
    let low = before.min(256);
    setrlimit(Resource::RLIMIT_NOFILE, low, hard).expect("lowering is allowed");
    assert_eq!(raise_open_files(), Some(hard.min(MOST).max(low)));
    assert_eq!(limits(), (hard.min(MOST).max(low), hard));
    // One that is as high is left as it is.
    assert_eq!(raise_open_files(), Some(hard.min(MOST).max(low)));
}
