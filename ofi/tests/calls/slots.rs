//! Every slot of every table, called with nothing: null pointers and zeros. Each
//! answers with an error and says in the log why; a list of the tables' slots in the
//! sources says that none is forgotten.
#![allow(unsafe_code)] // Calls C functions.

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_void};
use std::process::Command;
use std::ptr;

use lmt_fi::abi::Errno;
use lmt_fi::abi::domain::FidMr;
use lmt_fi::abi::eq::{EqAttr, FidEq, FidPoll, PollAttr, WAIT_NONE};
use lmt_fi::abi::fid::{Fid, Ops};

use crate::harness::{Pair, close, pair};

/// What stands for nothing.
trait Nothing {
    const NOTHING: Self;
}

impl<T> Nothing for *mut T {
    const NOTHING: Self = ptr::null_mut();
}

impl<T> Nothing for *const T {
    const NOTHING: Self = ptr::null();
}

macro_rules! zeros {
    ($($number:ty)*) => {$(
        impl Nothing for $number {
            const NOTHING: Self = 0;
        }
    )*};
}
zeros! { c_int u32 u64 usize }

/// What a slot answers, as a number.
trait Answer {
    fn number(self) -> i64;
}

impl Answer for c_int {
    fn number(self) -> i64 {
        self.into()
    }
}

impl Answer for isize {
    fn number(self) -> i64 {
        self as i64
    }
}

impl Answer for u64 {
    fn number(self) -> i64 {
        self as i64
    }
}

impl Answer for *const c_char {
    fn number(self) -> i64 {
        0
    }
}

/// A function of C that can be called with nothing.
trait Slot {
    /// # Safety
    /// It takes null for every pointer.
    unsafe fn call(self) -> i64;
}

macro_rules! slots {
    ($($($argument:ident)*;)*) => {$(
        impl<R: Answer, $($argument: Nothing),*> Slot for unsafe extern "C" fn($($argument),*) -> R {
            unsafe fn call(self) -> i64 {
                // SAFETY: the caller's promise.
                unsafe { self($($argument::NOTHING),*) }.number()
            }
        }
    )*};
}
slots! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;
    A B C D E F G H I; A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
    A B C D E F G H I J K L M; A B C D E F G H I J K L M N; A B C D E F G H I J K L M N O;
    A B C D E F G H I J K L M N O P; A B C D E F G H I J K L M N O P Q; A B C D E F G H I J K L M N O P Q S;
}

/// The slots that give no error: numbers and strings.
const NO_ERROR: [&str; 5] =
    ["OpsCntr.read", "OpsCntr.readerr", "OpsCq.strerror", "OpsEq.strerror", "OpsAv.straddr"];

/// Calls these slots of a table, and notes them.
macro_rules! call {
    ($seen:expr, $table:expr, $name:ident { $($slot:ident)* }) => {{
        let table: &lmt_fi_table::$name = $table;
        $(call_slot($seen, concat!(stringify!($name), ".", stringify!($slot)), table.$slot);)*
    }};
}

/// The tables by their names.
mod lmt_fi_table {
    pub use lmt_fi::abi::domain::{OpsAv, OpsMr};
    pub use lmt_fi::abi::endpoint::{OpsAtomic, OpsCm, OpsEp, OpsMsg, OpsRma, OpsTagged};
    pub use lmt_fi::abi::eq::{OpsCntr, OpsCq, OpsEq, OpsPoll};
    pub use lmt_fi::abi::fabric::{OpsDomain, OpsFabric};
    pub use lmt_fi::abi::fid::Ops;
}

fn call_slot(seen: &mut BTreeSet<String>, name: &str, slot: impl Slot) {
    eprintln!("CALL {name}");
    // SAFETY: a slot of this provider, which is to answer null pointers by errors.
    let answer = unsafe { slot.call() };
    if NO_ERROR.contains(&name) {
        assert_eq!(answer, 0, "{name}");
    } else {
        let errors = [Errno::INVAL, Errno::NOSYS].map(|error| error.returned() as i64);
        assert!(errors.contains(&answer), "{name} answers {answer} to nothing");
    }
    seen.insert(name.to_owned());
}

