#![allow(unsafe_code)]

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use crate::base::fork_guard::Origin;

/// Runs `child` in a forked process; its exit status is what it returned.
fn in_child(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs only the guard's lock-free code and _exit.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            let status = child();
            // SAFETY: _exit(2) ends the child at once, without destructors.
            unsafe { libc::_exit(status) }
        }
        ForkResult::Parent { child } => match waitpid(child, None).expect("waitpid") {
            WaitStatus::Exited(_, status) => status,
            other => panic!("the child ended with {other:?}"),
        },
    }
}

#[test]
fn a_child_is_not_its_parent_and_has_an_origin_of_its_own() {
    let parents = Origin::here();
    assert!(parents.is_this_process());
    let status = in_child(|| {
        if parents.is_this_process() {
            return 1;
        }
        let own = Origin::here();
        if !own.is_this_process() {
            return 2;
        }
        if parents.is_this_process() {
            return 3; // Arming the child must not revive what is the parent's.
        }
        // The grandchild is neither of them.
        let status = in_child(|| {
            let its = Origin::here();
            i32::from(own.is_this_process() || parents.is_this_process() || !its.is_this_process())
        });
        if status == 0 { 42 } else { 4 }
    });
    assert_eq!(status, 42);
    assert_eq!(in_child(|| i32::from(Origin::here().number() == parents.number())), 0);
    assert!(parents.number() != 0 && Origin::here().number() == parents.number());
    assert!(parents.is_this_process());
    assert!(Origin::here().is_this_process());
}
