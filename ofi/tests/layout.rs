//! The structures and numbers of `lmt_fi::abi` against libfabric's own headers
//! (Debian's libfabric-dev), where they are installed: a C program says what the
//! compiler makes of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use lmt_conformance::require;
use lmt_fi::abi::{
    atomic, domain, endpoint, eq, errno::Errno, fabric, fid, flags, peer, provider, rma, tagged,
};

/// What there is to compare: an expression of C, and our value for it.
struct Expected(BTreeMap<String, u64>);

/// Sizes of structures and places of their fields. A field whose name is a word of
/// Rust is given with its own name first.
macro_rules! structures {
    ($expected:expr; $($c:literal = $rust:ty { $($field:ident $(is $c_field:literal)?),* $(,)? })*) => {$(
        $expected.0.insert(format!("sizeof({})", $c), size_of::<$rust>() as u64);
        $(
            let name = [$($c_field,)? stringify!($field)][0];
            $expected.0.insert(format!("offsetof({}, {name})", $c), std::mem::offset_of!($rust, $field) as u64);
        )*
    )*};
}

macro_rules! numbers {
    ($expected:expr; $($c:literal = $value:expr;)*) => {$(
        $expected.0.insert($c.to_owned(), $value as u64);
    )*};
}

fn structures(expected: &mut Expected) {
    structures! { expected;
        "struct fid" = fid::Fid { fclass, context, ops }
        "struct fi_ops" = fid::Ops { size, close, bind, control, ops_open, tostr, ops_set }
        "struct fi_tx_attr" = fid::TxAttr {
            caps, mode, op_flags, msg_order, comp_order, inject_size, size, iov_limit, rma_iov_limit, tclass,
        }
        "struct fi_rx_attr" = fid::RxAttr {
            caps, mode, op_flags, msg_order, comp_order, total_buffered_recv, size, iov_limit,
        }
        "struct fi_ep_attr" = fabric::EpAttr {
            ep_type is "type", protocol, protocol_version, max_msg_size, msg_prefix_size, max_order_raw_size,
            max_order_war_size, max_order_waw_size, mem_tag_format, tx_ctx_cnt, rx_ctx_cnt, auth_key_size,
            auth_key,
        }
        "struct fi_domain_attr" = fabric::DomainAttr {
            domain, name, threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode,
            mr_key_size, cq_data_size, cq_cnt, ep_cnt, tx_ctx_cnt, rx_ctx_cnt, max_ep_tx_ctx, max_ep_rx_ctx,
            max_ep_stx_ctx, max_ep_srx_ctx, cntr_cnt, mr_iov_limit, caps, mode, auth_key, auth_key_size,
            max_err_data, mr_cnt, tclass,
        }
        "struct fi_fabric_attr" = fabric::FabricAttr { fabric, name, prov_name, prov_version, api_version }
        "struct fi_info" = fabric::Info {
            next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle, tx_attr,
            rx_attr, ep_attr, domain_attr, fabric_attr, nic,
        }
        "struct fid_fabric" = fabric::FidFabric { fid, ops, api_version }
        "struct fi_ops_fabric" = fabric::OpsFabric {
            size, domain, passive_ep, eq_open, wait_open, trywait, domain2,
        }
        "struct fi_provider" = provider::Provider { version, fi_version, context, name, getinfo, fabric, cleanup }
        "struct fi_av_attr" = domain::AvAttr {
            av_type is "type", rx_ctx_bits, count, ep_per_node, name, map_addr, flags,
        }
        "struct fid_av" = domain::FidAv { fid, ops }
        "struct fi_ops_av" = domain::OpsAv {
            size, insert, insertsvc, insertsym, remove, lookup, straddr, av_set,
        }
        "struct fid_mr" = domain::FidMr { fid, mem_desc, key }
        "struct fi_mr_attr" = domain::MrAttr {
            mr_iov, iov_count, access, offset, requested_key, context, auth_key_size, auth_key, iface, device,
        }
        "struct fi_ops_mr" = domain::OpsMr { size, reg, regv, regattr }
        "struct fid_domain" = fabric::FidDomain { fid, ops, mr }
        "struct fi_ops_domain" = fabric::OpsDomain {
            size, av_open, cq_open, endpoint, scalable_ep, cntr_open, poll_open, stx_ctx, srx_ctx,
            query_atomic, query_collective, endpoint2,
        }
        "struct fi_msg" = endpoint::Msg { msg_iov, desc, iov_count, addr, context, data }
        "struct fi_ops_ep" = endpoint::OpsEp {
            size, cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left,
        }
        "struct fi_ops_msg" = endpoint::OpsMsg {
            size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata,
        }
        "struct fid_ep" = endpoint::FidEp { fid, ops, cm, msg, rma, tagged, atomic, collective }
        "struct fi_msg_tagged" = tagged::MsgTagged {
            msg_iov, desc, iov_count, addr, tag, ignore, context, data,
        }
        "struct fi_ops_tagged" = endpoint::OpsTagged {
            size, recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata,
        }
        "struct fi_ops_cm" = endpoint::OpsCm {
            size, setname, getname, getpeer, connect, listen, accept, reject, shutdown, join,
        }
        "struct fi_rma_iov" = rma::RmaIov { addr, len, key }
        "struct fi_msg_rma" = rma::MsgRma {
            msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data,
        }
        "struct fi_ops_rma" = endpoint::OpsRma {
            size, read, readv, readmsg, write, writev, writemsg, inject, writedata, injectdata,
        }
        "struct fi_ops_atomic" = endpoint::OpsAtomic {
            size, write, writev, writemsg, inject, readwrite, readwritev, readwritemsg, compwrite, compwritev,
            compwritemsg, writevalid, readwritevalid, compwritevalid,
        }
        "struct fi_ioc" = atomic::Ioc { addr, count }
        "struct fi_rma_ioc" = atomic::RmaIoc { addr, count, key }
        "struct fi_msg_atomic" = atomic::MsgAtomic {
            msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, datatype, op, context, data,
        }
        "struct fi_atomic_attr" = atomic::AtomicAttr { count, size }
        "struct fi_cq_attr" = eq::CqAttr { size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set }
        "struct fi_cq_tagged_entry" = eq::CqTaggedEntry { op_context, flags, len, buf, data, tag }
        "struct fi_cq_err_entry" = eq::CqErrEntry {
            op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data, err_data_size,
        }
        "struct fid_cq" = eq::FidCq { fid, ops }
        "struct fi_ops_cq" = eq::OpsCq { size, read, readfrom, readerr, sread, sreadfrom, signal, strerror }
        "struct fi_eq_attr" = eq::EqAttr { size, flags, wait_obj, signaling_vector, wait_set }
        "struct fi_eq_entry" = eq::EqEntry { fid, context, data }
        "struct fi_eq_err_entry" = eq::EqErrEntry { fid, context, data, err, prov_errno, err_data, err_data_size }
        "struct fid_eq" = eq::FidEq { fid, ops }
        "struct fi_ops_eq" = eq::OpsEq { size, read, readerr, write, sread, strerror }
        "struct fi_poll_attr" = eq::PollAttr { flags }
        "struct fid_poll" = eq::FidPoll { fid, ops }
        "struct fi_ops_poll" = eq::OpsPoll { size, poll, poll_add, poll_del }
        "struct fi_cntr_attr" = eq::CntrAttr { events, wait_obj, wait_set, flags }
        "struct fid_cntr" = eq::FidCntr { fid, ops }
        "struct fi_ops_cq_owner" = peer::OpsCqOwner { size, write, writeerr }
        "struct fid_peer_cq" = peer::FidPeerCq { fid, owner_ops }
        "struct fi_peer_cq_context" = peer::PeerCqContext { size, cq }
        "struct fi_ops_srx_peer" = peer::OpsSrxPeer { size, start_msg, start_tag, discard_msg, discard_tag }
        "struct fid_peer_srx" = peer::FidPeerSrx { ep_fid, owner_ops, peer_ops }
        "struct fi_peer_srx_context" = peer::PeerSrxContext { size, srx }
        "struct fi_ops_cntr" = eq::OpsCntr { size, read, readerr, add, set, wait, adderr, seterr }
    }
    // The shorter formats of completions are the beginnings of the longest.
    numbers! { expected;
        "sizeof(struct fi_cq_entry)" = 8;
        "sizeof(struct fi_cq_msg_entry)" = 24;
        "sizeof(struct fi_cq_data_entry)" = 40;
    }
}

