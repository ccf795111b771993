//! What the provider offers for what is asked for (fi_getinfo(3)): the whole of
//! `fi_getinfo` but its memory.

use std::ffi::c_int;

use crate::abi::fabric::{self, DomainAttr, EpAttr};
use crate::abi::fid::{RxAttr, TxAttr};
use crate::abi::{flags, provider};
use crate::atomic::MAX_BYTES;
use crate::border::IOV_LIMIT;
use crate::naming::{self, Name};
use crate::state::endpoint::INJECT_MAX_BYTES;

/// What it can do at all, and what an endpoint has of which nothing was said.
pub const CAPABILITIES: u64 = flags::MSG
    | flags::TAGGED
    | flags::RMA
    | flags::ATOMIC
    | flags::READ
    | flags::WRITE
    | flags::REMOTE_READ
    | flags::REMOTE_WRITE
    | flags::SEND
    | flags::RECV
    | flags::MULTI_RECV
    | flags::DIRECTED_RECV
    | flags::SOURCE
    | flags::LOCAL_COMM
    | flags::REMOTE_COMM;
/// What is offered to who asks for nothing in particular. Of atomic operations
/// nothing is said then: Intel MPI, which takes what it is offered, has windows of
/// another kind where there are some, and crashes in its first `MPI_Put`.
const DEFAULT_CAPABILITIES: u64 = CAPABILITIES & !flags::ATOMIC;
/// And what is offered to those who ask for it by name: others are built on it.
pub const WITH_OWNER: u64 = CAPABILITIES | flags::PEER | flags::AV_USER_ID;
/// Those of the sending side, and of the receiving side.
const SEND_CAPABILITIES: u64 =
    flags::MSG | flags::TAGGED | flags::SEND | flags::RMA | flags::ATOMIC | flags::READ | flags::WRITE;
const RECEIVE_CAPABILITIES: u64 = flags::MSG
    | flags::TAGGED
    | flags::RECV
    | flags::MULTI_RECV
    | flags::DIRECTED_RECV
    | flags::SOURCE
    | flags::RMA
    | flags::ATOMIC
    | flags::REMOTE_READ
    | flags::REMOTE_WRITE;
/// Flags that operations may have by default.
const SEND_FLAGS: u64 = flags::COMPLETION
    | flags::INJECT
    | flags::INJECT_COMPLETE
    | flags::TRANSMIT_COMPLETE
    | flags::DELIVERY_COMPLETE
    | flags::MATCH_COMPLETE;
const RECEIVE_FLAGS: u64 = flags::COMPLETION | flags::MULTI_RECV;

/// The name of the one fabric, and of the one domain.
pub const PLACE: &str = "lmt";
/// The name of both where an owner asks: lnx takes a provider for one that reaches
/// this machine only, and prefers it there, if they are called so.
pub const LOCAL_PLACE: &str = "shm";
/// The form of addresses: our own.
pub const ADDRESS_FORMAT: u32 = flags::PROV_SPECIFIC | 0x6c_6d74;
const PROTOCOL: u32 = flags::PROV_SPECIFIC | 0x6c_6d74;
const PROTOCOL_VERSION: u32 = 1;
/// All bits of a tag matter (`FI_TAG_GENERIC`).
const TAG_FORMAT: u64 = 0xaaaa_aaaa_aaaa_aaaa;
/// So many operations of a kind may be in flight without a thought.
pub const QUEUE_SIZE: usize = 1024;
/// Bytes of the number that goes along with a message.
pub const DATA_BYTES: usize = 4;
/// Pieces of a message where an owner has the receives: lnx takes no offer of more.
const OWNER_IOV_LIMIT: usize = 4;
/// More of each kind of object than anybody makes.
const MANY: usize = 256;

/// What a caller asks for. Every pointer in the structures is dead.
#[derive(Clone, Default)]
pub struct Hints {
    /// Capabilities.
    pub caps: u64,
    /// `fi_info::addr_format`.
    pub addr_format: u32,
    /// The address that an endpoint is to have, as bytes.
    pub source: Option<Vec<u8>>,
    /// An address to talk to.
    pub destination: Option<Vec<u8>>,
    /// Of the sending side.
    pub tx: Option<TxAttr>,
    /// Of the receiving side.
    pub rx: Option<RxAttr>,
    /// Of the endpoint.
    pub ep: Option<EpAttr>,
    /// Of the domain.
    pub domain: Option<DomainAttr>,
    /// The domain's name.
    pub domain_name: Option<String>,
    /// The fabric's name.
    pub fabric_name: Option<String>,
    /// The provider's name.
    pub provider_name: Option<String>,
}

