//! `fabric.h`, and the domain of `fi_domain.h`, since each names the other.

use std::ffi::{c_char, c_int, c_void};

use super::atomic::AtomicAttr;
use super::domain::{AvAttr, FidAv, OpsMr};
use super::endpoint::FidEp;
use super::eq::{CntrAttr, CqAttr, EqAttr, FidCntr, FidCq, FidEq, FidPoll, FidWait, PollAttr, WaitAttr};
use super::fid::{Fid, RxAttr, TxAttr};

pub const EP_UNSPEC: c_int = 0;
pub const EP_RDM: c_int = 3;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct EpAttr {
    pub ep_type: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
    pub max_order_raw_size: usize,
    pub max_order_war_size: usize,
    pub max_order_waw_size: usize,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub auth_key_size: usize,
    pub auth_key: *mut u8,
}

pub const PROGRESS_UNSPEC: c_int = 0;
pub const PROGRESS_MANUAL: c_int = 2;
pub const THREAD_UNSPEC: c_int = 0;
pub const THREAD_SAFE: c_int = 1;
pub const THREAD_DOMAIN: c_int = 3;
pub const RM_ENABLED: c_int = 2;
pub const AV_UNSPEC: c_int = 0;
pub const AV_MAP: c_int = 1;
pub const AV_TABLE: c_int = 2;

/// As version 1.17 has it. Later ones add fields at the end, which a caller of
/// that version need not have.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut FidDomain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
    pub cq_cnt: usize,
    pub ep_cnt: usize,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub max_ep_tx_ctx: usize,
    pub max_ep_rx_ctx: usize,
    pub max_ep_stx_ctx: usize,
    pub max_ep_srx_ctx: usize,
    pub cntr_cnt: usize,
    pub mr_iov_limit: usize,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: *mut u8,
    pub auth_key_size: usize,
    pub max_err_data: usize,
    pub mr_cnt: usize,
    pub tclass: u32,
}

/// What a caller of any version up to 2.5 reads of a [`DomainAttr`], and more:
/// so many bytes are given to it, those of later versions zero.
pub const DOMAIN_ATTR_GIVEN_BYTES: usize = 320;
const _: () = assert!(size_of::<DomainAttr>() == 192 && DOMAIN_ATTR_GIVEN_BYTES > 224);

#[derive(Clone, Copy)]
#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut FidFabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Info {
    pub next: *mut Info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut RxAttr,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
    pub nic: *mut c_void,
}

#[repr(C)]
pub struct FidFabric {
    pub fid: Fid,
    pub ops: *const OpsFabric,
    pub api_version: u32,
}

#[repr(C)]
pub struct OpsFabric {
    pub size: usize,
    pub domain: unsafe extern "C" fn(*mut FidFabric, *mut Info, *mut *mut FidDomain, *mut c_void) -> c_int,
    pub passive_ep: unsafe extern "C" fn(*mut FidFabric, *mut Info, *mut *mut c_void, *mut c_void) -> c_int,
    pub eq_open: unsafe extern "C" fn(*mut FidFabric, *mut EqAttr, *mut *mut FidEq, *mut c_void) -> c_int,
    pub wait_open: unsafe extern "C" fn(*mut FidFabric, *mut WaitAttr, *mut *mut FidWait) -> c_int,
    pub trywait: unsafe extern "C" fn(*mut FidFabric, *mut *mut Fid, c_int) -> c_int,
    pub domain2:
        unsafe extern "C" fn(*mut FidFabric, *mut Info, *mut *mut FidDomain, u64, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct FidDomain {
    pub fid: Fid,
    pub ops: *const OpsDomain,
    pub mr: *const OpsMr,
}

#[repr(C)]
pub struct OpsDomain {
    pub size: usize,
    pub av_open: unsafe extern "C" fn(*mut FidDomain, *mut AvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
    pub cq_open: unsafe extern "C" fn(*mut FidDomain, *mut CqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int,
    pub scalable_ep: unsafe extern "C" fn(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int,
    pub cntr_open:
        unsafe extern "C" fn(*mut FidDomain, *mut CntrAttr, *mut *mut FidCntr, *mut c_void) -> c_int,
    pub poll_open: unsafe extern "C" fn(*mut FidDomain, *mut PollAttr, *mut *mut FidPoll) -> c_int,
    pub stx_ctx: unsafe extern "C" fn(*mut FidDomain, *mut TxAttr, *mut *mut c_void, *mut c_void) -> c_int,
    pub srx_ctx: unsafe extern "C" fn(*mut FidDomain, *mut RxAttr, *mut *mut FidEp, *mut c_void) -> c_int,
    pub query_atomic: unsafe extern "C" fn(*mut FidDomain, c_int, c_int, *mut AtomicAttr, u64) -> c_int,
    pub query_collective: unsafe extern "C" fn(*mut FidDomain, c_int, *mut c_void, u64) -> c_int,
    pub endpoint2:
        unsafe extern "C" fn(*mut FidDomain, *mut Info, *mut *mut FidEp, u64, *mut c_void) -> c_int,
}