fn numbers(expected: &mut Expected) {
    numbers! { expected;
        "FI_MSG" = flags::MSG; "FI_RMA" = flags::RMA; "FI_TAGGED" = flags::TAGGED; "FI_ATOMIC" = flags::ATOMIC;
        "FI_READ" = flags::READ; "FI_WRITE" = flags::WRITE; "FI_RECV" = flags::RECV; "FI_SEND" = flags::SEND;
        "FI_TRANSMIT" = flags::TRANSMIT; "FI_REMOTE_READ" = flags::REMOTE_READ;
        "FI_REMOTE_WRITE" = flags::REMOTE_WRITE; "FI_MULTI_RECV" = flags::MULTI_RECV;
        "FI_REMOTE_CQ_DATA" = flags::REMOTE_CQ_DATA; "FI_MORE" = flags::MORE; "FI_PEEK" = flags::PEEK; "FI_MULTICAST" = flags::MULTICAST;
        "FI_TRIGGER" = flags::TRIGGER; "FI_FENCE" = flags::FENCE; "FI_COMPLETION" = flags::COMPLETION;
        "FI_INJECT" = flags::INJECT; "FI_INJECT_COMPLETE" = flags::INJECT_COMPLETE;
        "FI_TRANSMIT_COMPLETE" = flags::TRANSMIT_COMPLETE; "FI_DELIVERY_COMPLETE" = flags::DELIVERY_COMPLETE;
        "FI_AFFINITY" = flags::AFFINITY; "FI_MATCH_COMPLETE" = flags::MATCH_COMPLETE;
        "FI_LOCAL_COMM" = flags::LOCAL_COMM; "FI_REMOTE_COMM" = flags::REMOTE_COMM;
        "FI_SOURCE" = flags::SOURCE; "FI_AV_USER_ID" = flags::AV_USER_ID; "FI_PEER" = flags::PEER; "FI_DISCARD" = flags::DISCARD; "FI_CLAIM" = flags::CLAIM;
        "FI_DIRECTED_RECV" = flags::DIRECTED_RECV; "FI_SELECTIVE_COMPLETION" = flags::SELECTIVE_COMPLETION;
        "FI_PROV_ATTR_ONLY" = flags::PROV_ATTR_ONLY; "FI_ORDER_SAS" = flags::ORDER_SAS;
        "FI_ORDER_ATOMIC_RAR|FI_ORDER_ATOMIC_RAW|FI_ORDER_ATOMIC_WAR|FI_ORDER_ATOMIC_WAW" = flags::ORDER_ATOMIC;
        "FI_FETCH_ATOMIC" = atomic::FETCH_ATOMIC; "FI_COMPARE_ATOMIC" = atomic::COMPARE_ATOMIC;
        "FI_PROV_SPECIFIC" = flags::PROV_SPECIFIC; "FI_MR_BASIC" = flags::MR_BASIC;
        "FI_MR_SCALABLE" = flags::MR_SCALABLE; "FI_MR_PROV_KEY" = flags::MR_PROV_KEY;
        "FI_CLASS_FABRIC" = fid::CLASS_FABRIC; "FI_CLASS_DOMAIN" = fid::CLASS_DOMAIN;
        "FI_CLASS_EP" = fid::CLASS_EP; "FI_CLASS_AV" = fid::CLASS_AV; "FI_CLASS_MR" = fid::CLASS_MR;
        "FI_CLASS_CQ" = fid::CLASS_CQ; "FI_CLASS_CNTR" = fid::CLASS_CNTR; "FI_CLASS_SRX_CTX" = fid::CLASS_SRX_CTX;
        "FI_GETOPSFLAG" = fid::CONTROL_GETOPSFLAG; "FI_SETOPSFLAG" = fid::CONTROL_SETOPSFLAG;
        "FI_ENABLE" = fid::CONTROL_ENABLE; "FI_GETWAITOBJ" = fid::CONTROL_GETWAITOBJ;
        "FI_EP_UNSPEC" = fabric::EP_UNSPEC; "FI_EP_RDM" = fabric::EP_RDM;
        "FI_PROGRESS_UNSPEC" = fabric::PROGRESS_UNSPEC; "FI_PROGRESS_MANUAL" = fabric::PROGRESS_MANUAL;
        "FI_THREAD_UNSPEC" = fabric::THREAD_UNSPEC; "FI_THREAD_SAFE" = fabric::THREAD_SAFE;
        "FI_THREAD_DOMAIN" = fabric::THREAD_DOMAIN; "FI_RM_ENABLED" = fabric::RM_ENABLED;
        "FI_AV_UNSPEC" = fabric::AV_UNSPEC; "FI_AV_MAP" = fabric::AV_MAP; "FI_AV_TABLE" = fabric::AV_TABLE;
        "FI_WAIT_NONE" = eq::WAIT_NONE; "FI_WAIT_UNSPEC" = eq::WAIT_UNSPEC; "FI_WAIT_YIELD" = eq::WAIT_YIELD;
        "FI_WAIT_SET" = eq::WAIT_SET; "FI_WAIT_FD" = eq::WAIT_FD; "FI_NOTIFY" = eq::NOTIFY;
        "FI_MR_COMPLETE" = eq::MR_COMPLETE; "FI_AV_COMPLETE" = eq::AV_COMPLETE;
        "FI_CNTR_EVENTS_COMP" = eq::CNTR_EVENTS_COMP; "FI_EVENT" = flags::EVENT;
        "FI_SYMMETRIC" = flags::SYMMETRIC; "FI_SYNC_ERR" = flags::SYNC_ERR; "FI_REG_MR" = flags::REG_MR;
        "FI_CLASS_EQ" = fid::CLASS_EQ; "FI_CLASS_POLL" = fid::CLASS_POLL;
        "FI_ALIAS" = fid::CONTROL_ALIAS; "FI_GETWAIT" = fid::CONTROL_GETWAIT;
        "FI_ENOEQ" = Errno::NOEQ.0;
        "FI_CQ_FORMAT_UNSPEC" = eq::CQ_FORMAT_UNSPEC; "FI_CQ_FORMAT_CONTEXT" = eq::CQ_FORMAT_CONTEXT;
        "FI_CQ_FORMAT_MSG" = eq::CQ_FORMAT_MSG; "FI_CQ_FORMAT_DATA" = eq::CQ_FORMAT_DATA;
        "FI_CQ_FORMAT_TAGGED" = eq::CQ_FORMAT_TAGGED;
        "FI_OPT_ENDPOINT" = endpoint::OPT_LEVEL_ENDPOINT;
        "FI_OPT_MIN_MULTI_RECV" = endpoint::OPT_MIN_MULTI_RECV;
        "FI_OPT_CM_DATA_SIZE" = endpoint::OPT_CM_DATA_SIZE;
        "FI_EOTHER" = Errno::OTHER.0; "FI_ETOOSMALL" = Errno::TOOSMALL.0; "FI_EOPBADSTATE" = Errno::OPBADSTATE.0;
        "FI_EAVAIL" = Errno::AVAIL.0; "FI_EBADFLAGS" = Errno::BADFLAGS.0; "FI_EDOMAIN" = Errno::DOMAIN.0;
        "FI_ENOCQ" = Errno::NOCQ.0; "FI_ETRUNC" = Errno::TRUNC.0; "FI_ENOKEY" = Errno::NOKEY.0;
        "FI_ENOAV" = Errno::NOAV.0; "FI_ECANCELED" = Errno::CANCELED.0; "FI_ENOMSG" = Errno::NOMSG.0;
        "FI_VERSION(2, 6)" = provider::version(2, 6);
    }
}

