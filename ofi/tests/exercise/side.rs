//! One process's fabric, domain, endpoint and queues, and every call that a case
//! makes of them, through the tables as libfabric's inline functions do.
#![allow(unsafe_code)] // Calls C functions.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::time::Instant;

use lmt_fi::abi::domain::{AvAttr, FidAv, FidMr};
use lmt_fi::abi::endpoint::{FidEp, Msg};
use lmt_fi::abi::eq::{CQ_FORMAT_TAGGED, CqErrEntry, CqTaggedEntry, FidCntr, FidCq, WAIT_UNSPEC};
use lmt_fi::abi::fabric::{DomainAttr, FidDomain, FidFabric, Info};
use lmt_fi::abi::fid::{CONTROL_ENABLE, RxAttr, TxAttr};
use lmt_fi::abi::provider::version;
use lmt_fi::abi::rma::{MsgRma, RmaIov};
use lmt_fi::abi::tagged::MsgTagged;
use lmt_fi::abi::{Errno, FiAddr, flags};

use crate::library::Fi;
use crate::link::{Link, TIME_LIMIT};

/// The version of libfabric's interface that the exercise is written for.
pub const VERSION: u32 = version(1, 17);
/// What the cases need.
pub const CAPABILITIES: u64 =
    flags::MSG | flags::TAGGED | flags::RMA | flags::MULTI_RECV | flags::DIRECTED_RECV | flags::SOURCE;
/// Ways of registering memory that the exercise can do with.
const MR_VIRT_ADDR: i32 = 1 << 4;

/// Calls a function of an object's table.
macro_rules! call {
    ($object:expr, $($table:ident).+ ! $function:ident($($argument:expr),* $(,)?)) => {{
        let object = $object;
        // SAFETY: an object of libfabric and what its man page asks for, all of which
        // the case keeps for as long as that says.
        unsafe { ((*(*object).$($table).+).$function)(object.cast(), $($argument),*) }
    }};
}
pub(crate) use call;

/// What a side is opened with.
#[derive(Clone, Copy)]
pub struct Ask {
    pub format: c_int,
    pub av_type: c_int,
    pub queue_flags: u64,
    pub wait_object: c_int,
}

impl Default for Ask {
    fn default() -> Self {
        Self { format: CQ_FORMAT_TAGGED, av_type: 0, queue_flags: 0, wait_object: WAIT_UNSPEC }
    }
}

/// One process of a case.
pub struct Side {
    pub fi: &'static Fi,
    pub provider: &'static CStr,
    pub link: Link,
    /// 0 or 1.
    pub number: usize,
    pub info: *mut Info,
    pub fabric: *mut FidFabric,
    pub domain: *mut FidDomain,
    pub ep: *mut FidEp,
    pub cq: *mut FidCq,
    pub av: *mut FidAv,
    pub sends: *mut FidCntr,
    pub receives: *mut FidCntr,
    /// The other process's number, and this one's.
    pub peer: FiAddr,
    pub own: FiAddr,
    contexts: Vec<[u64; 8]>,
}

/// What a queue told.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub number: usize,
    pub flags: u64,
    pub bytes: usize,
    pub buffer: usize,
    pub data: u64,
    pub tag: u64,
    pub source: FiAddr,
}

/// Plain or tagged messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    Tagged,
}

/// The calls that send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    One,
    Vector,
    Message,
    Inject,
    Data,
    InjectData,
}

/// A message to be sent.
#[derive(Clone, Copy)]
pub struct Sent<'a> {
    pub kind: Kind,
    pub form: Form,
    pub bytes: &'a [u8],
    pub tag: u64,
    pub data: u64,
    pub number: usize,
    pub flags: u64,
}

/// A receive.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub kind: Kind,
    pub form: Form,
    pub from: FiAddr,
    pub tag: u64,
    pub ignore: u64,
    pub number: usize,
    pub flags: u64,
}

/// The calls that reach a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remote {
    Read,
    ReadVector,
    ReadMessage,
    Write,
    WriteVector,
    WriteMessage,
    Inject,
}

/// A piece of a peer's memory.
#[derive(Clone, Copy, Debug)]
pub struct There {
    pub address: u64,
    pub key: u64,
}

pub fn zeroed<T: Copy>() -> T {
    // SAFETY: the structures of C that this is called for have numbers and pointers.
    unsafe { std::mem::zeroed() }
}

