//! Atomic operations on a peer's memory (fi_atomic(3)). Operands are copied before
//! a call returns, by the kernel: what a caller hands over may be no memory any more.
#![allow(unsafe_code)] // Called from C.

use std::ffi::{c_int, c_void};

use lmt::buffer::{Access, Segment};

use super::messages::{check, reports};
use super::objects;
use super::remote::{There, only};
use crate::abi::atomic::{AtomicAttr, COMPARE_ATOMIC, FETCH_ATOMIC, Ioc, MsgAtomic};
use crate::abi::endpoint::{FidEp, OpsAtomic};
use crate::abi::fabric::FidDomain;
use crate::abi::{Errno, FiAddr, flags};
use crate::atomic::{Action, Family, MAX_BYTES};
use crate::border::{self, IOV_LIMIT};
use crate::lend::{self, Kept};
use crate::log::Subsystem;
use crate::refuse::because;
use crate::state::endpoint::check_injected;
use crate::state::service::asking::Atomic;

pub(super) static OPS: OpsAtomic = OpsAtomic {
    size: size_of::<OpsAtomic>(),
    write,
    writev,
    writemsg,
    inject,
    readwrite,
    readwritev,
    readwritemsg,
    compwrite,
    compwritev,
    compwritemsg,
    writevalid,
    readwritevalid,
    compwritevalid,
};

type Out = *mut c_void;
type In = *const c_void;
type Descs = *mut *mut c_void;

/// Pieces of memory with elements.
#[derive(Clone, Copy)]
enum Elements {
    /// There are none of this kind.
    None,
    /// One piece.
    One(Ioc),
    /// A list of pieces, to be read.
    List(*const Ioc, usize),
}

#[cold]
fn refused(why: std::fmt::Arguments<'_>) -> Errno {
    because(Subsystem::EpData, Errno::INVAL, why)
}

impl Elements {
    const fn one(pointer: In, count: usize) -> Self {
        Self::One(Ioc { addr: pointer.cast_mut(), count })
    }

    /// Calls `f` with each piece and its bytes; gives how many elements there are.
    ///
    /// # Safety
    /// A list is null or has so many pieces.
    unsafe fn each(
        self,
        element_bytes: usize,
        mut f: impl FnMut(*mut c_void, usize) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let one;
        let list = match self {
            Self::None => &[][..],
            Self::One(piece) => {
                one = [piece];
                &one[..]
            }
            Self::List(_, count) if count > IOV_LIMIT => {
                return Err(refused(format_args!("{count} pieces are given; there may be {IOV_LIMIT}")));
            }
            // SAFETY: the caller's promise.
            Self::List(list, count) => unsafe { border::values(list, count) }?,
        };
        let mut elements = 0_usize;
        for piece in list {
            let within = |count: &usize| *count <= MAX_BYTES / element_bytes;
            elements = elements.checked_add(piece.count).filter(within).ok_or_else(|| {
                let why = format_args!("an atomic operation is of {MAX_BYTES} bytes at most");
                because(Subsystem::EpData, Errno::MSGSIZE, why)
            })?;
            f(piece.addr, piece.count * element_bytes)?;
        }
        Ok(elements)
    }

    /// All pieces, lent for `access`, and how many elements they have.
    ///
    /// # Safety
    /// As [`Elements::each`], and each piece is lent as [`lend::Lent::new`] says: for the
    /// call, those that are written until the completion is read.
    unsafe fn lent(self, element_bytes: usize, access: Access) -> Result<(Kept, usize), Errno> {
        let (mut segments, mut used) = ([Segment::default(); IOV_LIMIT], 0);
        let enter = |pointer: *mut c_void, bytes| {
            // SAFETY: the caller's promise.
            segments[used] = unsafe { border::lent(pointer, bytes, access) }?.segment();
            used += 1;
            Ok(())
        };
        // SAFETY: the caller's promise.
        let elements = unsafe { self.each(element_bytes, enter) }?;
        // SAFETY: the caller's promise.
        let buffer = unsafe { lend::segments(&segments[..used], access) }?;
        Ok((Kept::of(&buffer), elements))
    }
}

