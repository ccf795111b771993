use std::fs;

use super::*;

#[test]
fn what_is_missing_is_said_with_what_would_help() {
    let root = std::env::temp_dir().join(format!("lmt-xpmem-{}", std::process::id()));
    fs::create_dir_all(root.join("dev")).expect("a folder");
    let host = Host::under(&root);
    let [absent] = &diagnostics(&host)[..] else { panic!("one finding") };
    assert_eq!((absent.name.as_str(), absent.state), ("/dev/xpmem", State::Missing));
    assert!(absent.fix.as_ref().is_some_and(|fix| fix.contains("modprobe xpmem")));
    fs::write(root.join("dev/xpmem"), "").expect("a file");
    let [there] = &diagnostics(&host)[..] else { panic!("one finding") };
    assert_eq!(there.state, State::Good);
    fs::remove_dir_all(root).expect("it is there");
}

/// Each says what would help, and the number's name.
#[test]
fn answers_are_sentences() {
    use nix::errno::Errno;
    for errno in [Errno::ENOENT, Errno::EACCES, Errno::ENOTSUP, Errno::ENOMEM, Errno::EFAULT, Errno::EBUSY] {
        let sentence = sentence(errno);
        assert!(sentence.contains(&format!("{errno}")) && sentence.len() > 30, "{sentence}");
    }
    assert!(sentence(Errno::from_raw(crate::abi::NO_PROCESS)).contains("has forgotten this process"));
}
