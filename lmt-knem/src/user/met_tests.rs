use super::*;

fn process() -> PeerProcess {
    PeerProcess::new(std::process::id() as i32, None)
}

#[test]
fn a_refusal_that_may_pass_is_not_for_good() {
    for errno in [Errno::ENOMEM, Errno::EINTR] {
        let told = of_copy(CopyError::Refused(errno), &process());
        assert!(matches!(told, KnemError::Refused { errno: seen, .. } if seen == errno), "{told:?}");
        assert_eq!(told.errno(), errno as i32);
    }
    for errno in [Errno::EPERM, Errno::ENOSYS] {
        let told = of_copy(CopyError::Refused(errno), &process());
        assert!(
            matches!(told, KnemError::Unavailable { errno: Some(seen), .. } if seen == errno),
            "{told:?}"
        );
    }
    let told = of_copy(CopyError::Refused(Errno::EFAULT), &process());
    assert!(matches!(told, KnemError::BadMemory(_)), "{told:?}");
}

#[test]
fn more_descriptors_are_asked_for_where_they_are_what_is_missing() {
    for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EINVAL, Errno::EPERM] {
        let sentence = of_system("pidfd_open", errno).to_string();
        let of_limit = matches!(errno, Errno::EMFILE | Errno::ENFILE);
        assert_eq!(sentence.contains("open file"), of_limit, "{sentence}");
        assert_eq!(sentence.contains("seccomp"), errno == Errno::EPERM, "{sentence}");
        assert_eq!(sentence.contains("free memory"), errno == Errno::ENOMEM, "{sentence}");
    }
}

/// A process that runs and is not found is taken to be dying for a while, and
/// no longer; nothing waits meanwhile.
#[test]
fn a_process_that_is_not_found_is_said_to_be_dying_for_a_while() {
    let table = lmt_core::region::RegionTable::create(lmt_core::identity::EndpointId::from_bytes([1; 16]))
        .expect("address space");
    let remote = || {
        let descriptor = table.descriptor().try_clone().expect("a descriptor");
        RemoteTable::attach(descriptor, table.owner()).expect("a table")
    };
    let pid = std::process::id() as i32;
    let Ok(pidfd) = sys::pidfd_open(pid) else {
        return lmt_conformance::require::skipped("pidfd", "the kernel lacks pidfd_open");
    };
    let met = RegionOwner::with(remote(), Arc::new(PeerProcess::new(pid, Some(pidfd))));
    let begun = Instant::now();
    let first = met.not_found(KnemError::UnknownOwner);
    // On a machine that stands still for so long nothing can be said.
    if begun.elapsed() < DYING {
        assert!(matches!(first, KnemError::OwnerDying), "{first:?}");
    }
    *lock(&met.vanished) = begun.checked_sub(DYING);
    let at_last = wait_for_death(|| Err::<(), _>(met.not_found(KnemError::UnknownOwner)));
    assert!(matches!(at_last, Err(KnemError::UnknownOwner)), "{at_last:?}");
    let invisible = RegionOwner::with(remote(), Arc::new(PeerProcess::new(0, None)));
    assert!(matches!(invisible.not_found(KnemError::UnknownOwner), KnemError::UnknownOwner));
    assert!(!met.may_be_replaced_by(&invisible), "it runs, and is another");
    assert!(
        met.may_be_replaced_by(&RegionOwner::with(remote(), Arc::new(process()))),
        "the same process greets again"
    );
}
