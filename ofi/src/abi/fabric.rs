//! `fabric.h`.

use std::ffi::{c_char, c_int, c_void};

use super::domain::FidDomain;
use super::eq::{EqAttr, FidEq, FidWait, WaitAttr};

/// What every object begins with.
#[repr(C)]
pub struct Fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: *const Ops,
}

pub const CLASS_FABRIC: usize = 1;
pub const CLASS_DOMAIN: usize = 2;
pub const CLASS_EP: usize = 3;
pub const CLASS_AV: usize = 11;
pub const CLASS_MR: usize = 12;
pub const CLASS_EQ: usize = 13;
pub const CLASS_CQ: usize = 14;
pub const CLASS_CNTR: usize = 15;
pub const CLASS_POLL: usize = 17;

/// `fi_control`'s commands.
pub const CONTROL_GETOPSFLAG: c_int = 2;
pub const CONTROL_SETOPSFLAG: c_int = 3;
pub const CONTROL_ALIAS: c_int = 4;
pub const CONTROL_GETWAIT: c_int = 5;
pub const CONTROL_ENABLE: c_int = 6;
pub const CONTROL_GETWAITOBJ: c_int = 16;

#[repr(C)]
pub struct Ops {
    pub size: usize,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    pub ops_open: unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int,
    pub tostr: unsafe extern "C" fn(*const Fid, *mut c_char, usize) -> c_int,
    pub ops_set: unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
    pub rma_iov_limit: usize,
    pub tclass: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
    pub iov_limit: usize,
}

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
