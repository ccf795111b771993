#![allow(unsafe_code)] // Calls functions as C does.

use std::ptr::null_mut;
use std::time::{Duration, Instant};

use super::*;
use crate::code::lmt_code::{LMT_ERR_HANDLE, LMT_ERR_PANIC, LMT_ERR_PEER_DEAD, LMT_OK};
use crate::entry::endpoint::{lmt_endpoint_close, lmt_endpoint_create};
use crate::entry::messages::{lmt_irecv, lmt_isend};
use crate::entry::options::{lmt_options_create, lmt_options_destroy, lmt_options_set};
use crate::entry::peer::lmt_peer_insert;
use crate::entry::requests::{lmt_test, lmt_wait};
use crate::error::guard;
use crate::objects::{Endpoint, NO_REQUEST};
use crate::types::lmt_endpoint;

const NOBODY: lmt_peer = lmt_peer { owner: 0, number: 0 };

/// An endpoint whose end waits for long if something is in flight, and whose messages
/// nobody can move alone.
fn endpoint() -> *mut lmt_endpoint {
    let (mut options, mut made) = (null_mut(), null_mut());
    // SAFETY: memory for a pointer.
    assert_eq!(unsafe { lmt_options_create(&mut options) }, LMT_OK);
    // SAFETY: both texts end with a zero.
    let set = unsafe { lmt_options_set(options, c"close_timeout_ms".as_ptr(), c"30000".as_ptr()) };
    assert_eq!(set, LMT_OK);
    // SAFETY: both texts end with a zero.
    let set = unsafe { lmt_options_set(options, c"mechanisms".as_ptr(), c"shm".as_ptr()) };
    assert_eq!(set, LMT_OK);
    // SAFETY: memory for a pointer.
    assert_eq!(unsafe { lmt_endpoint_create(options, &mut made) }, LMT_OK);
    // SAFETY: any pointer will do.
    assert_eq!(unsafe { lmt_options_destroy(options) }, LMT_OK);
    made
}

/// Names one at the other.
fn insert(at: *mut lmt_endpoint, other: *mut lmt_endpoint) -> lmt_peer {
    let address = Endpoint::with(other, |other| Ok(other.address().to_bytes())).expect("an address");
    let mut peer = NOBODY;
    // SAFETY: as many bytes as the slice has, and memory for a peer.
    let code = unsafe { lmt_peer_insert(at, address.as_ptr().cast(), address.len(), &mut peer) };
    assert_eq!(code, LMT_OK);
    peer
}

/// Begins a send and a receive of the same bytes, which must outlive both endpoints.
fn begin(
    (sender, to): (*mut lmt_endpoint, lmt_peer),
    (receiver, from): (*mut lmt_endpoint, lmt_peer),
    data: &[u8],
    into: &mut [u8],
) -> (lmt_request, lmt_request) {
    let (mut send, mut receive) = (NO_REQUEST, NO_REQUEST);
    // SAFETY: the caller keeps the data and writes it nowhere; memory for one.
    let begun = unsafe { lmt_isend(sender, to, 1, data.as_ptr().cast(), data.len(), 0, &mut send) };
    assert_eq!(begun, LMT_OK);
    let (pointer, bytes) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: the caller keeps the memory and uses it for nothing else; memory for one.
    let begun = unsafe { lmt_irecv(receiver, from, 1, 0, pointer, bytes, &mut receive) };
    assert_eq!(begun, LMT_OK);
    (send, receive)
}

fn is_done(at: *mut lmt_endpoint, request: lmt_request) -> bool {
    let mut done = false;
    // SAFETY: memory for one; the other is NULL.
    assert_eq!(unsafe { lmt_test(at, request, &mut done, null_mut()) }, LMT_OK);
    done
}

#[test]
fn what_a_panic_has_left_is_closed_without_moving_anything() {
    let (broken, peer) = (endpoint(), endpoint());
    let (to, from) = (insert(broken, peer), insert(peer, broken));
    let (data, mut into) = (vec![1u8; 1 << 20], vec![0u8; 1 << 20]);
    let (word, mut word_into) = ([1; 8], [0; 8]);
    let (send, receive) = begin((broken, to), (peer, from), &word, &mut word_into);
    let (mut sent, mut received) = (false, false);
    while !(sent && received) {
        sent = sent || is_done(broken, send);
        received = received || is_done(peer, receive);
    }
    let (send, receive) = begin((broken, to), (peer, from), &data, &mut into);

    assert_eq!(guard(|| Endpoint::with(broken, |_| panic!("a fault"))), LMT_ERR_PANIC);
    let mut done = true;
    // SAFETY: memory for one; the other is NULL.
    assert_eq!(unsafe { lmt_test(broken, send, &mut done, null_mut()) }, LMT_ERR_PANIC);
    assert!(!done, "its memory is lent until it is closed");
    let start = Instant::now();
    // SAFETY: the memory of what is in flight stays as it is.
    assert_eq!(unsafe { lmt_endpoint_close(broken) }, LMT_OK);
    assert!(start.elapsed() < Duration::from_secs(15), "it has waited: {:?}", start.elapsed());
    // SAFETY: any pointer will do.
    assert_eq!(unsafe { lmt_endpoint_close(broken) }, LMT_ERR_HANDLE);

    // The other end is told, and ends.
    // SAFETY: NULL will do.
    assert_eq!(unsafe { lmt_wait(peer, receive, 20_000, null_mut()) }, LMT_ERR_PEER_DEAD);
    // SAFETY: nothing is in flight any more.
    assert_eq!(unsafe { lmt_endpoint_close(peer) }, LMT_OK);
    drop((data, into));
}