/// Hints with these capabilities and every attribute there, as fi_allocinfo(3) makes
/// them; they last.
pub fn hints(capabilities: u64) -> Info {
    let mut domain: DomainAttr = zeroed();
    domain.mr_mode = flags::MR_PROV_KEY | MR_VIRT_ADDR;
    let mut hints: Info = zeroed();
    hints.caps = capabilities;
    hints.domain_attr = Box::leak(Box::new(domain));
    let (mut tx, mut rx): (TxAttr, RxAttr) = (zeroed(), zeroed());
    (tx.msg_order, rx.msg_order) = (flags::ORDER_SAS, flags::ORDER_SAS);
    hints.tx_attr = Box::leak(Box::new(tx));
    hints.rx_attr = Box::leak(Box::new(rx));
    hints.ep_attr = Box::leak(Box::new(zeroed()));
    hints
}

/// `fi_close`.
pub fn close<T>(object: *mut T) -> c_int {
    call!(object.cast::<lmt_fi::abi::fid::Fid>(), ops ! close())
}

impl Side {
    /// Opens a fabric and a domain.
    pub fn new(fi: &'static Fi, provider: &'static CStr, number: usize, link: Link) -> Self {
        let info = fi.getinfo(provider, VERSION, &mut hints(CAPABILITIES)).expect("an offer");
        let mut side = Self {
            fi,
            provider,
            link,
            number,
            info,
            fabric: ptr::null_mut(),
            domain: ptr::null_mut(),
            ep: ptr::null_mut(),
            cq: ptr::null_mut(),
            av: ptr::null_mut(),
            sends: ptr::null_mut(),
            receives: ptr::null_mut(),
            peer: 0,
            own: 0,
            contexts: vec![[0; 8]; 64],
        };
        let attr = side.offer().fabric_attr;
        // SAFETY: what `fi_getinfo` gave, and room for a pointer.
        let opened = unsafe { (fi.fabric)(attr, &raw mut side.fabric, ptr::null_mut()) };
        assert_eq!(opened, 0, "fi_fabric");
        let opened = call!(side.fabric, ops ! domain(info, &raw mut side.domain, ptr::null_mut()));
        assert_eq!(opened, 0, "fi_domain");
        side
    }

    /// A copy of what `fi_getinfo` gave.
    pub fn offer(&self) -> Info {
        // SAFETY: it lives as long as this side.
        unsafe { *self.info }
    }

    pub fn is_first(&self) -> bool {
        self.number == 0
    }

    /// Opens an endpoint with everything bound, and has both processes insert both
    /// names: their own at 0 and the other's at 1.
    pub fn open(&mut self, ask: Ask) {
        self.ep = self.open_ep();
        self.cq = self.open_cq(ask.format, ask.wait_object).expect("a queue");
        self.av = self.open_av(ask.av_type, 0).expect("an address vector");
        (self.sends, self.receives) = (self.open_cntr(WAIT_UNSPEC), self.open_cntr(WAIT_UNSPEC));
        assert_eq!(self.bind(self.av, 0), 0);
        assert_eq!(self.bind(self.cq, flags::SEND | flags::RECV | ask.queue_flags), 0);
        assert_eq!(self.bind(self.sends, flags::SEND), 0);
        assert_eq!(self.bind(self.receives, flags::RECV), 0);
        assert_eq!(self.enable(), 0);
        self.own = self.insert(&self.name());
        self.say(&digits(&self.name()));
        let theirs = bytes_of(&self.hear());
        self.peer = self.insert(&theirs);
        self.meet();
    }

    pub fn open_ep(&self) -> *mut FidEp {
        let mut ep = ptr::null_mut();
        assert_eq!(call!(self.domain, ops ! endpoint(self.info, &raw mut ep, ptr::null_mut())), 0);
        ep
    }

    /// One more endpoint, bound as the first one.
    pub fn open_bound(&self) -> *mut FidEp {
        let ep = self.open_ep();
        let bind = |other: *mut lmt_fi::abi::fid::Fid, with| {
            assert_eq!(call!(ep.cast::<lmt_fi::abi::fid::Fid>(), ops ! bind(other, with)), 0);
        };
        bind(self.av.cast(), 0);
        bind(self.cq.cast(), flags::SEND | flags::RECV);
        assert_eq!(self.control(ep, CONTROL_ENABLE, ptr::null_mut::<c_void>()), 0);
        ep
    }

