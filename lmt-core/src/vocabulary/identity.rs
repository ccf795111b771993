//! Who an endpoint is, and the opaque address under which it is reached.

use std::fmt;
use std::path::{Path, PathBuf};

/// A 128-bit name of one endpoint, unique while it lives.
///
/// The id is the identity; a rank or an address-vector index is a binding that
/// the embedder adds later. Ids are totally ordered: two endpoints that connect
/// to each other at the same moment keep the connection begun by the smaller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId([u8; 16]);

impl EndpointId {
    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the id.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The id of the `rank`th member of the group whose own id is `self`.
    ///
    /// A launcher draws one random group id; every member can then compute the
    /// address of every other without exchanging anything. Wraps at 2^128.
    pub const fn member(self, rank: u32) -> Self {
        let base = u128::from_be_bytes(self.0);
        Self(base.wrapping_add(rank as u128).to_be_bytes())
    }
}

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointId({self})")
    }
}

impl std::str::FromStr for EndpointId {
    type Err = AddressError;

    /// Reads the 32 hexadecimal digits that `Display` writes.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(value) if digits => Ok(Self(value.to_be_bytes())),
            _ => Err(AddressError::NotAnId(text.to_owned())),
        }
    }
}

/// The small number under which one endpoint knows one of its peers.
///
/// Each endpoint numbers its peers as it meets them; the number means nothing
/// to anybody else and never travels.
pub type PeerKey = u32;

/// Where an endpoint listens: a short opaque byte string that the embedder
/// passes around as it likes (PMI, an address vector, a launcher).
///
/// Layout: the 4 bytes `LMT1`, the 16 bytes of the id, and the folder of the
/// socket when it does not live in the abstract namespace. At most
/// [`Address::MAX_BYTES`] bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    id: EndpointId,
    folder: Option<PathBuf>,
}

/// Why a byte string is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The string does not begin as an address does.
    #[error("these {0} bytes are not an lmt address; pass on what Endpoint::address() gave, unchanged")]
    NotAnAddress(usize),
    /// The folder is too long for a Unix socket's name, or not UTF-8.
    #[error("the socket folder takes {bytes} bytes of at most {max}; choose a shorter path")]
    FolderTooLong {
        /// Bytes of the folder's path.
        bytes: usize,
        /// The most that fit.
        max: usize,
    },
    /// Not 32 hexadecimal digits.
    #[error("`{0}` is not an endpoint id; an id has 32 hexadecimal digits")]
    NotAnId(String),
}

const MAGIC: &[u8; 4] = b"LMT1";

impl Address {
    /// The longest folder: `sun_path` has 108 bytes, of which the socket's own
    /// name `/lmt-` and 32 digits and the final zero take 38 (unix(7)).
    pub const MAX_FOLDER_BYTES: usize = 70;
    /// The longest address in bytes.
    pub const MAX_BYTES: usize = 20 + Self::MAX_FOLDER_BYTES;

    /// The address of `id` in the abstract socket namespace.
    pub const fn abstract_socket(id: EndpointId) -> Self {
        Self { id, folder: None }
    }

    /// The address of `id` whose socket lives in `folder`.
    ///
    /// # Errors
    /// [`AddressError::FolderTooLong`] past [`Self::MAX_FOLDER_BYTES`].
    pub fn in_folder(id: EndpointId, folder: &Path) -> Result<Self, AddressError> {
        use std::os::unix::ffi::OsStrExt;
        let bytes = folder.as_os_str().as_bytes().len();
        if bytes == 0 || bytes > Self::MAX_FOLDER_BYTES {
            return Err(AddressError::FolderTooLong { bytes, max: Self::MAX_FOLDER_BYTES });
        }
        Ok(Self { id, folder: Some(folder.to_owned()) })
    }

    /// Who is reached at this address.
    pub const fn id(&self) -> EndpointId {
        self.id
    }

    /// The folder of the socket, or `None` in the abstract namespace.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The byte string to pass to other processes.
    pub fn to_bytes(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.id.to_bytes());
        if let Some(folder) = &self.folder {
            bytes.extend_from_slice(folder.as_os_str().as_bytes());
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`AddressError`] when the bytes are not an address.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        use std::os::unix::ffi::OsStrExt;
        let not = AddressError::NotAnAddress(bytes.len());
        let rest = bytes.strip_prefix(MAGIC).ok_or(not.clone())?;
        let (id, folder) = rest.split_first_chunk::<16>().ok_or(not)?;
        let id = EndpointId::from_bytes(*id);
        if folder.is_empty() {
            return Ok(Self::abstract_socket(id));
        }
        Self::in_folder(id, Path::new(std::ffi::OsStr::from_bytes(folder)))
    }
}

/// A mechanism's name as it travels: the 32-bit FNV-1a hash of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct MechanismTag(pub u32);

impl MechanismTag {
    /// The tag of the mechanism with this name.
    ///
    /// ```
    /// use lmt_core::rendezvous::MechanismTag;
    /// assert_eq!(MechanismTag::of("a"), MechanismTag(0xe40c292c));
    /// ```
    pub const fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = 0x811c_9dc5_u32;
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        Self(hash)
    }
}
