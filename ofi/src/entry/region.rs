//! Memory regions (fi_mr(3)). A region's key is the provider's
//! (`FI_MR_PROV_KEY`), and offsets in it count from its first byte.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use lmt::Protection;

use super::base::{self, ops};
use super::objects;
use super::shared_domain::Shared;
use crate::abi::domain::{FidMr, MrAttr, OpsMr};
use crate::abi::fid::{CLASS_MR, Fid, Ops};
use crate::abi::{Errno, flags};
use crate::border::{self, Object};
use crate::log::{self, Subsystem};
use crate::refuse::because;
use crate::state::region::access_for;

pub(super) static OPS: OpsMr = OpsMr { size: size_of::<OpsMr>(), reg, regv, regattr };
static MR: Ops = ops!(close: close, bind: base::bind, control: base::control);

/// A region, by its number in its domain.
struct Mr {
    domain: Arc<Shared>,
    number: usize,
}

type MrObject = Object<FidMr, Mr>;

const ACCESSES: u64 =
    flags::SEND | flags::RECV | flags::READ | flags::WRITE | flags::REMOTE_READ | flags::REMOTE_WRITE;

/// What peers may do, if they may do anything.
fn protection(access: u64) -> Result<Option<Protection>, Errno> {
    if access & !ACCESSES != 0 {
        let why = format_args!("access {access:#x} is asked for; there is {ACCESSES:#x}");
        return Err(because(Subsystem::Mr, Errno::INVAL, why));
    }
    let (read, write) = (access & flags::REMOTE_READ != 0, access & flags::REMOTE_WRITE != 0);
    Ok((read || write).then_some(Protection { read, write }))
}

/// What is asked for.
struct Asked {
    access: u64,
    offset: u64,
    flags: u64,
    context: *mut c_void,
}

/// # Safety
/// `fid` is null or a domain of ours, `piece` memory that is valid until the region
/// is closed, and `out` null or room for a pointer.
unsafe fn register(
    fid: *mut Fid,
    piece: libc::iovec,
    asked: &Asked,
    out: *mut *mut FidMr,
) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let domain = unsafe { objects::domain(fid) }?;
    border::place(out)?;
    if asked.flags != 0 || asked.offset != 0 {
        log::warn(Subsystem::Mr, format_args!("memory is registered without flags and from offset 0 on"));
        return Err(Errno::BADFLAGS);
    }
    let protection = protection(asked.access)?;
    // SAFETY: the caller's promise. What peers write there is their agreement
    // with the caller: registering for that says so.
    let lent = unsafe { border::lent(piece.iov_base, piece.iov_len, access_for(protection)) }?;
    let (number, key) = domain.domain.lock().register(lent, protection)?;
    let fid = Fid { fclass: CLASS_MR, context: asked.context, ops: &raw const MR };
    let head = FidMr { fid, mem_desc: std::ptr::null_mut(), key };
    let mr = MrObject::open(head, Mr { domain: Arc::clone(domain), number });
    // SAFETY: the caller's promise.
    unsafe { border::write(out, mr) }?;
    domain.tell_registration(mr, asked.context);
    Ok(())
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: C's promise: a region of ours.
    match unsafe { MrObject::get(fid) } {
        Ok(object) => object.inner.domain.domain.lock().deregister(object.inner.number),
        Err(error) => return error.returned_int(),
    }
    // SAFETY: C's promise: it is closed once.
    drop(unsafe { MrObject::close(fid) });
    0
}

unsafe extern "C" fn reg(
    fid: *mut Fid,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    _requested_key: u64,
    flags: u64,
    out: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    let piece = libc::iovec { iov_base: buf.cast_mut(), iov_len: len };
    // SAFETY: C's promises: a domain, memory until the region is closed, room.
    border::int(unsafe { register(fid, piece, &Asked { access, offset, flags, context }, out) })
}

unsafe extern "C" fn regv(
    fid: *mut Fid,
    iov: *const libc::iovec,
    count: usize,
    access: u64,
    offset: u64,
    _requested_key: u64,
    flags: u64,
    out: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: C's promise: null or pieces.
    let registered = unsafe { border::values(iov, count) }.and_then(|list| match list {
        // SAFETY: C's promises: a domain, memory until the region is closed, room.
        [one] => unsafe { register(fid, *one, &Asked { access, offset, flags, context }, out) },
        _ => {
            let why = format_args!(
                "{count} pieces are registered at once; register each by itself (mr_iov_limit 1)"
            );
            Err(because(Subsystem::Mr, Errno::INVAL, why))
        }
    });
    border::int(registered)
}

unsafe extern "C" fn regattr(fid: *mut Fid, attr: *const MrAttr, flags: u64, out: *mut *mut FidMr) -> c_int {
    // SAFETY: C's promise: null or a structure.
    match unsafe { border::read(attr) } {
        Ok(MrAttr { mr_iov, iov_count, access, offset, context, .. }) => {
            // SAFETY: C's promises, as the other call's.
            unsafe { regv(fid, mr_iov, iov_count, access, offset, 0, flags, out, context) }
        }
        Err(error) => error.returned_int(),
    }
}
