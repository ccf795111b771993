//! A client of the driver that asks for what no sensible client would.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lmt_knem::ioctl::{DEVICE_PATH, Device, STATUS_SLOTS, StatusArray, abi};
use nix::errno::Errno;

use crate::sys::{self, Piece, Pieces};
use crate::verdict::{Stop, equal, fails, needed, skip};

/// Variable with the milliseconds that an asynchronous copy may take.
pub const ENV_WAIT_MS: &str = "KNEM_CHECK_WAIT_MS";

/// What current_status holds before a request: no status.
const UNSET: u32 = 0xeeee_eeee;

pub const PENDING: u32 = abi::STATUS_PENDING as u32;
pub const SUCCESS: u32 = abi::STATUS_SUCCESS as u32;
pub const FAILED: u32 = abi::STATUS_FAILED as u32;

/// A place in a region.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub cookie: u64,
    pub offset: u64,
}

/// The beginning of a region.
pub fn start_of(cookie: u64) -> Place {
    Place { cookie, offset: 0 }
}

/// What a copy is asked for besides its places.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Bounded requests only.
    pub length_bytes: Option<u64>,
    pub flags: u32,
    pub index: u32,
}

pub const PLAIN: How = How { length_bytes: None, flags: 0, index: 0 };

pub fn flagged(flags: u32) -> How {
    How { flags, ..PLAIN }
}

pub fn bounded(length_bytes: u64) -> How {
    How { length_bytes: Some(length_bytes), ..PLAIN }
}

/// The flags that make a copy asynchronous.
pub const ASYNCHRONOUS: u32 = abi::FLAG_ASYNCDMACOMPLETE | abi::FLAG_DMATHREAD | abi::FLAG_MEMCPYTHREAD;

/// The slot of copies that a check has not asked to be asynchronous. No check
/// asks for it.
const FORCED_SLOT: u32 = STATUS_SLOTS - 2;

/// An opened device.
#[derive(Debug)]
pub struct Client {
    /// Mapped first where the driver has every copy be asynchronous: those of
    /// which a check expects an end are waited for.
    forced: Option<Rc<StatusArray>>,
    pub device: Device,
}

impl Client {
    /// A client of a driver that makes its copies.
    pub fn open() -> Result<Self, Stop> {
        let client = Self::bare()?;
        if client.always_uses_dma()? && !client.has_engine()? {
            return skip("this driver is loaded so that a DMA engine makes every copy, and has none");
        }
        let forced = if client.is_always_asynchronous()? { Some(Rc::new(client.mapped()?)) } else { None };
        Ok(Self { forced, ..client })
    }

    /// A client that has nothing mapped and waits for nothing.
    pub fn bare() -> Result<Self, Stop> {
        let device = needed("open of /dev/knem", Device::open(Path::new(DEVICE_PATH)))?;
        Ok(Self { forced: None, device })
    }

    pub fn open_read_only() -> Result<Self, Errno> {
        let file = File::open(DEVICE_PATH);
        let file = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(Self { forced: None, device: Device::from_fd(file.into()) })
    }

    pub fn has_engine(&self) -> Result<bool, Stop> {
        Ok(needed("GET_INFO", self.device.info())?.features & abi::FEATURE_DMA != 0)
    }

    /// Whether this driver is loaded so that it ignores all of `flags`.
    pub fn ignores(&self, flags: u32) -> Result<bool, Stop> {
        Ok(needed("GET_INFO", self.device.info())?.ignored_flags & flags == flags)
    }

    /// Whether this driver is loaded so that every copy has flags, by which its
    /// local memory is pinned first.
    pub fn always_pins(&self) -> Result<bool, Stop> {
        let pinning = abi::FLAG_DMA | abi::FLAG_PINLOCAL | ASYNCHRONOUS;
        Ok(needed("GET_INFO", self.device.info())?.forced_flags & pinning != 0)
    }

    /// Whether this driver is loaded so that a DMA engine makes every copy.
    pub fn always_uses_dma(&self) -> Result<bool, Stop> {
        let dma = abi::FLAG_DMA | abi::FLAG_DMATHREAD;
        Ok(needed("GET_INFO", self.device.info())?.forced_flags & dma != 0)
    }

    /// Whether this driver is loaded so that every copy is asynchronous.
    pub fn is_always_asynchronous(&self) -> Result<bool, Stop> {
        Ok(needed("GET_INFO", self.device.info())?.forced_flags & ASYNCHRONOUS != 0)
    }

    pub fn create_at(&self, array: u64, count: u32, flags: u32, protection: u32) -> Result<u64, Errno> {
        let mut create = abi::CreateRegion {
            iovec_array: array,
            iovec_nr: count,
            flags,
            protection,
            ..abi::CreateRegion::default()
        };
        sys::request(&self.device, abi::CREATE_REGION, &mut create)?;
        Ok(create.cookie)
    }

    pub fn create(&self, pieces: &[Piece], flags: u32, protection: u32) -> Result<u64, Errno> {
        let mut list = Pieces::of(pieces);
        let address = list.address();
        let cookie = self.create_at(address, list.count(), flags, protection)?;
        sys::pinned(pieces);
        Ok(cookie)
    }

    /// A region that a check needs and that is made of good memory.
    pub fn region(&self, pieces: &[Piece], protection: u32) -> Result<u64, Stop> {
        needed("CREATE_REGION", self.create(pieces, 0, protection))
    }

    /// The same, for one use.
    pub fn region_once(&self, pieces: &[Piece], protection: u32) -> Result<u64, Stop> {
        needed("CREATE_REGION with SINGLEUSE", self.create(pieces, abi::FLAG_SINGLEUSE, protection))
    }

