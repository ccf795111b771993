use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::test_support::{FakeTree, open};
use super::*;

fn reason(tree: &FakeTree) -> String {
    open(tree).unwrap_err().sentence
}

#[test]
fn without_the_folder_the_driver_is_asked_for() {
    let tree = FakeTree::new("none");
    fs::remove_dir(tree.places().devices).unwrap();
    let why = open(&tree).unwrap_err();
    assert_eq!(why.errno, libc::ENOENT);
    for word in ["there is no", "idxd", "accel-config"] {
        assert!(why.sentence.contains(word), "{why}");
    }
}

#[test]
fn an_empty_folder_asks_for_a_queue() {
    let tree = FakeTree::new("empty");
    assert!(reason(&tree).contains("no work queue"), "{}", reason(&tree));
}

#[test]
fn each_queue_says_why_it_is_not_used() {
    let tree = FakeTree::new("reasons");
    tree.queue("wq0.0", "shared").with("state", "disabled").file(4096);
    tree.queue("wq0.1", "shared").with("type", "kernel").file(4096);
    tree.queue("wq0.2", "sideways").file(4096);
    tree.queue("wq0.3", "shared").without("max_transfer_size").file(4096);
    let why = reason(&tree);
    for part in [
        "wq0.0: it is disabled",
        "accel-config enable-wq",
        "wq0.1: it is of type kernel",
        "wq0.2: its mode is sideways",
        "wq0.3: its attribute max_transfer_size cannot be read",
    ] {
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn a_refused_opening_keeps_its_errno() {
    if nix::unistd::geteuid().is_root() {
        // Permissions do not bind root; a folder does not open for writing.
        let tree = FakeTree::new("folder");
        fs::create_dir(tree.queue("wq0.0", "shared").device()).unwrap();
        let why = open(&tree).unwrap_err();
        assert_eq!(why.errno, libc::EISDIR, "{why}");
        return;
    }
    let tree = FakeTree::new("refused");
    let queue = tree.queue("wq0.0", "shared");
    queue.file(4096);
    fs::set_permissions(queue.device(), fs::Permissions::from_mode(0o000)).unwrap();
    let why = open(&tree).unwrap_err();
    assert_eq!(why.errno, libc::EACCES);
    assert!(why.sentence.contains("the right to read and write it"), "{why}");
}

#[test]
fn a_usable_queue_is_found_among_others_and_its_limits_read() {
    let tree = FakeTree::new("found");
    tree.queue("wq0.0", "dedicated").with("state", "disabled").file(4096);
    let _reader = tree.queue("wq1.0", "shared").with("max_transfer_size", "65536").pipe();
    let queue = open(&tree).unwrap();
    assert_eq!((queue.name(), queue.is_written()), ("wq1.0", true));
    let limits =
        Limits { max_transfer_bytes: 65536, max_batch: 1, max_in_flight: u32::MAX, can_block_on_fault: true };
    assert_eq!(queue.limits, limits);
}

#[test]
fn this_machine_answers_or_says_why_not() {
    match DeviceQueue::open() {
        Ok(queue) => assert!(queue.name().starts_with("wq")),
        Err(why) => assert!(why.sentence.len() > 20, "{why}"),
    }
}