    pub fn open_cq(&self, format: c_int, wait_object: c_int) -> Result<*mut FidCq, c_int> {
        let mut attr: lmt_fi::abi::eq::CqAttr = zeroed();
        (attr.format, attr.wait_obj) = (format, wait_object);
        let mut cq = ptr::null_mut();
        let own = ptr::without_provenance_mut(0xc0);
        match call!(self.domain, ops ! cq_open(&raw mut attr, &raw mut cq, own)) {
            0 => Ok(cq),
            error => Err(error),
        }
    }

    pub fn open_cntr(&self, wait_object: c_int) -> *mut FidCntr {
        let mut attr: lmt_fi::abi::eq::CntrAttr = zeroed();
        attr.wait_obj = wait_object;
        let mut cntr = ptr::null_mut();
        let own = ptr::without_provenance_mut(0xc1);
        assert_eq!(call!(self.domain, ops ! cntr_open(&raw mut attr, &raw mut cntr, own)), 0, "fi_cntr_open");
        cntr
    }

    pub fn open_av(&self, av_type: c_int, flags: u64) -> Result<*mut FidAv, c_int> {
        let mut attr: AvAttr = zeroed();
        (attr.av_type, attr.count, attr.flags) = (av_type, 8, flags);
        let mut av = ptr::null_mut();
        match call!(self.domain, ops ! av_open(&raw mut attr, &raw mut av, ptr::null_mut())) {
            0 => Ok(av),
            error => Err(error),
        }
    }

    pub fn bind<T>(&self, other: *mut T, with: u64) -> c_int {
        call!(self.ep.cast::<lmt_fi::abi::fid::Fid>(), ops ! bind(other.cast(), with))
    }

    pub fn enable(&self) -> c_int {
        self.control(self.ep, CONTROL_ENABLE, ptr::null_mut::<c_void>())
    }

    /// `fi_control`.
    pub fn control<T, A>(&self, object: *mut T, command: c_int, argument: *mut A) -> c_int {
        call!(object.cast::<lmt_fi::abi::fid::Fid>(), ops ! control(command, argument.cast()))
    }

    /// `fi_getname` with so much room: what it returns, the length that it says, and
    /// what it has written.
    pub fn getname(&self, ep: *mut FidEp, room_bytes: usize) -> (c_int, usize, Vec<u8>) {
        let (mut bytes, mut name) = (room_bytes, vec![0_u8; room_bytes.max(1)]);
        let got = call!(ep, cm ! getname(name.as_mut_ptr().cast(), &raw mut bytes));
        name.truncate(room_bytes.min(bytes));
        (got, bytes, name)
    }

    pub fn name(&self) -> Vec<u8> {
        self.name_of(self.ep)
    }

    pub fn name_of(&self, ep: *mut FidEp) -> Vec<u8> {
        let (_, bytes, _) = self.getname(ep, 0);
        let (got, _, name) = self.getname(ep, bytes);
        assert_eq!(got, 0, "fi_getname");
        name
    }

    pub fn insert(&self, name: &[u8]) -> FiAddr {
        let (inserted, numbers) = self.insert_into(self.av, &[name.to_vec()], 0);
        assert_eq!(inserted, 1, "fi_av_insert");
        numbers[0]
    }

    /// `fi_av_insert` of names side by side.
    pub fn insert_into(&self, av: *mut FidAv, names: &[Vec<u8>], with: u64) -> (c_int, Vec<FiAddr>) {
        let (list, mut numbers) = (names.concat(), vec![0xdead; names.len()]);
        let inserted = call!(
            av,
            ops ! insert(list.as_ptr().cast(), names.len(), numbers.as_mut_ptr(), with, self.context(1))
        );
        (inserted, numbers)
    }

    /// `fi_av_lookup` with so much room.
    pub fn look_up(&self, number: FiAddr, room_bytes: usize) -> (c_int, usize, Vec<u8>) {
        let (mut bytes, mut name) = (room_bytes, vec![0_u8; room_bytes.max(1)]);
        let found = call!(self.av, ops ! lookup(number, name.as_mut_ptr().cast(), &raw mut bytes));
        name.truncate(room_bytes.min(bytes));
        (found, bytes, name)
    }

