use std::os::fd::AsRawFd;

use super::*;

fn make(bytes: usize, commit: bool) -> (SharedMemory, OwnedFd) {
    SharedMemory::create("a test", "inbox_cells", bytes, commit).expect("memory for a test")
}

#[test]
fn both_ends_see_one_memory() {
    let (ours, fd) = make(3 * PAGE_BYTES, true);
    let theirs = SharedMemory::attach(fd, 1, 1 << 20).unwrap();
    assert_eq!(theirs.len(), 3 * PAGE_BYTES);
    // SAFETY: the first byte of a live mapping of this test.
    let (a, b) = (unsafe { AtomicU8::from_ptr(ours.base().as_ptr()) }, unsafe {
        AtomicU8::from_ptr(theirs.base().as_ptr())
    });
    a.store(7, Ordering::Relaxed);
    assert_eq!(b.load(Ordering::Relaxed), 7);
}

#[test]
fn committed_memory_is_allocated_and_sparse_memory_is_not() {
    let blocks = |fd: &OwnedFd| fstat(fd).unwrap().st_blocks * 512;
    let (_a, committed) = make(1 << 20, true);
    assert!(blocks(&committed) >= 1 << 20);
    let (sparse, fd) = make(1 << 20, false);
    assert_eq!(blocks(&fd), 0);
    sparse.commit_range("a test", "inbox_cells", 5000, 10).unwrap();
    assert_eq!(blocks(&fd), PAGE_BYTES as i64);
    sparse.touch(2 * PAGE_BYTES, 2 * PAGE_BYTES + 1);
    assert_eq!(blocks(&fd), 2 * PAGE_BYTES as i64);
    sparse.commit_range("a test", "inbox_cells", usize::MAX, usize::MAX).unwrap();
    assert_eq!(blocks(&fd), 2 * PAGE_BYTES as i64);
}

#[test]
fn memory_that_could_fault_is_refused() {
    let unsealed = memfd_create("t", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    nix::unistd::ftruncate(&unsealed, 4096).unwrap();
    assert_eq!(SharedMemory::attach(unsealed, 1, 1 << 20).unwrap_err(), AttachError::NotSealed);
    let half = memfd_create("t", MFdFlags::MFD_ALLOW_SEALING).unwrap();
    fcntl(&half, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_GROW)).unwrap();
    assert_eq!(SharedMemory::attach(half, 0, 1 << 20).unwrap_err(), AttachError::NotSealed);
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert_eq!(SharedMemory::attach(file.into(), 1, 1 << 30).unwrap_err(), AttachError::NotOrdinary);
}

#[test]
fn the_size_is_sealed_and_checked() {
    let (_memory, fd) = make(8192, false);
    assert_eq!(nix::unistd::ftruncate(&fd, 4096), Err(Errno::EPERM));
    assert_eq!(nix::unistd::ftruncate(&fd, 16384), Err(Errno::EPERM));
    let again = fd.try_clone().unwrap();
    let wrong = SharedMemory::attach(again, 1, 8191).unwrap_err();
    assert_eq!(wrong, AttachError::WrongSize { bytes: 8192, min_bytes: 1, max_bytes: 8191 });
    assert!(SharedMemory::attach(fd, 8193, 1 << 20).is_err());
}

#[test]
fn attach_closes_the_descriptor_and_drop_unmaps() {
    let (memory, fd) = make(4096, true);
    let number = fd.as_raw_fd();
    let inode = fstat(&fd).unwrap().st_ino;
    let there = || std::fs::read_to_string("/proc/self/maps").unwrap().matches(&format!(" {inode} ")).count();
    let attached = SharedMemory::attach(fd, 1, 4096).unwrap();
    let open = std::fs::read_link(format!("/proc/self/fd/{number}"));
    // Another test may have taken the number since, but not for this memory.
    assert!(
        open.is_err()
            || std::fs::metadata(format!("/proc/self/fd/{number}"))
                .map_or(true, |m| { std::os::unix::fs::MetadataExt::ino(&m) != inode })
    );
    assert_eq!(there(), 2);
    drop(attached);
    drop(memory);
    assert_eq!(there(), 0);
}

#[test]
fn too_much_memory_is_refused_with_numbers() {
    let short = |made: Result<(SharedMemory, OwnedFd), MemoryError>| match made {
        Err(MemoryError::Short(short)) => short,
        other => panic!("{other:?}"),
    };
    let error = short(SharedMemory::create("a test", "inbox_cells", 1 << 46, true));
    assert_eq!((error.needed_bytes, error.key), (1 << 46, "inbox_cells"));
    assert!(error.available.parse::<u64>().unwrap() < 1 << 46, "{error}");
    let error = short(SharedMemory::create("a test", "inbox_cells", usize::MAX, false));
    assert!(error.limit.contains("ftruncate"), "{error}");
}

#[test]
fn what_failed_decides_what_is_said() {
    let said = |errno| failed("a test", "inbox_cells", 4096, ("memfd_create", errno));
    for errno in [Errno::EPERM, Errno::ENOSYS, Errno::EACCES, Errno::EMFILE, Errno::ENFILE] {
        let error = said(errno);
        assert_eq!(error.errno(), errno);
        let sentence = error.to_string();
        assert!(sentence.contains("a test needs memfd_create"), "{sentence}");
        assert!(!sentence.contains("available") && !sentence.contains("free memory"), "{sentence}");
    }
    for errno in [Errno::ENOMEM, Errno::ENOSPC] {
        let error = said(errno);
        assert_eq!(error.errno(), Errno::ENOMEM);
        assert!(error.to_string().contains("needs 4096 bytes and"), "{error}");
    }
}
