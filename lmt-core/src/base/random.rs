//! Random bytes from the kernel.
#![allow(unsafe_code)] // The one call that fills memory.

use nix::errno::Errno;

/// Fills `bytes` with random ones (getrandom(2)).
///
/// # Errors
/// The kernel's errno; none on Linux 3.17 and newer once it has booted.
pub fn fill(bytes: &mut [u8]) -> Result<(), Errno> {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: `rest` is writable for `rest.len()` bytes.
        let answer = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match Errno::result(answer) {
            Ok(more) => filled += more as usize,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Sixteen random bytes, enough for an identity or a nonce.
///
/// # Errors
/// As [`fill`].
pub fn bytes() -> Result<[u8; 16], Errno> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(bytes)
}
