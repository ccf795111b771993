use lmt_core::buffer::Segment;

use super::*;
use crate::pipe::Pipe;

#[test]
fn a_call_is_made_again_until_no_signal_interrupts_it() {
    let mut answers = [(Errno::EINTR, -1), (Errno::EINTR, -1), (Errno::EIO, 7)].into_iter();
    let result = again(|| {
        let (errno, answer) = answers.next().unwrap();
        errno.set();
        answer
    });
    assert_eq!(result, Ok(7));
    let refused = again(|| {
        Errno::EAGAIN.set();
        -1
    });
    assert_eq!(refused, Err(Errno::EAGAIN));
}

#[test]
fn a_full_pipe_takes_a_part_and_the_place_moves_by_as_much() {
    for way in [Way::Vmsplice, Way::Writev] {
        let pipe = Pipe::new(0).unwrap();
        let capacity = pipe.capacity_bytes() as u64;
        let source: Vec<u8> = (0..3 * capacity).map(|at| ((at * 7) >> 3) as u8).collect();
        let mut found = vec![0; source.len()];
        // Odd lengths on both sides, more entries than one call takes.
        let cut = |memory: &[u8], bytes: usize| -> Vec<Segment> {
            memory.chunks(bytes).map(|piece| Segment { bytes: piece.len(), ..Segment::of(piece) }).collect()
        };
        let listed = [(1 << 20, 77), (77, 1 << 20), (5000, 5001)];
        for (from_bytes, into_bytes) in listed {
            found.fill(0);
            let _exposed = Segment::of_mut(&mut found);
            // SAFETY: both vectors outlive the buffers and are not touched
            // meanwhile.
            let data = unsafe { Buffer::new(&cut(&source, from_bytes), Access::Read) }.unwrap();
            // SAFETY: the same.
            let mut into = unsafe { Buffer::new(&cut(&found, into_bytes), Access::Write) }.unwrap();
            let (mut given, mut taken) = (0, 0);
            let (mut from_at, mut into_at) = (Cursor::default(), Cursor::default());
            while taken < data.total_bytes() {
                loop {
                    match give(way, pipe.inlet(), &data, &mut from_at, u64::MAX) {
                        Ok(0) | Err(Errno::EAGAIN) => break,
                        Ok(bytes) => given += bytes,
                        Err(errno) => panic!("{errno}"),
                    }
                }
                assert!(given > taken && given - taken <= capacity);
                assert_eq!(bytes_in(pipe.inlet()), Ok(given - taken));
                taken += take(pipe.outlet_here(), &mut into, &mut into_at, 100_000).unwrap().unwrap();
            }
            assert_eq!(take(pipe.outlet_here(), &mut into, &mut into_at, 9), Ok(Some(0)));
            drop((data, into));
            assert!(found == source, "{way:?} {from_bytes} {into_bytes}");
        }
    }
}

#[test]
fn no_read_waits_even_where_the_peer_has_made_the_descriptor_wait() {
    let release = nix::sys::utsname::uname().unwrap().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) < (Some(6), Some(4)) {
        lmt_conformance::require::skipped("vmsplice", "pipes know RWF_NOWAIT since Linux 6.4");
        return;
    }
    let pipe = Pipe::new(0).unwrap();
    let flags = nix::fcntl::OFlag::empty();
    nix::fcntl::fcntl(pipe.outlet_here(), nix::fcntl::FcntlArg::F_SETFL(flags)).unwrap();
    assert_eq!(read(pipe.outlet_here(), &mut [0; 1]), Err(Errno::EAGAIN));
}

#[test]
fn where_pipes_do_not_know_nowait_an_empty_one_is_not_read() {
    let (outlet, inlet) = nix::unistd::pipe().unwrap();
    use std::os::fd::AsFd;
    let mut found = [0u8; 8];
    let slot = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: found.len() };
    // The descriptor waits, so a read of the empty pipe would not return.
    // SAFETY: the one entry is live, and nobody looks at it meanwhile.
    let try_it = || unsafe { read_unless_empty(outlet.as_fd(), &[slot]) };
    assert_eq!(try_it(), Err(Errno::EAGAIN));
    nix::unistd::write(&inlet, b"lmt").unwrap();
    assert_eq!(try_it(), Ok(3));
    assert_eq!(try_it(), Err(Errno::EAGAIN));
    drop(inlet);
    assert_eq!(try_it(), Ok(0), "its end");
    assert_eq!(&found[..3], b"lmt");
}

#[test]
fn a_buffer_lent_for_reading_is_not_written() {
    let pipe = Pipe::new(0).unwrap();
    lmt_core::buffer::lend(&[1; 4], |data| give(Way::Writev, pipe.inlet(), data, &mut Cursor::default(), 4))
        .unwrap();
    // SAFETY: nothing is written, which is the point.
    let mut data = unsafe { Buffer::new(&[Segment::of(&[0; 4])], Access::Read) }.unwrap();
    let taken = take(pipe.outlet_here(), &mut data, &mut Cursor::default(), 4);
    assert_eq!(taken, Err(Errno::EACCES));
}
