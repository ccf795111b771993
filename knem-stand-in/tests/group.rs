//! The ranks of a test's group are under their parent's stand-in.
#![deny(unsafe_code)]

mod raw;

use std::time::Duration;

use knem_stand_in::{Options, StandIn, Unavailable, inside};
use lmt_conformance::{group, test_name};
use raw::*;

const BYTES: usize = 100_000;

#[test]
fn ranks_share_a_driver() {
    // The ranks do this too, and find that they are under one.
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let folder = std::env::temp_dir();
    group::run(test_name!(), 2, Duration::from_secs(30), |group| {
        assert!(inside());
        let name = folder.join(format!("knem-stand-in-{:?}", group.id()).replace(['(', ')', ' '], "-"));
        if group.rank() == 0 {
            let (device, ours) = (Device::open(), Area::filled(BYTES, 1));
            let cookie = device.create(&[ours.all()], 0, READ).expect("good memory");
            std::fs::write(&name, cookie.to_ne_bytes()).expect("there is room");
            group.barrier();
            group.barrier();
            std::fs::remove_file(&name).expect("it is there");
        } else {
            group.barrier();
            let cookie = u64::from_ne_bytes(std::fs::read(&name).expect("it is there").try_into().unwrap());
            let (device, theirs) = (Device::open(), Area::anonymous(BYTES));
            assert_eq!(device.read(&[theirs.all()], (cookie, 0), PLAIN), Ok(SUCCESS));
            assert!(theirs.bytes() == pattern(1, BYTES));
            group.barrier();
        }
    });
}

#[test]
fn a_thread_enters_once() {
    let Some(_alone) = under(Options::default()) else {
        return;
    };
    let second = StandIn::start(Options::default()).expect("the first works");
    assert!(matches!(second.enter(), Err(Unavailable::Refused(nix::errno::Errno::EBUSY))));
    assert!(inside());
}

#[test]
fn what_was_not_entered_is_outside() {
    let stand_in = StandIn::start(Options::default());
    assert!(!inside());
    if stand_in.is_ok() && !std::path::Path::new("/dev/knem").exists() {
        assert!(std::fs::File::open("/dev/knem").is_err());
    }
}