/// A call, whichever of the functions it is of.
struct Call {
    ep: *mut FidEp,
    family: Family,
    datatype: c_int,
    op: c_int,
    operands: Elements,
    compare: Elements,
    result: Elements,
    there: There,
    /// How many elements the target is said to have, if that is said.
    target_count: Option<usize>,
    /// None if nobody is told of its end.
    context: Option<Out>,
    flags: Option<u64>,
}

impl Call {
    /// One without any pieces.
    const fn of(
        ep: *mut FidEp,
        family: Family,
        datatype: c_int,
        op: c_int,
        there: There,
        context: Option<Out>,
    ) -> Self {
        let none = Elements::None;
        let (operands, compare, result, target_count, flags) = (none, none, none, None, None);
        Self { ep, family, datatype, op, operands, compare, result, there, target_count, context, flags }
    }

    /// # Safety
    /// Null or an endpoint of ours; the pieces are null, or lent for the call, and those
    /// of the result until the completion is read.
    unsafe fn begin(self) -> isize {
        // SAFETY: the caller's promise.
        border::size(unsafe { self.begun() })
    }

    /// # Safety
    /// As [`Call::begin`].
    unsafe fn begun(self) -> Result<(), Errno> {
        // SAFETY: the caller's promise.
        let ep = unsafe { objects::endpoint(self.ep) }?;
        let action = Action::of(self.family, self.datatype, self.op)?;
        let element_bytes = action.datatype.bytes();
        let used = |elements, is_used| if is_used { elements } else { Elements::None };
        let operands = used(self.operands, action.operands() > 0);
        let compare = used(self.compare, action.operands() > 1);
        // SAFETY: the caller's promise.
        let (operands, given) = unsafe { operands.lent(element_bytes, Access::Read) }?;
        // SAFETY: the caller's promise.
        let (compare, compared) = unsafe { compare.lent(element_bytes, Access::Read) }?;
        // SAFETY: the caller's promise.
        let (result, room) = unsafe { self.result.lent(element_bytes, Access::Write) }?;
        // Where there are no operands, what is read into says how much.
        let count = if action.operands() > 0 { given } else { room };
        if action.operands() > 1 && compared != count {
            return Err(refused(format_args!(
                "{count} elements are compared with {compared}; let them be as many"
            )));
        }
        if let Some(target) = self.target_count.filter(|&target| target != count) {
            return Err(refused(format_args!(
                "{count} elements here are for {target} there; let them be as many"
            )));
        }
        let has_context = self.context.is_some();
        let operand_bytes = operands.total_bytes() + compare.total_bytes();
        let injects = !has_context || self.flags.is_some_and(|flags| flags & flags::INJECT != 0);
        if injects {
            check_injected(operand_bytes)?;
        }
        let There { peer, offset, key } = self.there;
        let context = self.context.map(|context| context.expose_provenance());
        ep.begin(|endpoint, shared_state| {
            let flags = self.flags.unwrap_or(endpoint.settings.send_flags);
            if has_context {
                check(flags)?;
            }
            let reports = has_context && reports(endpoint.send_queue, flags);
            let operands = [operands, compare];
            let atomic = Atomic { action, count, peer, key, offset, operands, result, context, reports };
            endpoint.atomic(shared_state, atomic)
        })
    }
}

unsafe extern "C" fn write(
    ep: *mut FidEp,
    buf: In,
    count: usize,
    _desc: Out,
    peer: FiAddr,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: Out,
) -> isize {
    let there = There { peer, offset, key };
    let call = Call {
        operands: Elements::one(buf, count),
        ..Call::of(ep, Family::Base, datatype, op, there, Some(context))
    };
    // SAFETY: C's promises: an endpoint of ours, and operands.
    unsafe { call.begin() }
}

unsafe extern "C" fn writev(
    ep: *mut FidEp,
    iov: *const Ioc,
    _desc: Descs,
    count: usize,
    peer: FiAddr,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: Out,
) -> isize {
    let there = There { peer, offset, key };
    let call = Call {
        operands: Elements::List(iov, count),
        ..Call::of(ep, Family::Base, datatype, op, there, Some(context))
    };
    // SAFETY: C's promises: an endpoint of ours, and operands.
    unsafe { call.begin() }
}

