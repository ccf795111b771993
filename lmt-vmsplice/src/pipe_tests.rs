use super::*;
use crate::sys::Way;
use lmt_core::cursor::Cursor;
use zerocopy::FromBytes;

#[test]
fn a_pipe_is_as_large_as_wanted_and_allowed() {
    let born = Pipe::new(0).unwrap().capacity_bytes();
    let limit = system_limit_bytes();
    assert!(limit >= 4096, "{limit}");
    let wanted = (2 * born).min(limit).max(born);
    // Another process of this user may hold the user's share: then it is less,
    // and never more.
    assert!((born.min(4096)..=wanted).contains(&Pipe::new(wanted).unwrap().capacity_bytes()));
    assert!(Pipe::new(usize::MAX).unwrap().capacity_bytes() <= LARGEST_PIPE_BYTES);
}

#[test]
fn what_is_left_is_taken_back_before_the_pipe_closes() {
    let pipe = Pipe::new(1 << 18).unwrap();
    let outlet = pipe.outlet().unwrap();
    assert!(pipe.is_empty());
    pipe.announce(&Header { message: 7, bytes: 3 }).unwrap();
    let bytes = vec![5; pipe.capacity_bytes() / 2];
    sys::with_shared(&bytes, |data| {
        sys::give(Way::Vmsplice, pipe.inlet(), data, &mut Cursor::default(), u64::MAX)
    })
    .unwrap();
    assert!(!pipe.is_empty());
    let mut header = [0; size_of::<Header>()];
    assert_eq!(sys::read(outlet.as_fd(), &mut header), Ok(header.len() as u64));
    assert_eq!(Header::read_from_bytes(&header).unwrap(), Header { message: 7, bytes: 3 });
    drop(pipe);
    assert_eq!(sys::read(outlet.as_fd(), &mut [0; 100]), Ok(0), "an end, and no byte of the sender's");
}

#[test]
fn a_full_pipe_is_taken_back_whole() {
    let pipe = Pipe::new(usize::MAX).unwrap();
    let outlet = pipe.outlet().unwrap();
    let bytes = vec![5; pipe.capacity_bytes() + 1];
    let mut at = Cursor::default();
    sys::with_shared(
        &bytes,
        |data| {
            while sys::give(Way::Writev, pipe.inlet(), data, &mut at, u64::MAX).is_ok() {}
        },
    );
    drop(pipe);
    assert_eq!(sys::read(outlet.as_fd(), &mut [0; 1]), Ok(0));
}
