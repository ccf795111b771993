#![allow(unsafe_code)] // pidfd_open(2), fork(2) and pages of their own.

use std::os::fd::{FromRawFd, OwnedFd};

use lmt_core::buffer::Access;
use lmt_core::mechanism::Direction;
use nix::errno::Errno;

use super::super::test_double::{
    Double, Say, asked, counting, get, lend, lend_pieces, pair, put, this_process,
};
use super::*;
use crate::types::{Length, RegionPlace};

const MEMCPY: CopyFlags = CopyFlags::MEMCPY_THREAD;
const NONE: CopyFlags = CopyFlags::NONE;

#[test]
fn bytes_go_both_ways_and_between_regions_of_others() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut source, mut target, mut local) = (counting(9000), vec![0; 9000], vec![0; 100]);
    let readable =
        owner.create_region(lend(&mut source, Access::Read), Protection::READ, Uses::Many).unwrap();
    let pieces = lend_pieces(&mut target, &[(5000, 10), (100, 0), (0, 4000)]);
    let writable = owner.create_region(pieces, Protection::READ_WRITE, Uses::Many).unwrap();
    assert_eq!(other.region_bytes(&readable).unwrap(), 9000);
    let travelled = RegionCookie::from_bytes(readable.to_bytes());
    let got = other.inline_copy(&mut lend(&mut local, Access::Write), &get(travelled, 50, 100), NONE);
    assert_eq!(got.unwrap(), 100);
    assert_eq!(local, counting(9000)[50..150]);
    let to_the_end = InlineCopy { length: Length::ToTheEnd, local_offset: 93, ..put(writable, 0) };
    assert_eq!(other.inline_copy(&mut lend(&mut local, Access::Read), &to_the_end, NONE).unwrap(), 7);
    assert_eq!(target[5000..5007], local[93..]);
    let copy = RegionCopy {
        source: RegionPlace { region: readable, offset: 1000 },
        target: RegionPlace { region: writable, offset: 4 },
        length: Length::ToTheEnd,
    };
    assert_eq!(other.region_copy(&copy, NONE).unwrap(), 4006);
    assert_eq!(
        (&target[5004..5010], &target[..4000]),
        (&counting(9000)[1000..1006], &counting(9000)[1006..5006])
    );
    assert_eq!(owner.destroy_region(&readable).unwrap().total_bytes(), 9000);
    assert!(matches!(owner.destroy_region(&readable), Err(KnemError::NotRegistered)));
    assert!(matches!(other.destroy_region(&writable), Err(KnemError::NotRegistered)));
}

#[test]
fn lengths_and_rights_are_checked_before_the_driver_is_asked() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(100), vec![0; 60]);
    let region = owner.create_region(lend(&mut memory, Access::Write), Protection::READ, Uses::Many).unwrap();
    let mut ask = |copy: &InlineCopy, access| other.inline_copy(&mut lend(&mut local, access), copy, NONE);
    for (offset, bytes) in [(50, 51), (101, 0), (u64::MAX, 2), (0, u64::MAX)] {
        let refused = ask(&get(region, offset, bytes), Access::Write);
        assert!(matches!(refused, Err(KnemError::OutOfBounds { total_bytes: 100, .. })), "{refused:?}");
    }
    let past = InlineCopy { length: Length::ToTheEnd, ..get(region, 101, 0) };
    assert!(matches!(ask(&past, Access::Write), Err(KnemError::OutOfBounds { .. })));
    let here = InlineCopy { local_offset: 20, ..get(region, 0, 41) };
    assert!(matches!(ask(&here, Access::Write), Err(KnemError::LocalTooShort { total_bytes: 60, .. })));
    assert!(matches!(ask(&put(region, 1), Access::Write), Err(KnemError::Forbidden(Direction::Put))));
    assert!(matches!(ask(&get(region, 0, 1), Access::Read), Err(KnemError::ReadOnlyMemory)));
    let read_only = owner.create_region(lend(&mut local, Access::Read), Protection::WRITE, Uses::Many);
    assert!(matches!(read_only, Err(KnemError::ReadOnlyMemory)));
    assert_eq!(asked(&double), []);
}

