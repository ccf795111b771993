#![allow(unsafe_code)] // Maps memory and takes rights away.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::*;

const PAGES: usize = 3;

/// Some pages of ones, of a file or not.
struct Pages(*mut u8, Option<File>);

impl Pages {
    fn new(of_file: bool) -> Self {
        let bytes = PAGES * page_bytes();
        let file = of_file.then(|| {
            let file = File::from(memfd_create(c"test", MFdFlags::empty()).expect("a file"));
            file.set_len(bytes as u64).expect("room");
            file
        });
        let kind = if of_file { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
        let fd = file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, kind, fd, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        let base = base.cast::<u8>();
        base.expose_provenance();
        // SAFETY: of the mapping.
        unsafe { base.write_bytes(1, bytes) };
        Self(base, file)
    }

    /// The last bytes of the first page and the first of the second, which nobody has
    /// references to.
    fn border(&self) -> Segment {
        Segment { address: self.0.addr() + page_bytes() - 8, bytes: 16 }
    }

    /// Takes rights of all pages but the first away.
    fn protect(&self, rights: i32) {
        let second = self.0.wrapping_add(page_bytes()).cast();
        // SAFETY: pages of the mapping, to which there are no references.
        assert_eq!(unsafe { libc::mprotect(second, (PAGES - 1) * page_bytes(), rights) }, 0);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping, used no more.
        unsafe { libc::munmap(self.0.cast(), PAGES * page_bytes()) };
    }
}

fn read(touch: &mut FaultSafeCopy, from: Segment) -> Result<Vec<u8>, Errno> {
    let mut into = vec![0; from.bytes];
    touch.read(from, &mut into).map(|()| into)
}

fn write(touch: &mut FaultSafeCopy, to: Segment) -> Result<(), Errno> {
    // SAFETY: part of the test's pages, to which there are no references.
    unsafe { touch.write(to, &vec![2; to.bytes]) }
}

#[test]
fn memory_is_read_and_written_as_by_this_process() {
    for of_file in [false, true] {
        let (pages, mut touch) = (Pages::new(of_file), FaultSafeCopy::default());
        let border = pages.border();
        assert_eq!(read(&mut touch, border), Ok(vec![1; 16]));
        assert_eq!((check(border, false), check(border, true)), (Ok(()), Ok(())));
        assert_eq!(read(&mut touch, border), Ok(vec![1; 16]), "looking changes nothing");
        assert_eq!(write(&mut touch, border), Ok(()));
        assert_eq!(read(&mut touch, border), Ok(vec![2; 16]));
        let all = Segment { address: pages.0.addr(), bytes: PAGES * page_bytes() };
        assert_eq!(write(&mut touch, all), Ok(()));
        assert_eq!(read(&mut touch, all), Ok(vec![2; PAGES * page_bytes()]));
        assert_eq!(read(&mut touch, Segment { bytes: 0, ..all }), Ok(vec![]));
    }
}

#[test]
fn pages_that_may_only_be_read_are_not_written() {
    let (pages, mut touch) = (Pages::new(false), FaultSafeCopy::default());
    pages.protect(libc::PROT_READ);
    let border = pages.border();
    assert_eq!((read(&mut touch, border), check(border, false)), (Ok(vec![1; 16]), Ok(())));
    assert_eq!((write(&mut touch, border), check(border, true)), (Err(Errno::FAULT), Err(Errno::FAULT)));
    let first = Segment { bytes: 8, ..border };
    assert_eq!((write(&mut touch, first), check(first, true)), (Ok(()), Ok(())));
}

#[test]
fn pages_without_rights_and_those_behind_a_file_s_end_are_not_touched() {
    for is_cut in [false, true] {
        let (pages, mut touch) = (Pages::new(is_cut), FaultSafeCopy::default());
        match &pages.1 {
            Some(file) => file.set_len(page_bytes() as u64).expect("it is cut"),
            None => pages.protect(libc::PROT_NONE),
        }
        let border = pages.border();
        assert_eq!(
            (read(&mut touch, border), write(&mut touch, border)),
            (Err(Errno::FAULT), Err(Errno::FAULT))
        );
        assert_eq!(check(border, false), Err(Errno::FAULT));
        assert_eq!(check(border, true), Err(Errno::FAULT));
        assert_eq!(read(&mut touch, Segment { bytes: 8, ..border }).map(|bytes| bytes.len()), Ok(8));
    }
}

/// A few bytes go another path than many.
#[test]
fn an_own_buffer_of_any_length_is_touched_as_far_as_it_can_be() {
    let (pages, mut touch) = (Pages::new(false), FaultSafeCopy::default());
    let (border, first) = (pages.border(), pages.0.addr());
    let segments = [border, Segment { address: first + 1, bytes: FEW_BYTES + 1 }];
    let mut both = |segment: Segment| {
        let mut into = vec![0; segment.bytes];
        // SAFETY: part of the test's pages, to which there are no references.
        let read = unsafe { touch.read_own(segment, &mut into) }.map(|()| into);
        // SAFETY: the same.
        (read, unsafe { touch.write_own(segment, &vec![2; segment.bytes]) })
    };
    assert_eq!(both(border), (Ok(vec![1; 16]), Ok(())));
    assert_eq!(both(Segment { bytes: 1, ..border }), (Ok(vec![2]), Ok(())));
    assert_eq!(both(Segment { address: 8, bytes: 0 }), (Ok(vec![]), Ok(())));
    pages.protect(libc::PROT_READ);
    assert!(segments.map(&mut both).iter().all(|(read, written)| read.is_ok() && written.is_err()));
    pages.protect(libc::PROT_NONE);
    let bad = (Err(Errno::FAULT), Err(Errno::FAULT));
    assert_eq!(segments.map(both), [bad.clone(), bad]);
}

/// No other process reads it, and no call that goes by pages; this process may touch it.
#[test]
fn secret_memory_is_touched() {
    let bytes = page_bytes();
    // SAFETY: no argument is an address.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_secret, 0) };
    let Ok(fd @ 0..) = i32::try_from(fd) else {
        println!("SKIPPED: there is no memfd_secret(2) here");
        return;
    };
    // SAFETY: a new file.
    assert_eq!(unsafe { libc::ftruncate(fd, bytes as libc::off_t) }, 0);
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which stays.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, libc::MAP_SHARED, fd, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    let (all, mut touch) = (Segment { address: base.expose_provenance(), bytes }, FaultSafeCopy::default());
    assert_eq!((write(&mut touch, all), check(all, true)), (Ok(()), Ok(())));
    assert_eq!(read(&mut touch, all), Ok(vec![2; bytes]));
}