    pub fn destroy(&self, cookie: u64) -> Result<(), Errno> {
        self.device.destroy(cookie)
    }

    /// Makes a request, with a slot of its own and until its end if it is made
    /// asynchronous and was not asked to be.
    fn to_its_end(&self, how: How, request: impl FnOnce(How) -> Result<u32, Errno>) -> Result<u32, Errno> {
        match &self.forced {
            Some(slots) if how.flags & ASYNCHRONOUS == 0 => {
                slots.clear(FORCED_SLOT);
                let current = request(How { index: FORCED_SLOT, ..how })?;
                // PENDING if it does not end.
                Ok(if current == PENDING { written(slots, FORCED_SLOT) } else { current })
            }
            _ => request(how),
        }
    }

    fn inline(&self, pieces: &[Piece], write: u32, remote: Place, how: How) -> Result<u32, Errno> {
        let mut pieces = Pieces::of(pieces);
        let (local_iovec_array, local_iovec_nr) = (pieces.address(), pieces.count());
        let (remote_cookie, remote_offset) = (remote.cookie, remote.offset);
        let How { flags, index: async_status_index, .. } = how;
        if let Some(length) = how.length_bytes {
            let mut copy = abi::InlineCopyBounded {
                local_iovec_array,
                local_iovec_nr,
                write,
                remote_cookie,
                remote_offset,
                length,
                flags,
                current_status: UNSET,
                async_status_index,
                pad: 0,
            };
            sys::request(&self.device, abi::INLINE_COPY_BOUNDED, &mut copy)?;
            return Ok(copy.current_status);
        }
        let mut copy = abi::InlineCopy {
            local_iovec_array,
            local_iovec_nr,
            write,
            remote_cookie,
            remote_offset,
            flags,
            current_status: UNSET,
            async_status_index,
            pad: 0,
        };
        sys::request(&self.device, abi::INLINE_COPY, &mut copy)?;
        Ok(copy.current_status)
    }

    /// Copies out of a region; returns the current status.
    pub fn read(&self, into: &[Piece], remote: Place, how: How) -> Result<u32, Errno> {
        self.to_its_end(how, |how| self.inline(into, 0, remote, how))
    }

    /// Copies into a region.
    pub fn write(&self, from: &[Piece], remote: Place, how: How) -> Result<u32, Errno> {
        self.to_its_end(how, |how| self.inline(from, 1, remote, how))
    }

    /// Copies between two regions.
    pub fn copy(&self, from: Place, to: Place, how: How) -> Result<u32, Errno> {
        self.to_its_end(how, |how| self.between(from, to, how))
    }

    fn between(&self, from: Place, to: Place, how: How) -> Result<u32, Errno> {
        let How { flags, index: async_status_index, .. } = how;
        let (src_cookie, src_offset) = (from.cookie, from.offset);
        let (dst_cookie, dst_offset) = (to.cookie, to.offset);
        if let Some(length) = how.length_bytes {
            let mut copy = abi::CopyBounded {
                src_cookie,
                src_offset,
                dst_cookie,
                dst_offset,
                length,
                flags,
                current_status: UNSET,
                async_status_index,
                pad: 0,
            };
            self.device.copy(&mut copy)?;
            return Ok(copy.current_status);
        }
        let mut copy = abi::Copy {
            src_cookie,
            src_offset,
            dst_cookie,
            dst_offset,
            flags,
            current_status: UNSET,
            async_status_index,
            pad: 0,
        };
        sys::request(&self.device, abi::COPY, &mut copy)?;
        Ok(copy.current_status)
    }

    fn mapped(&self) -> Result<StatusArray, Stop> {
        needed("mmap of the status array", StatusArray::map(&self.device))
    }

    /// The status array, of which a descriptor has one.
    pub fn map_status(&self) -> Result<Rc<StatusArray>, Stop> {
        match &self.forced {
            Some(slots) => Ok(Rc::clone(slots)),
            None => self.mapped().map(Rc::new),
        }
    }
}

/// How long an asynchronous copy may take.
pub fn backoff() -> Duration {
    let variable = std::env::var(ENV_WAIT_MS).ok();
    Duration::from_millis(variable.and_then(|text| text.parse().ok()).unwrap_or(10_000))
}

/// Waits for a slot to be written; returns its status, [`PENDING`] if it is not.
fn written(slots: &StatusArray, index: u32) -> u32 {
    let deadline = Instant::now() + backoff();
    loop {
        let status = u32::from(slots.load(index));
        if status != PENDING || Instant::now() > deadline {
            return status;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Waits for the end of a copy whose request gave `current`, as a client must:
/// by that if it is an end, else by its slot. Returns the final status.
pub fn end_of(what: &str, slots: &StatusArray, index: u32, current: u32) -> Result<u32, Stop> {
    match current {
        SUCCESS | FAILED => return Ok(current),
        PENDING => {}
        other => return fails(format!("{what}: expected a current_status of 0, 1 or 2, found {other:#x}")),
    }
    match written(slots, index) {
        PENDING => {
            let limit = backoff().as_millis();
            fails(format!("{what}: expected slot {index} to be written, found 0 after {limit} ms"))
        }
        status => Ok(status),
    }
}

/// The same, of a copy that must end well.
pub fn ends_well(
    what: &str,
    slots: &StatusArray,
    index: u32,
    current: Result<u32, Errno>,
) -> Result<(), Stop> {
    let current = needed(what, current)?;
    equal(&format!("{what}, final status"), end_of(what, slots, index, current)?, SUCCESS)
}

/// Bytes that depend on their position and on `seed`; none is 0.
pub fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at * 7 + at / 251 + seed * 131) % 255 + 1) as u8).collect()
}