#[test]
fn a_stale_cookie_is_refused_though_the_driver_reuses_its_number() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut old, mut new, mut local) = (vec![1; 10], vec![2; 10], vec![0; 10]);
    let stale = owner.create_region(lend(&mut old, Access::Read), Protection::READ, Uses::Many).unwrap();
    owner.destroy_region(&stale).unwrap();
    let fresh = owner.create_region(lend(&mut new, Access::Read), Protection::READ, Uses::Many).unwrap();
    assert_eq!(double.state().regions.keys().copied().collect::<Vec<_>>(), [1], "the number was reused");
    assert_eq!(stale.slot(), fresh.slot());
    for refused in [
        other.inline_copy(&mut lend(&mut local, Access::Write), &get(stale, 0, 10), NONE),
        owner.inline_copy(&mut lend(&mut local, Access::Write), &get(stale, 0, 10), NONE),
        other.region_bytes(&stale),
    ] {
        assert!(matches!(refused, Err(KnemError::NotRegistered)), "{refused:?}");
    }
    assert_eq!(asked(&double), []);
    other.inline_copy(&mut lend(&mut local, Access::Write), &get(fresh, 0, 10), NONE).unwrap();
    assert_eq!(local, [2; 10]);
}

#[test]
fn a_region_that_ends_while_it_is_copied_makes_the_copy_fail() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut old, mut new, mut local) = (vec![1; 10], vec![2; 10], vec![0; 10]);
    let region = owner.create_region(lend(&mut old, Access::Read), Protection::READ, Uses::Many).unwrap();
    double.state().script.push_back(Say::GoOn);
    let id = other.start_inline_copy(lend(&mut local, Access::Write), &get(region, 0, 10), MEMCPY).unwrap();
    owner.destroy_region(&region).unwrap();
    owner.create_region(lend(&mut new, Access::Read), Protection::READ, Uses::Many).unwrap();
    double.end(abi::STATUS_SUCCESS);
    let result = other.poll(id);
    assert!(matches!(result, Err(KnemError::NotRegistered)), "{result:?}");
}

#[test]
fn one_use_is_one_request_even_of_nothing_or_in_vain() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let ends: [(u64, Option<Say>); 3] = [(10, None), (0, None), (10, Some(Say::Refuse(Errno::EFAULT)))];
    for (bytes, say) in ends {
        let buffer = lend(&mut memory, Access::Write);
        let region = owner.create_region(buffer, Protection::READ, Uses::Single).unwrap();
        let refused = other.inline_copy(&mut lend(&mut local, Access::Read), &put(region, 1), NONE);
        assert!(matches!(refused, Err(KnemError::Forbidden(_))), "which does not use it up: {refused:?}");
        double.state().script.extend(say);
        let first = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, bytes), NONE);
        assert_eq!(first.is_ok(), say.is_none(), "{first:?}");
        let requests = asked(&double).len();
        let second = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 1), NONE);
        assert!(matches!(second, Err(KnemError::NotRegistered)), "{second:?}");
        assert_eq!((requests, asked(&double).len()), (1, 0));
        assert_eq!(owner.destroy_region(&region).unwrap().total_bytes(), 10);
    }
}

#[test]
fn the_status_in_the_answer_counts_first() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    let mut start = |other: &mut IoctlDriver, say| {
        double.state().script.push_back(say);
        other.start_inline_copy(lend(&mut local, Access::Write), &get(region, 0, 10), MEMCPY)
    };
    // Done at once: its slot is never written.
    let id = start(&mut other, Say::Status(abi::STATUS_SUCCESS.into())).unwrap();
    let copied = other.poll(id).unwrap().expect("it has ended");
    assert_eq!((copied.bytes, copied.local.map(|local| local.total_bytes())), (10, Some(10)));
    assert!(matches!(other.poll(id), Err(KnemError::NoSuchCopy)));
    // Going on, then ended well or badly.
    for (status, is_good) in [(abi::STATUS_SUCCESS, true), (abi::STATUS_FAILED, false)] {
        let id = start(&mut other, Say::GoOn).unwrap();
        assert!(other.poll(id).unwrap().is_none());
        double.end(status);
        assert_eq!(other.poll(id).is_ok(), is_good);
        assert!(matches!(other.poll(id), Err(KnemError::NoSuchCopy)));
    }
    let id = start(&mut other, Say::Status(abi::STATUS_FAILED.into()));
    assert!(matches!(id, Err(KnemError::BadMemory(_))), "{id:?}");
    let id = start(&mut other, Say::Status(77));
    assert!(matches!(id, Err(KnemError::Status { status: 77 })), "{id:?}");
}