    /// A context: memory, as some providers and some calls want it.
    pub fn context(&self, number: usize) -> *mut c_void {
        (&raw const self.contexts[number]).cast_mut().cast()
    }

    fn number_of(&self, context: *mut c_void) -> usize {
        let at = self.contexts.iter().position(|own| ptr::eq(own.as_ptr().cast(), context));
        at.unwrap_or(usize::MAX)
    }

    pub fn say(&self, line: &str) {
        self.link.say(line);
    }

    /// The other's next line, while messages move on.
    pub fn hear(&self) -> String {
        self.link.hear(|| self.progress())
    }

    /// The other's next line, while nothing is done here.
    pub fn hear_only(&self) -> String {
        self.link.hear(|| ())
    }

    /// Waits until the other process is there too.
    pub fn meet(&self) {
        self.say("here");
        assert_eq!(self.hear(), "here");
    }

    /// Moves messages on.
    pub fn progress(&self) {
        if !self.cq.is_null() {
            call!(self.cq, ops ! read(ptr::null_mut(), 0));
        }
    }

    /// Begins an operation again for as long as there is no room for it.
    pub fn begin(&self, mut call: impl FnMut() -> isize) {
        let start = Instant::now();
        loop {
            match call() {
                0 => return,
                error if error == Errno::AGAIN.returned() => self.progress(),
                error => panic!("an operation was refused: {error}"),
            }
            assert!(start.elapsed() < TIME_LIMIT, "there is no room in time");
        }
    }

    /// Sends a message by one of the calls.
    pub fn send(&self, sent: Sent<'_>) -> isize {
        let Sent { kind, form, bytes, tag, data, number, flags } = sent;
        let (from, len, none) = (bytes.as_ptr().cast::<c_void>(), bytes.len(), ptr::null_mut());
        let (to, context) = (self.peer, self.context(number));
        let pieces = halves(from.cast_mut(), len);
        let list = pieces.as_ptr();
        let (ep, none_of) = (self.ep, ptr::null_mut());
        match (kind, form) {
            (Kind::Plain, Form::One) => call!(ep, msg ! send(from, len, none, to, context)),
            (Kind::Plain, Form::Vector) => call!(ep, msg ! sendv(list, none_of, 2, to, context)),
            (Kind::Plain, Form::Message) => {
                let msg = Msg { msg_iov: list, desc: none_of, iov_count: 2, addr: to, context, data };
                call!(ep, msg ! sendmsg(&raw const msg, flags))
            }
            (Kind::Plain, Form::Inject) => call!(ep, msg ! inject(from, len, to)),
            (Kind::Plain, Form::Data) => call!(ep, msg ! senddata(from, len, none, data, to, context)),
            (Kind::Plain, Form::InjectData) => call!(ep, msg ! injectdata(from, len, data, to)),
            (Kind::Tagged, Form::One) => call!(ep, tagged ! send(from, len, none, to, tag, context)),
            (Kind::Tagged, Form::Vector) => call!(ep, tagged ! sendv(list, none_of, 2, to, tag, context)),
            (Kind::Tagged, Form::Message) => {
                let msg = MsgTagged {
                    msg_iov: list,
                    desc: none_of,
                    iov_count: 2,
                    addr: to,
                    tag,
                    ignore: 0,
                    context,
                    data,
                };
                call!(ep, tagged ! sendmsg(&raw const msg, flags))
            }
            (Kind::Tagged, Form::Inject) => call!(ep, tagged ! inject(from, len, to, tag)),
            (Kind::Tagged, Form::Data) => {
                call!(ep, tagged ! senddata(from, len, none, data, to, tag, context))
            }
            (Kind::Tagged, Form::InjectData) => call!(ep, tagged ! injectdata(from, len, data, to, tag)),
        }
    }

