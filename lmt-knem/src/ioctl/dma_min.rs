//! The module's parameter `dmamin`: the driver copies pieces of up to so many
//! bytes by the processor, also where the engine was asked for.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use lmt_core::mechanism::Unavailable;
use nix::errno::Errno;

use super::abi::PAGE_BYTES;

/// Where it can be read, by everybody.
pub(super) const PATH: &str = "/sys/module/knem/parameters/dmamin";

/// What it is unless an administrator has set it, and the least that is reckoned
/// with.
const DEFAULT_BYTES: u64 = 1024;

/// The parameter, which an administrator may change at any time.
#[derive(Debug)]
pub(super) struct DmaMin(Result<File, Errno>);

impl DmaMin {
    /// Opens it; that it cannot be opened is said when it is read.
    pub fn open(path: &Path) -> Self {
        Self(File::open(path).map_err(|error| errno_of(&error)))
    }

    #[cfg(test)]
    pub fn of(file: File) -> Self {
        Self(Ok(file))
    }

    /// The longest piece that may not be left to the engine, as it is now.
    pub fn small_bytes(&self) -> Result<u64, Errno> {
        let mut text = [0; 32];
        let file = self.0.as_ref().map_err(|errno| *errno)?;
        let length = file.read_at(&mut text, 0).map_err(|error| errno_of(&error))?;
        let text = std::str::from_utf8(&text[..length]).map_err(|_| Errno::EINVAL)?;
        let bytes: u64 = text.trim().parse().map_err(|_| Errno::EINVAL)?;
        Ok(bytes.max(DEFAULT_BYTES))
    }

    /// Whether there are pieces that may be left to the engine; if not, why.
    pub fn check(&self) -> Result<(), Unavailable> {
        match self.small_bytes() {
            Ok(bytes) if bytes < PAGE_BYTES => Ok(()),
            Ok(bytes) => Err(Unavailable {
                errno: 0,
                sentence: format!(
                    "the KNEM module's parameter dmamin is {bytes} bytes, and its DMA engine copies only what is \
                     longer, of which a page has nothing; an administrator makes it less than {PAGE_BYTES} in {PATH}"
                ),
            }),
            Err(errno) => Err(Unavailable {
                errno: errno as i32,
                sentence: format!(
                    "the KNEM module's parameter dmamin cannot be read from {PATH} ({errno}), without which nothing \
                     is left to its DMA engine; mount /sys where this process sees it"
                ),
            }),
        }
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO))
}

#[cfg(test)]
#[path = "dma_min_tests.rs"]
mod tests;