/// The slots that the sources have.
fn all_slots() -> BTreeSet<String> {
    let sources = [
        include_str!("../../src/abi/domain.rs"),
        include_str!("../../src/abi/endpoint.rs"),
        include_str!("../../src/abi/eq.rs"),
        include_str!("../../src/abi/fabric.rs"),
        include_str!("../../src/abi/fid.rs"),
    ];
    let mut slots = BTreeSet::new();
    for table in sources.iter().flat_map(|source| source.split("pub struct Ops").skip(1)) {
        let (name, rest) = table.split_once(" {").expect("a structure");
        let body = rest.split("\n}").next().expect("its end");
        for line in body.lines() {
            let slot = line.strip_prefix("    pub ").and_then(|line| line.split_once(':'));
            if let Some((slot, _)) = slot.filter(|(slot, _)| *slot != "size") {
                slots.insert(format!("Ops{name}.{slot}"));
            }
        }
    }
    slots
}

fn ops_of<T>(seen: &mut BTreeSet<String>, object: *mut T) {
    // SAFETY: an object, which begins with a fid.
    let ops: &Ops = unsafe { &*(*object.cast::<Fid>()).ops };
    call!(seen, ops, Ops { close bind control ops_open tostr ops_set });
}

/// A region, an event queue and a poll set.
fn more(pair: &Pair) -> (*mut FidMr, *mut FidEq, *mut FidPoll) {
    let (mut mr, mut eq, mut set) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let mut poll = PollAttr { flags: 0 };
    let mut attr =
        EqAttr { size: 0, flags: 0, wait_obj: WAIT_NONE, signaling_vector: 0, wait_set: ptr::null_mut() };
    // SAFETY: objects of the provider, attributes and room for pointers; no memory is
    // registered for peers.
    let opened = unsafe {
        let memory = ptr::null::<c_void>();
        let reg = (*(*pair.domain).mr).reg;
        [
            reg(pair.domain.cast(), memory, 0, 0, 0, 0, 0, &raw mut mr, ptr::null_mut()),
            ((*(*pair.fabric).ops).eq_open)(pair.fabric, &raw mut attr, &raw mut eq, ptr::null_mut()),
            ((*(*pair.domain).ops).poll_open)(pair.domain, &raw mut poll, &raw mut set),
        ]
    };
    assert_eq!(opened, [0; 3]);
    (mr, eq, set)
}

#[test]
fn every_slot_answers_nothing_by_an_error() {
    let pair = pair();
    let (mr, eq, set) = more(&pair);
    let (mut slots, one) = (BTreeSet::new(), &pair.one);
    let seen = &mut slots;
    // SAFETY: objects of the provider, here and below.
    unsafe {
        call!(seen, &*(*pair.fabric).ops, OpsFabric { domain passive_ep eq_open wait_open trywait domain2 });
        call!(seen, &*(*pair.domain).ops, OpsDomain {
            av_open cq_open endpoint scalable_ep cntr_open poll_open stx_ctx srx_ctx query_atomic
            query_collective endpoint2
        });
        call!(seen, &*(*pair.domain).mr, OpsMr { reg regv regattr });
        call!(seen, &*(*one.av).ops, OpsAv { insert insertsvc insertsym remove lookup straddr av_set });
        call!(seen, &*(*one.cq).ops, OpsCq { read readfrom readerr sread sreadfrom signal strerror });
        call!(seen, &*(*one.sends).ops, OpsCntr { read readerr add set wait adderr seterr });
        call!(seen, &*(*eq).ops, OpsEq { read readerr write sread strerror });
        call!(seen, &*(*set).ops, OpsPoll { poll poll_add poll_del });
        call!(seen, &*(*one.ep).ops, OpsEp { cancel getopt setopt tx_ctx rx_ctx rx_size_left tx_size_left });
        call!(seen, &*(*one.ep).cm, OpsCm {
            setname getname getpeer connect listen accept reject shutdown join
        });
        call!(seen, &*(*one.ep).msg, OpsMsg {
            recv recvv recvmsg send sendv sendmsg inject senddata injectdata
        });
        call!(seen, &*(*one.ep).tagged, OpsTagged {
            recv recvv recvmsg send sendv sendmsg inject senddata injectdata
        });
        call!(seen, &*(*one.ep).rma, OpsRma {
            read readv readmsg write writev writemsg inject writedata injectdata
        });
        call!(seen, &*(*one.ep).atomic, OpsAtomic {
            write writev writemsg inject readwrite readwritev readwritemsg compwrite compwritev compwritemsg
            writevalid readwritevalid compwritevalid
        });
    }
    ops_of(seen, pair.fabric);
    ops_of(seen, pair.domain);
    ops_of(seen, one.ep);
    ops_of(seen, one.av);
    ops_of(seen, one.cq);
    ops_of(seen, one.sends);
    ops_of(seen, mr);
    ops_of(seen, eq);
    ops_of(seen, set);
    assert_eq!(slots, all_slots(), "every slot is called, and no other");
    assert!(slots.len() > 100);
    eprintln!("CALL the end");
    assert_eq!((close(set), close(eq), close(mr)), (0, 0, 0));
    pair.close();
}

