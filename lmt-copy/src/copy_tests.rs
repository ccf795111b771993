use super::*;
use crate::{Plan, Routine};

/// One test, since a process chooses once.
#[test]
fn a_process_chooses_once_and_copies_by_it() {
    let source: Vec<u8> = (0..5000).map(|at| (at % 251) as u8).collect();
    let mut target = vec![0; 4000];
    assert_eq!(copy_slice(&mut target, &source), 4000);
    assert_eq!(target, source[..4000]);
    let plan: Plan = "portable 4KiB-, libc".parse().expect("a plan");
    let copier = plan.copier();
    install(copier.clone()).expect("the first");
    install(copier.clone()).expect("the same again");
    assert_eq!(installed(), Some(&copier));
    assert_eq!(install(Copier::default()), Err(AlreadyInstalled));
    assert_eq!(installed(), Some(&copier), "the first stays");
    for bytes in [0, 1, 32, 33, 64, 65, 128, 129, 256, 257, 2048, 2049, 4096, 4097, 4999] {
        let mut target = vec![0; bytes];
        assert_eq!(copy_slice(&mut target, &source), bytes);
        assert_eq!(target, source[..bytes]);
    }
    assert_eq!(copier.routine(Distance::Near, Alignment::Same, 4097), Routine::Portable);
}
