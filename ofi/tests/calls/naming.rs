//! Addresses that are named or given before there is an endpoint (fi_getinfo(3)).
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::{CStr, c_int};
use std::ptr;

use lmt_fi::abi::endpoint::FidEp;
use lmt_fi::abi::fabric::{FabricAttr, Info};
use lmt_fi::abi::{Errno, flags};

use crate::harness::{
    Side, VERSION, close, context, free, getinfo, name_of, open_domain, open_ep, open_side, until_taken,
};

/// `fi_getinfo` with a node and a service.
fn named(node: Option<&CStr>, service: Option<&CStr>, with: u64) -> Result<*mut Info, c_int> {
    let mut fabric = FabricAttr {
        fabric: ptr::null_mut(),
        name: ptr::null_mut(),
        prov_name: c"lmt".as_ptr().cast_mut(),
        prov_version: 0,
        api_version: 0,
    };
    // SAFETY: null pointers and zeros are valid for all its fields.
    let mut hints: Info = unsafe { std::mem::zeroed() };
    hints.fabric_attr = &raw mut fabric;
    let text = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let mut info = ptr::null_mut();
    let ask = lmt_fi::fi_prov_ini();
    // SAFETY: the provider, strings, hints and room for a pointer, all alive for the call.
    let got = unsafe {
        ((*ask).getinfo)(VERSION, text(node), text(service), with, &raw const hints, &raw mut info)
    };
    if got == 0 { Ok(info) } else { Err(got) }
}

/// The source and the destination of an offer.
fn addresses(info: *mut Info) -> [Vec<u8>; 2] {
    // SAFETY: what `getinfo` gave.
    let info = unsafe { &*info };
    [(info.src_addr, info.src_addrlen), (info.dest_addr, info.dest_addrlen)].map(|(address, bytes)| {
        assert_eq!(address.is_null(), bytes == 0);
        let address = if bytes == 0 { ptr::dangling() } else { address.cast::<u8>().cast_const() };
        // SAFETY: so many bytes, or none.
        unsafe { std::slice::from_raw_parts(address, bytes) }.to_vec()
    })
}

/// `fi_endpoint`, which is refused.
fn refused_ep(info: *mut Info) -> c_int {
    let (fabric, domain) = open_domain(info);
    let mut ep: *mut FidEp = ptr::null_mut();
    // SAFETY: a domain, what `getinfo` gave and room for a pointer.
    let refused = unsafe { ((*(*domain).ops).endpoint)(domain, info, &raw mut ep, ptr::null_mut()) };
    assert_eq!((close(domain), close(fabric)), (0, 0));
    refused
}

#[test]
fn a_server_has_the_address_that_its_clients_find_by_its_name() {
    let service = std::ffi::CString::new(format!("test-{}", std::process::id())).expect("no zero in it");
    let server = named(None, Some(&service), flags::SOURCE).expect("an offer");
    let client = named(Some(c"localhost"), Some(&service), 0).expect("an offer");
    let ([address, none], [own, found]) = (addresses(server), addresses(client));
    assert_eq!((address.len(), none.len(), own.len()), (64, 0, 0));
    assert_eq!(address, found);
    let (fabric, domain) = open_domain(server);
    let mut one = open_side(domain, server, 0);
    assert_eq!(one.name(), address);
    let other = open_ep(domain, server);
    assert_ne!(name_of(other), address, "the domain's others follow");
    assert_eq!(refused_ep(server), Errno::ADDRINUSE.returned_int());
    let (client_fabric, client_domain) = open_domain(client);
    let mut two = open_side(client_domain, client, 0);
    two.peer = two.insert(&found);
    one.peer = one.insert(&two.name());
    says(&two, &one);
    one.close();
    two.close();
    assert_eq!((close(other), close(domain), close(fabric)), (0, 0, 0));
    assert_eq!((close(client_domain), close(client_fabric)), (0, 0));
    free(server);
    free(client);
}

fn says(from: &Side, to: &Side) {
    let mut into = [0; 5];
    assert_eq!(to.trecv(&mut into, to.peer, 1, 0, 1), 0);
    assert_eq!(until_taken(to, || from.tinject(to, b"hello", 1)), 0);
    assert_eq!((to.wait(from).0.op_context, &into), (context(1), b"hello"));
}

#[test]
fn addresses_in_hints_are_offered_as_they_are() {
    let first = named(Some(c"somebody"), None, flags::SOURCE).expect("an offer");
    let [mut address, _] = addresses(first);
    free(first);
    let bytes = address.len();
    let both = getinfo(|info| {
        (info.src_addr, info.src_addrlen) = (address.as_mut_ptr().cast(), bytes);
        (info.dest_addr, info.dest_addrlen) = (address.as_mut_ptr().cast(), bytes);
    });
    let both = both.expect("an offer");
    assert_eq!(addresses(both), [address.clone(), address.clone()]);
    free(both);
    let none = getinfo(|_| {}).expect("an offer");
    assert_eq!(addresses(none), [const { Vec::<u8>::new() }; 2]);
    free(none);
}

#[test]
fn what_is_no_address_and_a_source_without_a_name_are_refused() {
    let no_data = Err(Errno::NODATA.returned_int());
    assert_eq!(named(None, None, flags::SOURCE), no_data);
    let mut wrong = [1_u8; 64];
    for bytes in [0, 16, 64] {
        let given = |info: &mut Info| (info.src_addr, info.src_addrlen) = (wrong.as_mut_ptr().cast(), bytes);
        assert_eq!(getinfo(given), no_data, "{bytes} bytes");
        let given =
            |info: &mut Info| (info.dest_addr, info.dest_addrlen) = (wrong.as_mut_ptr().cast(), bytes);
        assert_eq!(getinfo(given), no_data, "{bytes} bytes");
    }
}