/// What a test of this binary says on standard error, with the log at warnings.
fn log_of(test: &str) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    let command = command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    let ended = command.env("FI_LOG_LEVEL", "warn").env_remove("FI_LOG_PROV").env_remove("FI_LOG_SUBSYS");
    let ended = ended.output().expect("a process");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{test}: {said}");
    said
}

#[test]
fn the_log_says_why_every_slot_refuses() {
    let said = log_of("slots::every_slot_answers_nothing_by_an_error");
    let calls = said.split("CALL ").skip(1).map(|call| call.split_once('\n').unwrap_or((call, "")));
    let calls: Vec<_> = calls.collect();
    assert!(calls.len() > all_slots().len(), "the other process has made all calls");
    let silent: Vec<_> = calls
        .into_iter()
        .filter(|(name, told)| !told.contains(":lmt:") && !NO_ERROR.contains(name) && *name != "the end")
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(silent, Vec::<String>::new(), "these say nothing");
}

#[test]
fn the_log_says_in_a_sentence_what_is_wrong() {
    let sentences = [
        ("misuse::closing_in_the_wrong_order_is_refused", "a domain is closed before what was opened in it"),
        ("misuse::closing_in_the_wrong_order_is_refused", "a queue is closed before its endpoints"),
        ("misuse::closing_in_the_wrong_order_is_refused", "a fabric is closed before its domains"),
        (
            "misuse::an_endpoint_is_enabled_when_it_has_what_it_needs",
            "cannot be enabled: Missing or unavailable",
        ),
        ("misuse::an_endpoint_is_enabled_when_it_has_what_it_needs", "needs an enabled endpoint"),
        ("misuse::null_pointers_and_addresses_of_nobody_are_refused", "a pointer to FidEp is null"),
        ("misuse::null_pointers_and_addresses_of_nobody_are_refused", "address vector has no number 99"),
        (
            "misuse::null_pointers_and_addresses_of_nobody_are_refused",
            "5000 bytes are injected; at most 4096",
        ),
        ("misuse::wrong_attributes_are_refused", "wait object 2 is asked for"),
        ("misuse::wrong_attributes_are_refused", "there is no queue of format 77"),
        ("misuse::wrong_attributes_are_refused", "a message has 17 pieces; it may have 16"),
        ("misuse::wrong_attributes_are_refused", "FI_FENCE and FI_TRIGGER are not offered"),
        (
            "atomics::lists_messages_and_injected_operations",
            "2 pieces of the peer's memory are named; name one",
        ),
        ("atomics::lists_messages_and_injected_operations", "atomic operations have no tags"),
        ("atomics::lists_messages_and_injected_operations", "1 elements here are for 3 there"),
        (
            "atomics::what_cannot_be_done_is_refused_or_ends_with_the_target_s_error",
            "an atomic operation is of 8192 bytes at most",
        ),
        ("atomics::what_there_is_can_be_asked", "no atomic operation's target is a tagged receive"),
        ("atomics::what_there_is_can_be_asked", "give 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC"),
    ];
    for (test, sentence) in sentences {
        let said = log_of(test);
        assert!(said.contains(sentence), "{test} is to say `{sentence}`: {said}");
    }
}