/// What is offered. Every pointer in the structures is null.
pub struct Offer {
    /// The fabric's name, and the domain's.
    pub place: &'static str,
    /// Capabilities.
    pub caps: u64,
    /// The address that was asked for.
    pub source: Option<Name>,
    /// The address to talk to.
    pub destination: Option<Name>,
    /// Of the sending side.
    pub tx: TxAttr,
    /// Of the receiving side.
    pub rx: RxAttr,
    /// Of the endpoint.
    pub ep: EpAttr,
    /// Of the domain.
    pub domain: DomainAttr,
}

/// Why nothing is offered, in a sentence.
type Refusal = String;

fn bits(what: &str, asked: u64, offered: u64) -> Result<(), Refusal> {
    match asked & !offered {
        0 => Ok(()),
        beyond => Err(format!("{what} {beyond:#x} are asked for and not offered; there are {offered:#x}")),
    }
}

fn most(what: &str, asked: usize, most: usize) -> Result<(), Refusal> {
    if asked <= most {
        return Ok(());
    }
    Err(format!("{what} {asked} is asked for; it may be at most {most}"))
}

fn name(what: &str, asked: Option<&str>, ours: &str) -> Result<(), Refusal> {
    match asked {
        Some(other) if other != ours => {
            Err(format!("the {what} `{other}` is asked for; this one is `{ours}`"))
        }
        _ => Ok(()),
    }
}

fn address(what: &str, given: Option<&[u8]>) -> Result<Option<Name>, Refusal> {
    let checked = given.map(naming::checked).transpose();
    checked.map_err(|_| format!("the {what} address is none of this provider; give what fi_getname gave"))
}

/// What is offered for these hints.
///
/// # Errors
/// A sentence for the log, where `fi_getinfo` answers `-FI_ENODATA`.
pub fn offer(hints: &Hints) -> Result<Offer, Refusal> {
    bits("capabilities", hints.caps, WITH_OWNER)?;
    let place = if hints.caps & flags::PEER == 0 { PLACE } else { LOCAL_PLACE };
    if ![0, ADDRESS_FORMAT].contains(&hints.addr_format) {
        return Err(format!("addresses of format {} are asked for; ours are their own", hints.addr_format));
    }
    name("fabric", hints.fabric_name.as_deref(), place)?;
    name("domain", hints.domain_name.as_deref(), place)?;
    let caps = if hints.caps == 0 { DEFAULT_CAPABILITIES } else { with_directions(hints.caps) };
    Ok(Offer {
        place,
        caps,
        source: address("source", hints.source.as_deref())?,
        destination: address("destination", hints.destination.as_deref())?,
        tx: tx(hints.tx.as_ref(), caps)?,
        rx: rx(hints.rx.as_ref(), caps)?,
        ep: ep(hints.ep.as_ref(), caps)?,
        domain: domain(hints.domain.as_ref(), hints.caps)?,
    })
}

/// Whether an endpoint can be what it is made with: as `fi_getinfo` gave it, or as the
/// caller has changed it within the offer.
///
/// # Errors
/// A sentence for the log.
pub fn check_endpoint(chosen: &Chosen) -> Result<(), Refusal> {
    let caps = chosen.caps;
    bits("capabilities", caps, WITH_OWNER)?;
    ep(chosen.ep.as_ref(), caps)?;
    tx(chosen.tx.as_ref(), caps)?;
    rx(chosen.rx.as_ref(), caps)?;
    address("source", chosen.source.as_deref())?;
    Ok(())
}

/// The same of a domain, for endpoints of these capabilities.
///
/// # Errors
/// A sentence for the log.
pub fn check_domain(asked: &DomainAttr, caps: u64) -> Result<(), Refusal> {
    // What was said of memory regions held for what was asked for, which is not known any
    // more; whoever registers some gets keys of the provider's.
    let asked = DomainAttr { mr_mode: flags::MR_PROV_KEY, ..*asked };
    domain(Some(&asked), caps)?;
    Ok(())
}

/// Who names neither direction means both; what is no more than where peers may
/// be costs nothing.
fn with_directions(caps: u64) -> u64 {
    let both = |of, directions| if caps & of != 0 && caps & directions == 0 { directions } else { 0 };
    let messages = both(flags::MSG | flags::TAGGED, flags::SEND | flags::RECV);
    let memory = both(
        flags::RMA | flags::ATOMIC,
        flags::READ | flags::WRITE | flags::REMOTE_READ | flags::REMOTE_WRITE,
    );
    caps | messages | memory | flags::LOCAL_COMM | flags::REMOTE_COMM
}