/// A program that prints a line for each expression: its value and itself.
fn program(expected: &Expected) -> String {
    let headers =
        ["fabric.h", "fi_atomic.h", "fi_cm.h", "fi_domain.h", "fi_endpoint.h", "fi_eq.h", "fi_errno.h"];
    let more = ["fi_ext.h", "fi_rma.h", "fi_tagged.h", "providers/fi_prov.h"];
    let mut text = String::from("#include <errno.h>\n#include <stddef.h>\n#include <stdio.h>\n");
    for header in headers.iter().chain(&more) {
        writeln!(text, "#include <rdma/{header}>").expect("memory");
    }
    text += "int main(void)\n{\n";
    for expression in expected.0.keys() {
        writeln!(text, "\tprintf(\"%llu %s\\n\", (unsigned long long)({expression}), \"{expression}\");")
            .expect("memory");
    }
    text + "\treturn 0;\n}\n"
}

/// Compiles and runs it; why that cannot be done here otherwise.
fn values(source: &str) -> Result<BTreeMap<String, u64>, String> {
    let folder = std::env::temp_dir().join(format!("lmt-fi-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let binary = folder.join("layout");
    let printed = compile_and_run(source, &binary);
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    let printed = printed?;
    let lines = printed.lines().filter_map(|line| line.split_once(' '));
    Ok(lines.map(|(value, name)| (name.to_owned(), value.parse().expect("a number"))).collect())
}

fn compile_and_run(source: &str, binary: &std::path::Path) -> Result<String, String> {
    let compiler = Command::new("cc")
        .args(["-x", "c", "-", "-o"])
        .arg(binary)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut compiler = compiler.map_err(|error| format!("there is no C compiler: {error}"))?;
    let written = compiler.stdin.take().expect("a pipe").write_all(source.as_bytes());
    let compiled = compiler.wait_with_output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
    if !compiled.status.success() {
        let missing = said.contains("rdma/fabric.h: No such file");
        assert!(missing, "the program is to compile where the headers are: {said}");
        return Err("libfabric's headers are not installed (libfabric-dev)".to_owned());
    }
    written.map_err(|error| error.to_string())?;
    let printed = Command::new(binary).output().map_err(|error| error.to_string())?;
    assert!(printed.status.success());
    Ok(String::from_utf8(printed.stdout).expect("text"))
}

#[test]
fn everything_is_as_in_the_headers() {
    let mut expected = Expected(BTreeMap::new());
    structures(&mut expected);
    numbers(&mut expected);
    match values(&program(&expected)) {
        Ok(mut real) => {
            // Later headers have more at the end of some structures.
            real.retain(|name, value| !(name.starts_with("sizeof") && expected.0[name] < *value));
            expected.0.retain(|name, _| real.contains_key(name));
            assert!(expected.0.len() > 300, "{} values were compared", expected.0.len());
            assert_eq!(real, expected.0);
        }
        Err(why) => require::skipped("libfabric-dev", &why),
    }
}