unsafe extern "C" fn inject(
    ep: *mut FidEp,
    buf: In,
    count: usize,
    peer: FiAddr,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
) -> isize {
    let there = There { peer, offset, key };
    let call =
        Call { operands: Elements::one(buf, count), ..Call::of(ep, Family::Base, datatype, op, there, None) };
    // SAFETY: C's promises: an endpoint of ours, and operands.
    unsafe { call.begin() }
}

unsafe extern "C" fn readwrite(
    ep: *mut FidEp,
    buf: In,
    count: usize,
    _desc: Out,
    result: Out,
    _result_desc: Out,
    peer: FiAddr,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: Out,
) -> isize {
    let there = There { peer, offset, key };
    let call = Call {
        operands: Elements::one(buf, count),
        result: Elements::one(result, count),
        ..Call::of(ep, Family::Fetch, datatype, op, there, Some(context))
    };
    // SAFETY: C's promises: an endpoint of ours, operands, and room for the result.
    unsafe { call.begin() }
}

unsafe extern "C" fn readwritev(
    ep: *mut FidEp,
    iov: *const Ioc,
    _desc: Descs,
    count: usize,
    resultv: *mut Ioc,
    _result_desc: Descs,
    result_count: usize,
    peer: FiAddr,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: Out,
) -> isize {
    let there = There { peer, offset, key };
    let call = Call {
        operands: Elements::List(iov, count),
        result: Elements::List(resultv, result_count),
        ..Call::of(ep, Family::Fetch, datatype, op, there, Some(context))
    };
    // SAFETY: C's promises: an endpoint of ours, operands, and room for the result.
    unsafe { call.begin() }
}

unsafe extern "C" fn compwrite(
    ep: *mut FidEp,
    buf: In,
    count: usize,
    _desc: Out,
    compare: In,
    _compare_desc: Out,
    result: Out,
    _result_desc: Out,
    peer: FiAddr,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: Out,
) -> isize {
    let there = There { peer, offset, key };
    let call = Call {
        operands: Elements::one(buf, count),
        compare: Elements::one(compare, count),
        result: Elements::one(result, count),
        ..Call::of(ep, Family::Compare, datatype, op, there, Some(context))
    };
    // SAFETY: C's promises: an endpoint of ours, operands, and room for the result.
    unsafe { call.begin() }
}

unsafe extern "C" fn compwritev(
    ep: *mut FidEp,
    iov: *const Ioc,
    _desc: Descs,
    count: usize,
    comparev: *const Ioc,
    _compare_desc: Descs,
    compare_count: usize,
    resultv: *mut Ioc,
    _result_desc: Descs,
    result_count: usize,
    peer: FiAddr,
    offset: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: Out,
) -> isize {
    let there = There { peer, offset, key };
    let call = Call {
        operands: Elements::List(iov, count),
        compare: Elements::List(comparev, compare_count),
        result: Elements::List(resultv, result_count),
        ..Call::of(ep, Family::Compare, datatype, op, there, Some(context))
    };
    // SAFETY: C's promises: an endpoint of ours, operands, and room for the result.
    unsafe { call.begin() }
}

/// # Safety
/// The pointers are null, or an endpoint of ours and structures whose pieces are as
/// [`Call::begin`] says.
unsafe fn by_message(
    ep: *mut FidEp,
    msg: *const MsgAtomic,
    family: Family,
    compare: Elements,
    result: Elements,
    flags: u64,
) -> isize {
    // SAFETY: the caller's promise.
    let msg = match unsafe { border::read(msg) } {
        Ok(msg) => msg,
        Err(error) => return error.returned(),
    };
    if flags & (flags::TAGGED | flags::REMOTE_CQ_DATA) != 0 {
        let why = format_args!("atomic operations have no tags, and tell the peer nothing");
        return because(Subsystem::EpData, Errno::OPNOTSUPP, why).returned();
    }
    // SAFETY: the caller's promise.
    let (there, target_count) = match unsafe { only(msg.rma_iov, msg.rma_iov_count) } {
        Ok(one) => (There { peer: msg.addr, offset: one.addr, key: one.key }, one.count),
        Err(error) => return error.returned(),
    };
    let call = Call {
        ep,
        family,
        datatype: msg.datatype,
        op: msg.op,
        operands: Elements::List(msg.msg_iov, msg.iov_count),
        compare,
        result,
        there,
        target_count: Some(target_count),
        context: Some(msg.context),
        flags: Some(flags),
    };
    // SAFETY: the caller's promises.
    unsafe { call.begin() }
}