/// In which order operations are done, of a caller that can do so much.
const fn orders(caps: u64) -> u64 {
    flags::ORDER_SAS | if caps & flags::ATOMIC != 0 { flags::ORDER_ATOMIC } else { 0 }
}

fn tx(asked: Option<&TxAttr>, caps: u64) -> Result<TxAttr, Refusal> {
    let mut offered = TxAttr {
        caps: caps & SEND_CAPABILITIES,
        mode: 0,
        op_flags: 0,
        msg_order: orders(caps),
        comp_order: 0,
        inject_size: INJECT_MAX_BYTES,
        size: QUEUE_SIZE,
        iov_limit: IOV_LIMIT,
        rma_iov_limit: 1,
        tclass: 0,
    };
    if let Some(asked) = asked {
        bits("sending capabilities", asked.caps, caps | SEND_CAPABILITIES)?;
        bits("flags of sends", asked.op_flags, SEND_FLAGS)?;
        bits("orders of sends", asked.msg_order, orders(caps))?;
        bits("orders of their completions", asked.comp_order, 0)?;
        most("inject_size", asked.inject_size, INJECT_MAX_BYTES)?;
        most("the size of the sending side", asked.size, MANY * QUEUE_SIZE)?;
        most("iov_limit", asked.iov_limit, IOV_LIMIT)?;
        most("rma_iov_limit", asked.rma_iov_limit, 1)?;
        offered.op_flags = asked.op_flags;
        offered.size = offered.size.max(asked.size);
    }
    Ok(offered)
}

fn rx(asked: Option<&RxAttr>, caps: u64) -> Result<RxAttr, Refusal> {
    let mut offered = RxAttr {
        caps: caps & RECEIVE_CAPABILITIES,
        mode: 0,
        op_flags: 0,
        msg_order: orders(caps),
        comp_order: 0,
        total_buffered_recv: 0,
        size: QUEUE_SIZE,
        iov_limit: if caps & flags::PEER == 0 { IOV_LIMIT } else { OWNER_IOV_LIMIT },
    };
    if let Some(asked) = asked {
        bits("receiving capabilities", asked.caps, caps | RECEIVE_CAPABILITIES)?;
        bits("flags of receives", asked.op_flags, RECEIVE_FLAGS)?;
        bits("orders of receives", asked.msg_order, orders(caps))?;
        bits("orders of their completions", asked.comp_order, 0)?;
        most("the size of the receiving side", asked.size, MANY * QUEUE_SIZE)?;
        most("iov_limit", asked.iov_limit, offered.iov_limit)?;
        offered.op_flags = asked.op_flags;
        offered.size = offered.size.max(asked.size);
    }
    Ok(offered)
}

fn ep(asked: Option<&EpAttr>, caps: u64) -> Result<EpAttr, Refusal> {
    let ordered_bytes = if caps & flags::ATOMIC != 0 { MAX_BYTES } else { 0 };
    let mut offered = EpAttr {
        ep_type: fabric::EP_RDM,
        protocol: PROTOCOL,
        protocol_version: PROTOCOL_VERSION,
        max_msg_size: usize::MAX,
        msg_prefix_size: 0,
        max_order_raw_size: ordered_bytes,
        max_order_war_size: ordered_bytes,
        max_order_waw_size: ordered_bytes,
        mem_tag_format: TAG_FORMAT,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        auth_key_size: 0,
        auth_key: std::ptr::null_mut(),
    };
    if let Some(asked) = asked {
        if ![fabric::EP_UNSPEC, fabric::EP_RDM].contains(&asked.ep_type) {
            return Err(format!(
                "endpoints of type {} are asked for; there are FI_EP_RDM only",
                asked.ep_type
            ));
        }
        if ![0, PROTOCOL].contains(&asked.protocol) {
            return Err(format!("protocol {:#x} is asked for; ours is {PROTOCOL:#x}", asked.protocol));
        }
        most("the number of sending contexts", asked.tx_ctx_cnt, 1)?;
        most("the number of receiving contexts", asked.rx_ctx_cnt, 1)?;
        most("auth_key_size", asked.auth_key_size, 0)?;
        let ordered = asked.max_order_raw_size.max(asked.max_order_war_size).max(asked.max_order_waw_size);
        most("the length up to which atomic operations keep their order", ordered, ordered_bytes)?;
        if asked.mem_tag_format != 0 {
            offered.mem_tag_format = asked.mem_tag_format;
        }
    }
    Ok(offered)
}

