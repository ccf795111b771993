use std::panic::catch_unwind;

use super::*;

#[test]
fn pinned_memory_is_not_written_after_a_fork() {
    let (area, other) = (Area::zeroed(3 * PAGE_BYTES), Area::zeroed(10));
    pinned(&[area.piece(PAGE_BYTES, 10)]);
    area.put(&[1; 3 * PAGE_BYTES]);
    let (child, _channel) = fork_with(|_| {
        // Its own copy.
        area.put(&[2; 3 * PAGE_BYTES]);
        0
    })
    .expect("there are processes");
    nix::sys::wait::waitpid(child, None).expect("a child");
    other.put(&[1; 10]);
    area.put(&[2; PAGE_BYTES]);
    assert!(catch_unwind(|| area.put(&[3; PAGE_BYTES + 1])).is_err(), "a byte of a pinned page");
    area.put_after_fork(&[3; PAGE_BYTES + 1]);
    // A region that is made now has the pages that there are now.
    let later = Area::zeroed(10);
    pinned(&[later.all()]);
    later.put(&[4; 10]);
}
