//! What every mechanism's mapping of a peer's memory must keep.

use std::fmt::Debug;
use std::os::fd::OwnedFd;

use lmt_core::shared_memory::AttachError;

/// That memory is mapped if it has just the size asked for, and that what is no
/// memfd is not mapped. `create` makes memory of so many bytes, `attach` maps
/// what should have so many.
///
/// # Panics
/// When that is not so.
pub fn only_the_right_size_is_mapped<M: Debug>(
    create: impl Fn(u64) -> (M, OwnedFd),
    attach: impl Fn(OwnedFd, u64) -> Result<M, AttachError>,
) {
    let (_memory, good) = create(8192);
    let copy = || good.try_clone().expect("there are descriptors");
    assert!(attach(copy(), 8192).is_ok());
    for bytes in [4096, 12288] {
        let error = attach(copy(), bytes).expect_err("it has another size");
        assert!(matches!(error, AttachError::WrongSize { .. }), "{error}");
    }
    let null = OwnedFd::from(std::fs::File::open("/dev/null").expect("it is always there"));
    assert_eq!(attach(null, 0).expect_err("it is no memfd"), AttachError::NotOrdinary);
}