#[test]
fn bad_local_memory_is_told_whichever_way_the_driver_says_so() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let buffer = lend(&mut memory, Access::Write);
    let region = owner.create_region(buffer, Protection::READ_WRITE, Uses::Many).unwrap();
    for (copy, flags, say) in [
        (get(region, 0, 10), NONE, Say::Status(abi::STATUS_FAILED.into())),
        (get(region, 0, 10), CopyFlags::PIN_LOCAL, Say::Refuse(Errno::EFAULT)),
        (put(region, 10), NONE, Say::Refuse(Errno::EFAULT)),
        (get(region, 0, 10), MEMCPY, Say::Refuse(Errno::EFAULT)),
    ] {
        double.state().script.push_back(say);
        let refused = other.inline_copy(&mut lend(&mut local, Access::Write), &copy, flags);
        assert!(matches!(refused, Err(KnemError::BadMemory("local memory"))), "{refused:?}");
    }
    double.state().script.push_back(Say::Status(abi::STATUS_PENDING.into()));
    let refused = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), NONE);
    assert!(matches!(refused, Err(KnemError::Status { status: 0 })), "nothing was to go on: {refused:?}");
}

#[test]
fn nothing_is_never_copied_asynchronously() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    let id = other.start_inline_copy(lend(&mut local, Access::Write), &get(region, 10, 0), MEMCPY).unwrap();
    assert_eq!(other.poll(id).unwrap().expect("it has ended").bytes, 0);
    let [one] = asked(&double)[..] else { panic!("one request") };
    assert_eq!((one.flags, one.bytes), (0, 0));
    // A driver that makes it asynchronous all the same, and says so.
    double.state().info.forced_flags = abi::FLAG_MEMCPYTHREAD;
    let (mut owner, mut other) = pair(&double);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    double.state().script.push_back(Say::Status(abi::STATUS_PENDING.into()));
    let got = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 0), NONE);
    assert_eq!(got.unwrap(), 0);
}

#[test]
fn a_forced_thread_is_waited_for() {
    let double = Double::new();
    double.state().info.forced_flags = abi::FLAG_MEMCPYTHREAD;
    let (mut owner, mut other) = pair(&double);
    assert!(other.info().forced.contains(MEMCPY));
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    double.state().script.push_back(Say::GoOn);
    let ending = double.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ending.state().asked.is_empty() {
                std::thread::yield_now();
            }
            ending.end(abi::STATUS_SUCCESS);
        });
        let got = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), NONE);
        assert_eq!(got.unwrap(), 10);
    });
    assert_eq!(local, counting(10));
}

#[test]
fn slots_are_as_many_as_the_driver_stands_and_used_again() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(1), vec![0; 1]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    let mut start = |other: &mut IoctlDriver| {
        double.state().script.push_back(Say::GoOn);
        other.start_inline_copy(lend(&mut local, Access::Write), &get(region, 0, 1), MEMCPY)
    };
    let ids: Vec<CopyId> = (0..4096).map(|_| start(&mut other).unwrap()).collect();
    assert!(asked(&double).iter().all(|asked| asked.slot < 4096));
    let full = start(&mut other);
    assert!(matches!(full, Err(KnemError::TooMany { most: 4096, .. })), "{full:?}");
    assert_eq!(asked(&double), []);
    double.state().script.clear();
    double.end(abi::STATUS_SUCCESS);
    assert!(ids.iter().all(|id| other.poll(*id).unwrap().is_some()));
    let again = start(&mut other).unwrap();
    assert!(!ids.contains(&again), "an old number must not name it");
    assert!(other.poll(again).unwrap().is_none(), "its slot was cleared");
    double.end(abi::STATUS_SUCCESS);
}

/// A process that has ended, by its pidfd.
fn dead_process() -> Arc<PeerProcess> {
    let mut child = std::process::Command::new("true").spawn().expect("a process");
    let pid = child.id() as i32;
    // SAFETY: numbers only.
    let fd = unsafe { nix::libc::syscall(nix::libc::SYS_pidfd_open, pid, 0) };
    assert!(fd >= 0, "{}", Errno::last());
    // SAFETY: a descriptor that was just made and is nobody else's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    child.wait().expect("it ends");
    Arc::new(PeerProcess::new(pid, Some(fd)))
}

