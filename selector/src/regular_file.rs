//! Reading files that somebody has named, who may have named anything.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a regular file that is at most so long.
///
/// # Errors
/// As of reading; `InvalidInput` when it is no regular file (a FIFO would keep
/// the reader waiting), `FileTooLarge` when it is longer.
pub(crate) fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a FIFO would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let what = format!("it is longer than {}", crate::size::written(most_bytes));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}
