//! What stands behind the handles.

use lmt::device::{Announcement, DeviceLayer, Withdrawal};
use lmt::launch::Group;
use lmt::selection::Message as Question;
use lmt::{
    Address, EndpointId, Engine, Explanation, Message, OperationError, Outcome, PeerId, RequestId,
    SendOptions, Source, Status, TagMatch,
};

use crate::code::lmt_code::{LMT_ERR_CONFIGURATION, LMT_ERR_FOREIGN_MESSAGE, LMT_ERR_NO_GROUP};
use crate::error::Error;
use crate::handle::{Kind, Number, Reserved, Table, number_of};
use crate::numbers::peer_of;
use crate::port::CTransport;
use crate::types::{lmt_device, lmt_endpoint, lmt_peer, lmt_request};

pub static OPTIONS: Table<Options> = Table::new(Kind::Options);
static ENDPOINTS: Table<Box<Endpoint>> = Table::new(Kind::Endpoint);
static DEVICE_LAYERS: Table<Box<DeviceLayerObject>> = Table::new(Kind::DeviceLayer);
pub static MESSAGES: Table<ChildObject<Message>> = Table::new(Kind::Message);
pub static ANNOUNCEMENTS: Table<ChildObject<Announcement>> = Table::new(Kind::Announcement);
pub static WITHDRAWALS: Table<ChildObject<Withdrawal>> = Table::new(Kind::Withdrawal);

/// A place that is kept for what comes, so that it is not lost for want of one.
pub type Spare<T> = Option<Reserved<'static, ChildObject<T>>>;

/// Settings, as they were made; each endpoint applies them anew.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub id: Option<EndpointId>,
    pub settings: Vec<(String, lmt::config_key::Value)>,
    pub statistics: Option<bool>,
    pub accepts_unnamed_peers: bool,
}

impl Options {
    /// A builder to which they are applied.
    pub fn builder(&self) -> Result<lmt::EndpointBuilder, Error> {
        let mut builder = lmt::Endpoint::builder();
        if let Some(id) = self.id {
            builder = builder.id(id);
        }
        if let Some(wanted) = self.statistics {
            builder = builder.statistics(wanted);
        }
        for (key, value) in &self.settings {
            builder = builder.set(key, value.clone()).map_err(lmt::CreateError::from)?;
        }
        Ok(builder)
    }
}

/// What endpoints and device layers have in common.
pub trait Side: Sized + 'static {
    /// What C holds.
    type Handle;
    /// Where all of them are.
    fn table() -> &'static Table<Box<Self>>;
    /// The number of its handle, by which its peers and requests are told from others'.
    fn number(&self) -> Number;
    fn address(&self) -> Address;
    fn insert_peer(&mut self, address: &Address) -> Result<PeerId, OperationError>;
    fn explain(&self, peer: PeerId, message: &Question) -> Result<Explanation, OperationError>;
    /// What an operation has ended with.
    fn test(&mut self, request: RequestId) -> Option<Outcome>;
    /// Ends it; of one that a panic `is_broken` by, nothing is moved any more.
    fn close(&mut self, is_broken: bool) -> Result<(), OperationError>;

    /// Calls `f` with the one that a handle names.
    #[inline]
    fn with<R>(handle: *mut Self::Handle, f: impl FnOnce(&mut Self) -> Result<R, Error>) -> Result<R, Error> {
        Self::table().with(number_of(handle), |side| f(side))
    }
}

/// An endpoint.
pub struct Endpoint {
    number: Number,
    /// Opens no scope and declares no region that borrows: nobody outside of this
    /// module has it.
    inner: lmt::Endpoint,
    /// Whether senders were asked to ring and not yet told that they need not.
    pub is_sleeping: bool,
    pub spare: Spare<Message>,
}

impl Endpoint {
    pub const fn new(number: Number, inner: lmt::Endpoint) -> Self {
        Self { number, inner, is_sleeping: false, spare: None }
    }

    /// Calls `f` with the engine.
    #[allow(unsafe_code)] // The engine itself is lent.
    #[inline]
    pub fn engine<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        // SAFETY: `with_engine` asks something of `f` only while a scope is open or
        // a region lives that borrows from the endpoint. `inner` is private to this
        // module, which calls nothing of it but `send`, `send_with` and `receive`:
        // they borrow memory for the call, in which `f` is not called.
        unsafe { self.inner.with_engine(f) }
    }

    /// The same before whatever moves messages: after a sleep senders need not
    /// ring any more.
    #[inline]
    pub fn awake<R>(&mut self, f: impl FnOnce(&mut Engine) -> R) -> R {
        let was_sleeping = std::mem::take(&mut self.is_sleeping);
        self.engine(|engine| {
            if was_sleeping {
                engine.woken();
            }
            f(engine)
        })
    }

    /// Sends and waits.
    pub fn send(
        &mut self,
        to: PeerId,
        tag: u64,
        data: &[u8],
        options: Option<SendOptions>,
    ) -> Result<Status, OperationError> {
        self.awake(|_engine| ());
        match options {
            None => self.inner.send(to, tag, data),
            Some(options) => self.inner.send_with(to, tag, data, options),
        }
    }

    /// Receives and waits.
    pub fn receive(
        &mut self,
        source: Source,
        tags: TagMatch,
        into: &mut [u8],
    ) -> Result<Status, OperationError> {
        self.awake(|_engine| ());
        self.inner.receive(source, tags, into)
    }

    /// From whom a receive takes messages.
    #[inline]
    pub fn source(&self, peer: lmt_peer) -> Result<Source, Error> {
        if peer == ANY_PEER { Ok(Source::Any) } else { Ok(Source::Peer(peer_of(self.number, peer)?)) }
    }
}

