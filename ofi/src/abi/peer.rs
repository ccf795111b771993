//! `providers/fi_peer.h` (`fi_ext.h` of version 1.17): what an owner, such as
//! libfabric's provider lnx, shares with a provider that it is built on.
//!
//! Of one version only, the man page says: [`PeerRxEntry`], [`PeerMatchAttr`] and
//! [`OpsSrxOwner`] are as versions from [`FIRST_VERSION`] on have them, everything
//! else is so in 1.17 already.

use std::ffi::{c_int, c_void};

use super::FiAddr;
use super::endpoint::FidEp;
use super::eq::CqErrEntry;
use super::fid::Fid;
use super::provider::version;

/// The first version of libfabric whose receive entries have this form.
pub const FIRST_VERSION: u32 = version(2, 3);

#[repr(C)]
pub struct OpsCqOwner {
    pub size: usize,
    pub write:
        unsafe extern "C" fn(*mut FidPeerCq, *mut c_void, u64, usize, *mut c_void, u64, u64, FiAddr) -> isize,
    pub writeerr: unsafe extern "C" fn(*mut FidPeerCq, *const CqErrEntry) -> isize,
}

#[repr(C)]
pub struct FidPeerCq {
    pub fid: Fid,
    pub owner_ops: *const OpsCqOwner,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct PeerCqContext {
    pub size: usize,
    pub cq: *mut FidPeerCq,
}

/// A failed operation's completion with the source behind it, as versions from
/// 1.20 on have it.
#[repr(C)]
pub struct CqErrEntryWithSource {
    pub entry: CqErrEntry,
    pub src_addr: FiAddr,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct PeerRxEntry {
    pub srx: *mut FidPeerSrx,
    pub addr: FiAddr,
    pub msg_size: usize,
    pub tag: u64,
    pub cq_data: u64,
    pub flags: u64,
    pub context: *mut c_void,
    pub count: usize,
    pub desc: *mut *mut c_void,
    pub peer_context: *mut c_void,
    pub owner_context: *mut c_void,
    pub iov: *mut libc::iovec,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct PeerMatchAttr {
    pub addr: FiAddr,
    pub msg_size: usize,
    pub tag: u64,
}

pub type GetEntry = unsafe extern "C" fn(*mut FidPeerSrx, *mut PeerMatchAttr, *mut *mut PeerRxEntry) -> c_int;
pub type WithEntry = unsafe extern "C" fn(*mut PeerRxEntry) -> c_int;
pub type GetAddr = unsafe extern "C" fn(*mut PeerRxEntry) -> FiAddr;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct OpsSrxOwner {
    pub size: usize,
    pub get_msg: Option<GetEntry>,
    pub get_tag: Option<GetEntry>,
    pub queue_msg: Option<WithEntry>,
    pub queue_tag: Option<WithEntry>,
    pub foreach_unspec_addr: Option<unsafe extern "C" fn(*mut FidPeerSrx, GetAddr)>,
    pub free_entry: Option<unsafe extern "C" fn(*mut PeerRxEntry)>,
}

#[repr(C)]
pub struct OpsSrxPeer {
    pub size: usize,
    pub start_msg: WithEntry,
    pub start_tag: WithEntry,
    pub discard_msg: WithEntry,
    pub discard_tag: WithEntry,
}

#[repr(C)]
pub struct FidPeerSrx {
    pub ep_fid: FidEp,
    pub owner_ops: *const OpsSrxOwner,
    pub peer_ops: *const OpsSrxPeer,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct PeerSrxContext {
    pub size: usize,
    pub srx: *mut FidPeerSrx,
}

// As a compiler of C lays out the header of 2.5.1, of which no copy is at hand
// where this is built.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<PeerRxEntry>() == 96);
    assert!(offset_of!(PeerRxEntry, peer_context) == 72 && offset_of!(PeerRxEntry, iov) == 88);
    assert!(size_of::<PeerMatchAttr>() == 24 && size_of::<OpsSrxOwner>() == 56);
    assert!(offset_of!(OpsSrxOwner, foreach_unspec_addr) == 40);
    assert!(size_of::<CqErrEntryWithSource>() == 88);
};