    /// Begins a receive by one of the calls.
    pub fn receive(&self, into: &mut [u8], wanted: Wanted) -> isize {
        let Wanted { kind, form, from, tag, ignore, number, flags } = wanted;
        let (buf, len, none) = (into.as_mut_ptr().cast::<c_void>(), into.len(), ptr::null_mut());
        let context = self.context(number);
        // A multi-receive buffer is one piece.
        let (pieces, count) = match flags & flags::MULTI_RECV {
            0 => (halves(buf, len), 2),
            _ => ([libc::iovec { iov_base: buf, iov_len: len }; 2], 1),
        };
        let (list, ep, none_of) = (pieces.as_ptr(), self.ep, ptr::null_mut());
        match (kind, form) {
            (Kind::Plain, Form::One) => call!(ep, msg ! recv(buf, len, none, from, context)),
            (Kind::Plain, Form::Vector) => call!(ep, msg ! recvv(list, none_of, 2, from, context)),
            (Kind::Plain, _) => {
                let msg =
                    Msg { msg_iov: list, desc: none_of, iov_count: count, addr: from, context, data: 0 };
                call!(ep, msg ! recvmsg(&raw const msg, flags))
            }
            (Kind::Tagged, Form::One) => call!(ep, tagged ! recv(buf, len, none, from, tag, ignore, context)),
            (Kind::Tagged, Form::Vector) => {
                call!(ep, tagged ! recvv(list, none_of, 2, from, tag, ignore, context))
            }
            (Kind::Tagged, _) => {
                let looks = flags & (flags::PEEK | flags::DISCARD) != 0;
                let iov_count = if looks { 0 } else { count };
                let msg = MsgTagged {
                    msg_iov: list,
                    desc: none_of,
                    iov_count,
                    addr: from,
                    tag,
                    ignore,
                    context,
                    data: 0,
                };
                call!(ep, tagged ! recvmsg(&raw const msg, flags))
            }
        }
    }

    /// Reads or writes the other process's memory by one of the calls.
    pub fn remote(&self, form: Remote, memory: &mut [u8], there: There, number: usize) -> isize {
        let (buf, len, none) = (memory.as_mut_ptr().cast::<c_void>(), memory.len(), ptr::null_mut());
        let (to, context, There { address, key }) = (self.peer, self.context(number), there);
        let pieces = halves(buf, len);
        let (list, ep, none_of) = (pieces.as_ptr(), self.ep, ptr::null_mut());
        let far = RmaIov { addr: address, len, key };
        let msg = MsgRma {
            msg_iov: list,
            desc: none_of,
            iov_count: 2,
            addr: to,
            rma_iov: &raw const far,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        match form {
            Remote::Read => call!(ep, rma ! read(buf, len, none, to, address, key, context)),
            Remote::ReadVector => call!(ep, rma ! readv(list, none_of, 2, to, address, key, context)),
            Remote::ReadMessage => call!(ep, rma ! readmsg(&raw const msg, flags::COMPLETION)),
            Remote::Write => call!(ep, rma ! write(buf, len, none, to, address, key, context)),
            Remote::WriteVector => call!(ep, rma ! writev(list, none_of, 2, to, address, key, context)),
            Remote::WriteMessage => {
                call!(ep, rma ! writemsg(&raw const msg, flags::COMPLETION | flags::DELIVERY_COMPLETE))
            }
            Remote::Inject => call!(ep, rma ! inject(buf, len, to, address, key)),
        }
    }

    /// `fi_mr_reg`, and where the other process finds the memory.
    pub fn register(&self, memory: &mut [u8], access: u64) -> (*mut FidMr, There) {
        self.register_as(77, memory, access)
    }

    /// The same under a key of its own, where keys are chosen.
    pub fn register_as(&self, key: u64, memory: &mut [u8], access: u64) -> (*mut FidMr, There) {
        let mut mr = ptr::null_mut();
        let address = memory.as_mut_ptr();
        let registered = call!(
            self.domain,
            mr ! reg(address.cast(), memory.len(), access, 0, key, 0, &raw mut mr, ptr::null_mut())
        );
        assert_eq!(registered, 0, "fi_mr_reg");
        // SAFETY: what `fi_getinfo` gave.
        let mode = unsafe { *self.offer().domain_attr }.mr_mode;
        let address = if mode & MR_VIRT_ADDR != 0 { address.expose_provenance() as u64 } else { 0 };
        // SAFETY: a region.
        (mr, There { address, key: unsafe { (*mr).key } })
    }

    /// `fi_cancel`.
    pub fn cancel(&self, number: usize) -> isize {
        call!(self.ep, ops ! cancel(self.context(number)))
    }

    /// `fi_cq_readfrom`, once.
    pub fn read(&self) -> Result<Told, isize> {
        let (mut entry, mut source): (CqTaggedEntry, _) = (zeroed(), 0);
        match call!(self.cq, ops ! readfrom((&raw mut entry).cast(), 1, &raw mut source)) {
            1 => Ok(Told { source, ..self.told(&entry) }),
            other => Err(other),
        }
    }

    /// What an entry tells; its source is not in it.
    pub fn told(&self, entry: &CqTaggedEntry) -> Told {
        let &CqTaggedEntry { op_context, flags, len, buf, data, tag } = entry;
        Told {
            number: self.number_of(op_context),
            flags,
            bytes: len,
            buffer: buf.addr(),
            data,
            tag,
            source: 0,
        }
    }

    /// `fi_cq_readerr`, once: the operation, the entry.
    pub fn read_error(&self) -> Result<(usize, CqErrEntry), isize> {
        let mut entry: CqErrEntry = zeroed();
        match call!(self.cq, ops ! readerr(&raw mut entry, 0)) {
            1 => Ok((self.number_of(entry.op_context), entry)),
            other => Err(other),
        }
    }

    fn until<T>(&self, mut look: impl FnMut(Result<Told, isize>) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look(self.read()) {
                return found;
            }
            assert!(start.elapsed() < TIME_LIMIT, "nothing came in time");
            std::thread::yield_now();
        }
    }