#[test]
fn what_the_dead_declared_is_neither_written_nor_believed() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let buffer = lend(&mut memory, Access::Write);
    let region = owner.create_region(buffer, Protection::READ_WRITE, Uses::Many).unwrap();
    other.part(owner.owner());
    other.meet(dead_process(), owner.introduce().unwrap()).unwrap();
    let refused = other.inline_copy(&mut lend(&mut local, Access::Read), &put(region, 10), NONE);
    assert!(matches!(refused, Err(KnemError::OwnerDead)), "{refused:?}");
    assert_eq!(asked(&double), [], "the number may be another's by now");
    for say in [None, Some(Say::Refuse(Errno::EINVAL))] {
        double.state().script.extend(say);
        let refused = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), NONE);
        assert!(matches!(refused, Err(KnemError::OwnerDead)), "{refused:?}");
    }
}

#[test]
fn what_the_driver_refuses_is_told_in_sentences() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    for (errno, words) in [
        (Errno::EINVAL, "not registered"),
        (Errno::EACCES, "protection forbids"),
        (Errno::EPERM, "another user"),
        (Errno::ENOMEM, "fewer segments"),
        (Errno::ENOSYS, "lacks the request"),
        (Errno::EBADF, "reading only"),
    ] {
        double.state().script.push_back(Say::Refuse(errno));
        let refused = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), NONE);
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
        assert!(errno == Errno::EINVAL || refused.errno() == errno as i32, "{refused}");
    }
    // Of an asynchronous copy of a region that is there.
    double.state().script.push_back(Say::Refuse(Errno::EINVAL));
    let refused = other.start_inline_copy(lend(&mut local, Access::Write), &get(region, 0, 10), MEMCPY);
    assert!(refused.is_err_and(|why| why.to_string().contains("asynchronous flags out")));
    assert!(errors::of_bind(Errno::EINVAL).to_string().contains("online"));
    assert!(
        errors::of_any("mapping the status array", Errno::EBUSY).to_string().contains("one status array")
    );
}

#[test]
fn what_is_no_driver_is_refused_with_the_reason() {
    let refused = |path: &str| IoctlDriver::open_at(Path::new(path)).unwrap_err();
    let missing = refused("/nowhere/knem");
    assert!(missing.to_string().contains("modprobe") && missing.errno() == Errno::ENOENT as i32, "{missing}");
    let stranger = refused("/dev/null");
    assert!(stranger.to_string().contains("does not answer as KNEM does"), "{stranger}");
    let double = Double::new();
    double.state().info.abi = 0xc;
    let old = IoctlDriver::with_device(double.device(), Path::new("/dev/knem")).unwrap_err();
    assert!(old.to_string().contains("0xc") && old.to_string().contains("0xd"), "{old}");
    for (errno, words) in [
        (Errno::EACCES, "gives this user"),
        (Errno::EPERM, "gives this user"),
        (Errno::EROFS, "read-only"),
        (Errno::ENXIO, "no driver is behind it"),
        (Errno::EMFILE, "limit on open files"),
        (Errno::EIO, "dmesg"),
    ] {
        let sentence = errors::of_open(Path::new("/dev/knem"), errno).to_string();
        assert!(sentence.contains(words), "{sentence}");
    }
    let read_only = errors::of_info(Path::new("/dev/knem"), Errno::EBADF).to_string();
    assert!(read_only.contains("open for reading only"), "{read_only}");
}

#[test]
fn introductions_that_are_none_are_refused() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let good = || owner.introduce();
    let mut good = good;
    let mut hello = good().unwrap();
    hello.bytes[0] ^= 1;
    assert!(matches!(other.meet(this_process(), hello), Err(KnemError::Introduction(_))));
    let bare = Hello { descriptors: Vec::new(), ..good().unwrap() };
    assert!(matches!(other.meet(this_process(), bare), Err(KnemError::Introduction(_))));
    let null = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let wrong = Hello { descriptors: vec![null], ..good().unwrap() };
    assert!(matches!(other.meet(this_process(), wrong), Err(KnemError::Table(_))));
    let own = owner.introduce().unwrap();
    assert!(matches!(owner.meet(this_process(), own), Err(KnemError::Introduction(_))));
    let nobody = RegionCookie::new(EndpointId::from_bytes([9; 16]), 0, 1);
    assert!(matches!(other.region_bytes(&nobody), Err(KnemError::UnknownOwner)));
    other.part(owner.owner());
    let gone = RegionCookie::new(owner.owner(), 0, 1);
    assert!(matches!(other.region_bytes(&gone), Err(KnemError::UnknownOwner)));
    for slot in [1, 4095, 4096, u32::MAX] {
        let none = RegionCookie::new(owner.owner(), slot, 0);
        assert!(matches!(owner.region_bytes(&none), Err(KnemError::NotRegistered)));
    }
}

