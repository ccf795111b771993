//! Reading files that others name: neither one that never ends nor one whose
//! other end is missing may hold up the reader.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::{fs, io};

/// Reads a regular file of at most `most_bytes`.
///
/// # Errors
/// What the kernel says, or that it is no regular file (a FIFO would be waited
/// for), or that it is longer.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a FIFO waits for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let sentence = match most_bytes {
            most if most.is_multiple_of(1 << 20) => format!("it is longer than {} MiB", most >> 20),
            most => format!("it is longer than {most} bytes"),
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, sentence));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn only_regular_files_within_the_bound_are_read() {
        let folder = std::env::temp_dir().join(format!("lmt-bounded-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, fifo) = (folder.join("file"), folder.join("fifo"));
        std::fs::write(&file, b"12345").unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert!(read(&file, 4).unwrap_err().to_string().contains("longer than 4 bytes"));
        assert!(read(&fifo, 5).unwrap_err().to_string().contains("no regular file"));
        assert!(read("/dev/zero".as_ref(), 5).is_err());
        assert!(read(&folder, 5).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