    /// The next completion.
    pub fn wait(&self) -> Told {
        self.until(|read| match read {
            Ok(told) => Some(told),
            Err(error) if error == Errno::AGAIN.returned() => None,
            Err(error) => panic!(
                "reading ended with {error}: {:?}",
                self.read_error().map(|(at, entry)| (at, entry.err))
            ),
        })
    }

    /// The next failure.
    pub fn wait_error(&self) -> (usize, CqErrEntry) {
        self.until(|read| match read {
            Err(error) if error == Errno::AVAIL.returned() => Some(()),
            Err(error) if error == Errno::AGAIN.returned() => None,
            other => panic!("a failure is to come: {other:?}"),
        });
        self.read_error().expect("an entry")
    }

    /// Looks for a message until there is one; it is told as the completion of
    /// `wanted`.
    pub fn find(&self, wanted: Wanted) -> Told {
        let start = Instant::now();
        loop {
            self.begin(|| self.receive(&mut [], wanted));
            let looked = self.until(|read| match read {
                Ok(told) => Some(Some(told)),
                Err(error) if error == Errno::AVAIL.returned() => Some(None),
                Err(_) => None,
            });
            match looked {
                Some(told) => return told,
                None => assert_eq!(self.read_error().expect("an entry").1.err, Errno::NOMSG.0),
            }
            assert!(start.elapsed() < TIME_LIMIT, "no message is found in time");
        }
    }

    /// `fi_cntr_read`, until it says so much.
    pub fn wait_count(&self, cntr: *mut FidCntr, least: u64) {
        let start = Instant::now();
        while call!(cntr, ops ! read()) < least {
            self.progress();
            assert!(start.elapsed() < TIME_LIMIT, "the counter stays below {least}");
        }
    }

    /// Closes the endpoint and what is bound to it.
    pub fn close_endpoint(&mut self) {
        assert_eq!(close(self.ep), 0);
        assert_eq!((close(self.sends), close(self.receives)), (0, 0));
        assert_eq!((close(self.cq), close(self.av)), (0, 0));
        (self.ep, self.cq) = (ptr::null_mut(), ptr::null_mut());
    }

    /// Closes domain and fabric and frees the offer.
    pub fn close(self) -> Link {
        assert_eq!((close(self.domain), close(self.fabric)), (0, 0));
        // SAFETY: what `fi_getinfo` gave, used no more.
        unsafe { (self.fi.freeinfo)(self.info) };
        self.link
    }
}

fn halves(buf: *mut c_void, len: usize) -> [libc::iovec; 2] {
    let first = len / 2;
    [
        libc::iovec { iov_base: buf, iov_len: first },
        libc::iovec { iov_base: buf.wrapping_byte_add(first), iov_len: len - first },
    ]
}

pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn bytes_of(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..][..2], 16).expect("digits")).collect()
}

/// A string for C that lasts.
pub fn lasting(text: &str) -> &'static CStr {
    Box::leak(CString::new(text).expect("no zero in it").into_boxed_c_str())
}