#[test]
fn nobody_takes_the_place_of_one_who_lives() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    let mut liar = double.open();
    let mut hello = liar.introduce().unwrap();
    hello.bytes = owner.introduce().unwrap().bytes;
    let somebody = Arc::new(PeerProcess::new(1, None));
    let refused = other.meet(somebody, hello);
    assert!(matches!(refused, Err(KnemError::Introduction(_))), "{refused:?}");
    let got = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), NONE);
    assert_eq!(got.unwrap(), 10);
    assert!(other.meet(this_process(), owner.introduce().unwrap()).is_ok(), "it may greet again itself");
    // Who has died is replaced.
    other.part(owner.owner());
    other.meet(dead_process(), owner.introduce().unwrap()).unwrap();
    assert!(other.meet(this_process(), owner.introduce().unwrap()).is_ok());
}

#[test]
fn masks_go_to_the_driver_as_they_are() {
    let double = Double::new();
    let mut driver = double.open();
    driver.bind_offload(&Binding::Custom(vec![5, 1 << 63])).unwrap();
    driver.bind_offload(&Binding::Current).unwrap();
    driver.bind_offload(&Binding::CurrentReversed).unwrap();
    let expected = [(1, vec![5, 1 << 63]), (2, vec![]), (4, vec![])];
    assert_eq!(double.state().bound, expected);
}

#[test]
fn dropping_the_driver_ends_its_regions_and_waits_for_its_copies() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    double.state().script.push_back(Say::GoOn);
    other.start_inline_copy(lend(&mut local, Access::Write), &get(region, 0, 10), MEMCPY).unwrap();
    let ending = double.clone();
    let begun = std::time::Instant::now();
    let slow = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        ending.end(abi::STATUS_SUCCESS);
    });
    drop(other);
    assert!(begun.elapsed() >= std::time::Duration::from_millis(50), "the driver still wrote into `local`");
    slow.join().expect("it ends");
    drop(owner);
    assert!(double.state().regions.is_empty());
}

#[test]
fn a_forked_child_is_refused_and_disturbs_nothing() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    let before = double.state().created;
    // SAFETY: the child allocates nothing before it exits but what its copy of
    // the allocator allows, and takes no lock that another thread may hold.
    let child = unsafe { nix::libc::fork() };
    if child == 0 {
        let copy = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), NONE);
        let create = owner.create_region(Buffer::empty(Access::Read), Protection::READ, Uses::Many);
        let refused = matches!(copy, Err(KnemError::Forked))
            && matches!(create, Err(KnemError::Forked))
            && matches!(owner.destroy_region(&region), Err(KnemError::Forked));
        drop(owner);
        let good = refused && double.state().regions.len() == 1 && double.state().created == before;
        // SAFETY: ends the child at once.
        unsafe { nix::libc::_exit(i32::from(!good)) };
    }
    let ended = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(child), None);
    assert!(matches!(ended, Ok(nix::sys::wait::WaitStatus::Exited(_, 0))), "{ended:?}");
    assert_eq!(
        other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), NONE).unwrap(),
        10
    );
}

#[test]
fn a_region_is_not_given_back_while_ones_own_copy_goes_on() {
    let double = Double::new();
    let mut driver = double.open();
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let buffer = lend(&mut memory, Access::Write);
    let region = driver.create_region(buffer, Protection::READ_WRITE, Uses::Many).unwrap();
    double.state().script.push_back(Say::GoOn);
    let id = driver.start_inline_copy(lend(&mut local, Access::Write), &get(region, 0, 10), MEMCPY).unwrap();
    let backoff = std::mem::replace(&mut driver.copies.backoff, std::time::Duration::from_millis(20));
    let refused = driver.destroy_region(&region);
    assert!(matches!(refused, Err(KnemError::CopyInFlight)), "{refused:?}");
    assert_eq!(driver.region_bytes(&region).unwrap(), 10, "it is still there");
    driver.copies.backoff = backoff;
    let ending = double.clone();
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            ended.store(true, std::sync::atomic::Ordering::SeqCst);
            ending.end(abi::STATUS_SUCCESS);
        });
        assert_eq!(driver.destroy_region(&region).unwrap().total_bytes(), 10);
        assert!(ended.load(std::sync::atomic::Ordering::SeqCst), "it was given back before the copy's end");
    });
    assert_eq!(driver.poll(id).unwrap().expect("it has ended").bytes, 10, "it ended well before");
    assert_eq!(local, counting(10));
}

