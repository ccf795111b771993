use super::*;
use crate::sys::Way;
use lmt_core::cursor::Cursor;
use zerocopy::FromBytes;

#[test]
fn a_pipe_is_as_large_as_wanted_and_allowed() {
    let born = Pipe::new(0).unwrap().capacity_bytes();
    let limit = system_limit_bytes();
    assert!(limit >= 4096, "{limit}");
    assert!(Pipe::new(usize::MAX).unwrap().capacity_bytes() <= LARGEST_PIPE_BYTES);
    let wanted = 2 * born;
    if !kernel_grants(wanted) {
        let why = format!("the kernel grants this user no pipe of {wanted} bytes");
        return lmt_conformance::require::skipped("vmsplice", &why);
    }
    assert_eq!(Pipe::new(wanted).unwrap().capacity_bytes(), wanted);
    // Half of what is refused is tried, and so on.
    let most = Pipe::new(usize::MAX).unwrap();
    assert!(most.capacity_bytes() >= wanted, "{}", most.capacity_bytes());
    let truly = fcntl(most.inlet(), FcntlArg::F_GETPIPE_SZ).unwrap();
    assert_eq!(most.capacity_bytes(), truly as usize);
}

/// Whether a new pipe may be made so large: the limit of one pipe, and what
/// other processes of this user hold, may be against it.
fn kernel_grants(bytes: usize) -> bool {
    let (_read, write) = nix::unistd::pipe().unwrap();
    fcntl(&write, FcntlArg::F_SETPIPE_SZ(bytes as libc::c_int)).is_ok()
}

#[test]
fn what_is_left_is_taken_back_before_the_pipe_closes() {
    let pipe = Pipe::new(1 << 18).unwrap();
    let outlet = pipe.outlet().unwrap();
    assert!(pipe.is_empty());
    pipe.announce(&Header { message: 7, bytes: 3 }).unwrap();
    let bytes = vec![5; pipe.capacity_bytes() / 2];
    lmt_core::buffer::lend(&bytes, |data| {
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
    lmt_core::buffer::lend(&bytes, |data| {
        while sys::give(Way::Writev, pipe.inlet(), data, &mut at, u64::MAX).is_ok() {}
    });
    drop(pipe);
    assert_eq!(sys::read(outlet.as_fd(), &mut [0; 1]), Ok(0));
}