unsafe extern "C" fn writemsg(ep: *mut FidEp, msg: *const MsgAtomic, flags: u64) -> isize {
    // SAFETY: C's promises.
    unsafe { by_message(ep, msg, Family::Base, Elements::None, Elements::None, flags) }
}

unsafe extern "C" fn readwritemsg(
    ep: *mut FidEp,
    msg: *const MsgAtomic,
    resultv: *mut Ioc,
    _result_desc: Descs,
    result_count: usize,
    flags: u64,
) -> isize {
    let result = Elements::List(resultv, result_count);
    // SAFETY: C's promises.
    unsafe { by_message(ep, msg, Family::Fetch, Elements::None, result, flags) }
}

unsafe extern "C" fn compwritemsg(
    ep: *mut FidEp,
    msg: *const MsgAtomic,
    comparev: *const Ioc,
    _compare_desc: Descs,
    compare_count: usize,
    resultv: *mut Ioc,
    _result_desc: Descs,
    result_count: usize,
    flags: u64,
) -> isize {
    let compare = Elements::List(comparev, compare_count);
    let result = Elements::List(resultv, result_count);
    // SAFETY: C's promises.
    unsafe { by_message(ep, msg, Family::Compare, compare, result, flags) }
}

/// # Safety
/// The pointers are null, or an endpoint of ours and room for a number.
unsafe fn valid(ep: *mut FidEp, family: Family, datatype: c_int, op: c_int, count: *mut usize) -> c_int {
    // SAFETY: the caller's promise.
    let found = unsafe { objects::endpoint(ep) }.and_then(|_| {
        let action = Action::of(family, datatype, op)?;
        // SAFETY: the caller's promise.
        unsafe { border::write(count, action.most()) }
    });
    border::int(found)
}

unsafe extern "C" fn writevalid(ep: *mut FidEp, datatype: c_int, op: c_int, count: *mut usize) -> c_int {
    // SAFETY: C's promises.
    unsafe { valid(ep, Family::Base, datatype, op, count) }
}

unsafe extern "C" fn readwritevalid(ep: *mut FidEp, datatype: c_int, op: c_int, count: *mut usize) -> c_int {
    // SAFETY: C's promises.
    unsafe { valid(ep, Family::Fetch, datatype, op, count) }
}

unsafe extern "C" fn compwritevalid(ep: *mut FidEp, datatype: c_int, op: c_int, count: *mut usize) -> c_int {
    // SAFETY: C's promises.
    unsafe { valid(ep, Family::Compare, datatype, op, count) }
}

/// `fi_query_atomic`. Of tagged receives as targets there are none.
pub(super) unsafe extern "C" fn query(
    domain: *mut FidDomain,
    datatype: c_int,
    op: c_int,
    attr: *mut AtomicAttr,
    flags: u64,
) -> c_int {
    let family = match flags {
        0 => Ok(Family::Base),
        FETCH_ATOMIC => Ok(Family::Fetch),
        COMPARE_ATOMIC => Ok(Family::Compare),
        tagged if tagged & flags::TAGGED != 0 => {
            let why = format_args!("no atomic operation's target is a tagged receive");
            Err(because(Subsystem::Domain, Errno::OPNOTSUPP, why))
        }
        other => {
            let why =
                format_args!("flags {other:#x} are given; give 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC");
            Err(because(Subsystem::Domain, Errno::BADFLAGS, why))
        }
    };
    // SAFETY: C's promise: a domain of ours.
    let found = unsafe { objects::domain(domain) }.and_then(|_| {
        let action = Action::of(family?, datatype, op)?;
        let attributes = AtomicAttr { count: action.most(), size: action.datatype.bytes() };
        // SAFETY: C's promise: null or room for a structure.
        unsafe { border::write(attr, attributes) }
    });
    border::int(found)
}
