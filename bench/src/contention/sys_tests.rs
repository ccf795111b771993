use super::*;

#[test]
fn nothing_is_copied_and_that_is_fine() {
    let sink = Sink::reserve(1 << 20).unwrap();
    let memory = vec![1u8; 1 << 20];
    // A process may always read itself.
    sink.pin(Pid::this(), memory.as_ptr() as u64, memory.len()).unwrap();
    sink.pin(Pid::this(), memory.as_ptr() as u64, 1).unwrap();
}

#[test]
fn other_errors_are_told() {
    let sink = Sink::reserve(4096).unwrap();
    let memory = [1u8; 64];
    let gone = sink.pin(Pid::from_raw(i32::MAX), memory.as_ptr() as u64, 64).unwrap_err();
    assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
    assert!(sink.pin(Pid::this(), memory.as_ptr() as u64, 8192).is_err());
    assert!(Sink::reserve(0).is_err());
}