#[test]
fn a_slot_that_is_never_written_hangs_nothing() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let (mut memory, mut local) = (counting(10), vec![0; 10]);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    other.copies.backoff = std::time::Duration::from_millis(20);
    double.state().script.extend([Say::GoOn]);
    let copy = other.inline_copy(&mut lend(&mut local, Access::Write), &get(region, 0, 10), MEMCPY);
    assert!(matches!(copy, Err(KnemError::CopyLost)), "{copy:?}");
    let id = other.start_inline_copy(lend(&mut local, Access::Write), &get(region, 0, 10), MEMCPY).unwrap();
    assert_eq!(id.slot(), 1, "the slot of the lost one is not used again");
    drop(other);
    // Were the array unmapped, or the slots another's, this would be seen there.
    double.end(abi::STATUS_SUCCESS);
}

#[test]
fn messages_go_on_while_a_forced_thread_copies() {
    use lmt_core::mechanism::{Hello, Interval, Lmt, Model, PeerFacts, Plan, Probed, Role, Step};
    let double = Double::new();
    double.state().info.forced_flags = abi::FLAG_MEMCPYTHREAD;
    let mut sender = crate::KnemLmt::over(double.open());
    let mut receiver = crate::KnemLmt::over(double.open());
    let facts = PeerFacts {
        id: EndpointId::from_bytes([1; 16]),
        process: this_process(),
        probe_address: 0,
        nonce: [0; 16],
    };
    let (mut from, _) = receiver.probe(&facts, sender.hello().unwrap()).and_then(Probed::reached).unwrap();
    let mut to = sender.probe(&facts, Hello::default()).unwrap().peer;
    let (mut out, mut into) = (counting(10), vec![0; 10]);
    let (source, mut target) = (lend(&mut out, Access::Read), lend(&mut into, Access::Write));
    let interval = Interval { start: 0, end: 10 };
    let plan = |role| Plan::new(role, Model::Get, interval);
    let (send, cookie) = sender.prepare(&mut to, &plan(Role::Sender), &source).unwrap();
    let (mut receive, _) = receiver.prepare(&mut from, &plan(Role::Receiver), &target).unwrap();
    receiver.start(&mut from, &mut receive, &cookie, interval).unwrap();
    double.state().script.push_back(Say::GoOn);
    let mut step = |most| receiver.step(&mut from, &mut receive, &mut target, most).unwrap();
    for most in [6, 10, 1] {
        assert_eq!(step(most), Step { bytes: 0, done: false }, "it neither waits nor asks twice");
    }
    double.end(abi::STATUS_SUCCESS);
    assert_eq!(step(10), Step { bytes: 6, done: false });
    double.state().script.push_back(Say::GoOn);
    assert_eq!(step(10), Step { bytes: 0, done: false });
    // Given up now, it is waited for.
    let ending = double.clone();
    let slow = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        ending.end(abi::STATUS_SUCCESS);
    });
    let begun = std::time::Instant::now();
    receiver.finish(&mut from, receive);
    assert!(begun.elapsed() >= std::time::Duration::from_millis(20), "the driver still wrote to the memory");
    slow.join().expect("it ends");
    sender.finish(&mut to, send);
    assert_eq!(into, counting(10));
}

#[test]
fn lines_that_the_owner_has_no_memory_for_are_not_read() {
    let double = Double::new();
    let (mut owner, mut other) = pair(&double);
    let mut memory = counting(10);
    let region = owner.create_region(lend(&mut memory, Access::Read), Protection::READ, Uses::Many).unwrap();
    let table = std::fs::File::from(owner.introduce().unwrap().descriptors.remove(0));
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&table.metadata().expect("a file"));
    let before = blocks();
    for slot in [1, 127, 128, 4000, 4095, 4096, u32::MAX] {
        let refused = other.region_bytes(&RegionCookie::new(owner.owner(), slot, 1));
        assert!(matches!(refused, Err(KnemError::NotRegistered)), "{slot} {refused:?}");
    }
    assert_eq!(blocks(), before, "a hole was read");
    assert_eq!(other.region_bytes(&region).unwrap(), 10);
    // An owner that lies about them does no harm either.
    std::os::unix::fs::FileExt::write_all_at(&table, &u64::MAX.to_ne_bytes(), 0).expect("written");
    for slot in [4095, 4096] {
        let refused = other.region_bytes(&RegionCookie::new(owner.owner(), slot, 1));
        assert!(matches!(refused, Err(KnemError::NotRegistered)), "{slot} {refused:?}");
    }
}