fn either(asked: c_int, unspecified: c_int, default: c_int) -> c_int {
    if asked == unspecified { default } else { asked }
}

fn domain(asked: Option<&DomainAttr>, caps: u64) -> Result<DomainAttr, Refusal> {
    let mut offered = DomainAttr {
        domain: std::ptr::null_mut(),
        name: std::ptr::null_mut(),
        threading: fabric::THREAD_SAFE,
        control_progress: fabric::PROGRESS_MANUAL,
        data_progress: fabric::PROGRESS_MANUAL,
        resource_mgmt: fabric::RM_ENABLED,
        av_type: fabric::AV_TABLE,
        mr_mode: flags::MR_PROV_KEY,
        mr_key_size: 8,
        cq_data_size: DATA_BYTES,
        cq_cnt: MANY,
        ep_cnt: MANY,
        tx_ctx_cnt: MANY,
        rx_ctx_cnt: MANY,
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        max_ep_stx_ctx: 0,
        max_ep_srx_ctx: usize::from(caps & flags::PEER != 0),
        cntr_cnt: MANY,
        mr_iov_limit: 1,
        caps: flags::LOCAL_COMM | flags::REMOTE_COMM | caps & (flags::PEER | flags::AV_USER_ID),
        mode: 0,
        auth_key: std::ptr::null_mut(),
        auth_key_size: 0,
        max_err_data: 0,
        mr_cnt: 65_535,
        tclass: 0,
    };
    let Some(asked) = asked else { return Ok(offered) };
    for progress in [asked.control_progress, asked.data_progress] {
        if ![fabric::PROGRESS_UNSPEC, fabric::PROGRESS_MANUAL].contains(&progress) {
            return Err("automatic progress is asked for; there is manual progress only".to_owned());
        }
    }
    most("cq_data_size", asked.cq_data_size, DATA_BYTES)?;
    most("the number of queues", asked.cq_cnt, MANY)?;
    most("the number of endpoints", asked.ep_cnt, MANY)?;
    most("the number of counters", asked.cntr_cnt, MANY)?;
    most("the number of sending contexts of an endpoint", asked.max_ep_tx_ctx, 1)?;
    most("the number of receiving contexts of an endpoint", asked.max_ep_rx_ctx, 1)?;
    most("the number of shared sending contexts", asked.max_ep_stx_ctx, 0)?;
    most("the number of shared receiving contexts", asked.max_ep_srx_ctx, offered.max_ep_srx_ctx)?;
    most("auth_key_size", asked.auth_key_size, 0)?;
    bits("capabilities of the domain", asked.caps, offered.caps)?;
    offered.mr_mode = mr_mode(asked.mr_mode, caps & (flags::RMA | flags::ATOMIC) != 0)?;
    offered.threading = either(asked.threading, fabric::THREAD_UNSPEC, offered.threading);
    offered.av_type = either(asked.av_type, fabric::AV_UNSPEC, offered.av_type);
    Ok(offered)
}

/// How memory is registered, for a caller that can do so much. The two modes from
/// before version 1.5 are other ones, and do no harm where nothing is registered.
fn mr_mode(asked: i32, with_rma: bool) -> Result<i32, Refusal> {
    if [flags::MR_BASIC, flags::MR_SCALABLE].contains(&asked) && !with_rma {
        return Ok(asked);
    }
    if with_rma && asked & flags::MR_PROV_KEY == 0 {
        return Err(format!(
            "memory regions of mr_mode {asked:#x} are asked for; keys are the provider's (FI_MR_PROV_KEY), and the caller must be able to do with that"
        ));
    }
    Ok(asked & flags::MR_PROV_KEY)
}

/// The version of the provider.
pub const VERSION: u32 = provider::version(0, 1);
/// The version of libfabric's interface that is spoken: a core skips providers
/// whose version is below what a caller asks for.
pub const FI_VERSION: u32 = provider::version(2, 6);

/// What an endpoint needs to know of the `fi_info` that it is made with.
#[derive(Clone)]
pub struct Chosen {
    /// Capabilities.
    pub caps: u64,
    /// The address that it is to have.
    pub source: Option<Vec<u8>>,
    /// Of the sending side.
    pub tx: Option<TxAttr>,
    /// Of the receiving side.
    pub rx: Option<RxAttr>,
    /// Of the endpoint.
    pub ep: Option<EpAttr>,
}

#[cfg(test)]
#[path = "offer_tests.rs"]
mod tests;