impl Side for Endpoint {
    type Handle = lmt_endpoint;

    #[inline]
    fn table() -> &'static Table<Box<Self>> {
        &ENDPOINTS
    }

    #[inline]
    fn number(&self) -> Number {
        self.number
    }

    fn address(&self) -> Address {
        self.engine(|engine| engine.address().clone())
    }

    fn insert_peer(&mut self, address: &Address) -> Result<PeerId, OperationError> {
        self.engine(|engine| engine.insert_peer(address))
    }

    fn explain(&self, peer: PeerId, message: &Question) -> Result<Explanation, OperationError> {
        self.engine(|engine| engine.explain(peer, message))
    }

    #[inline]
    fn test(&mut self, request: RequestId) -> Option<Outcome> {
        self.awake(|engine| {
            let outcome = engine.test(request);
            engine.or_yield(outcome)
        })
    }

    fn close(&mut self, is_broken: bool) -> Result<(), OperationError> {
        self.engine(|engine| match is_broken {
            true => {
                engine.let_go();
                Ok(())
            }
            false => engine.close(),
        })
    }
}

/// `LMT_ANY_PEER` of the header.
///
/// cbindgen:ignore
pub const ANY_PEER: lmt_peer = lmt_peer { owner: 0, number: u64::MAX };

/// `LMT_REQUEST_NULL` of the header.
///
/// cbindgen:ignore
pub const NO_REQUEST: lmt_request = lmt_request { owner: 0, number: 0 };

/// `LMT_NO_INDEX` of the header.
///
/// cbindgen:ignore
pub const NO_INDEX: usize = usize::MAX;

/// A device layer, with what carries its packets.
pub struct DeviceLayerObject {
    number: Number,
    pub inner: DeviceLayer,
    pub port: CTransport,
    pub spare_announcement: Spare<Announcement>,
    pub spare_withdrawal: Spare<Withdrawal>,
}

impl DeviceLayerObject {
    pub const fn new(number: Number, inner: DeviceLayer, mut port: CTransport) -> Self {
        port.owner = number;
        Self { number, inner, port, spare_announcement: None, spare_withdrawal: None }
    }
}

impl Side for DeviceLayerObject {
    type Handle = lmt_device;

    #[inline]
    fn table() -> &'static Table<Box<Self>> {
        &DEVICE_LAYERS
    }

    #[inline]
    fn number(&self) -> Number {
        self.number
    }

    fn address(&self) -> Address {
        self.inner.address().clone()
    }

    fn insert_peer(&mut self, address: &Address) -> Result<PeerId, OperationError> {
        self.inner.insert_peer(address)
    }

    fn explain(&self, peer: PeerId, message: &Question) -> Result<Explanation, OperationError> {
        self.inner.explain(peer, message)
    }

    #[inline]
    fn test(&mut self, request: RequestId) -> Option<Outcome> {
        self.inner.test(request)
    }

    fn close(&mut self, _is_broken: bool) -> Result<(), OperationError> {
        // It makes no progress anyhow.
        self.inner.close()
    }
}

/// What belongs to an endpoint or a device layer, and has a handle of its own.
#[derive(Debug)]
pub struct ChildObject<T> {
    pub owner: Number,
    pub inner: T,
}

impl<T> Table<ChildObject<T>> {
    /// Takes out what was taken from the endpoint or device layer `owner`.
    ///
    /// # Errors
    /// As [`Table::take`], or it is another's.
    pub fn take_of(&self, number: Number, owner: Number) -> Result<T, Error> {
        let out = self.take_if(number, |belonging| match belonging.owner == owner {
            true => Ok(()),
            false => Err(Error::new(
                LMT_ERR_FOREIGN_MESSAGE,
                "this was taken from another endpoint or device layer; give it back there",
            )),
        });
        Ok(out?.object.inner)
    }

    /// Takes one out to be given up.
    ///
    /// # Errors
    /// As [`Table::take`].
    pub fn give_up(&self, number: Number) -> Result<(), Error> {
        self.take(number).map(drop)
    }

    /// A place for what comes: that of `spare`, or a new one.
    ///
    /// # Errors
    /// As [`Table::reserve`].
    pub fn keep_place(&'static self, spare: &mut Spare<T>) -> Result<(), Error> {
        if spare.is_none() {
            *spare = Some(self.reserve()?);
        }
        Ok(())
    }

    /// Takes one in, at the place that was kept for it.
    ///
    /// # Errors
    /// None was kept, and there is none.
    pub fn take_in(&'static self, spare: &mut Spare<T>, owner: Number, inner: T) -> Result<Number, Error> {
        let place = spare.take().map_or_else(|| self.reserve(), Ok)?;
        Ok(place.fill(ChildObject { owner, inner }))
    }
}

/// The group in which a launcher has started this process.
///
/// # Errors
/// There is none, or its variables contradict each other.
pub fn group() -> Result<Group, Error> {
    match Group::from_env() {
        Ok(Some(group)) => Ok(group),
        Ok(None) => Err(Error::new(
            LMT_ERR_NO_GROUP,
            "no launcher has started this process (LMT_RANK is not set); start it by `lmt run -n RANKS -- PROGRAM`",
        )),
        Err(error) => Err(Error::new(LMT_ERR_CONFIGURATION, error.to_string())),
    }
}
