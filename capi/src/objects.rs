//! What stands behind the handles.

use lmt::door::{Announcement, Door, Withdrawal};
use lmt::launch::Group;
use lmt::{EndpointId, Engine, Message, OperationError, PeerId, RequestId, Source, Status};

use crate::error::Error;
use crate::handle::{Kind, Number, Table};
use crate::port::CPort;
use crate::types::{lmt_peer, lmt_request, lmt_status};

pub static OPTIONS: Table<Options> = Table::new(Kind::Options);
pub static ENDPOINTS: Table<Box<Endpoint>> = Table::new(Kind::Endpoint);
pub static DOORS: Table<Box<DoorObject>> = Table::new(Kind::Door);
pub static MESSAGES: Table<Taken<Message>> = Table::new(Kind::Message);
pub static ANNOUNCEMENTS: Table<Taken<Announcement>> = Table::new(Kind::Announcement);
pub static WITHDRAWALS: Table<Taken<Withdrawal>> = Table::new(Kind::Withdrawal);

/// Settings, as they were made; each endpoint applies them anew.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub id: Option<EndpointId>,
    pub settings: Vec<(String, lmt::keys::Value)>,
    pub statistics: Option<bool>,
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

/// An endpoint.
pub struct Endpoint {
    /// Its own handle, by which its peers and requests are told from others'.
    pub number: Number,
    pub inner: lmt::Endpoint,
    /// Whether senders were asked to ring and not yet told that they need not.
    pub is_sleeping: bool,
}

impl Endpoint {
    /// Calls `f` with the engine.
    #[allow(unsafe_code)] // The engine itself is lent.
    #[inline]
    pub fn engine<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        // SAFETY: the closures of this crate call methods of the engine and put no
        // other in its place (each says `engine.method(...)`); nor does this crate
        // open scopes.
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

    /// From whom a receive takes messages.
    #[inline]
    pub fn source(&self, peer: lmt_peer) -> Result<Source, Error> {
        if peer == ANY_PEER { Ok(Source::Any) } else { Ok(Source::Peer(peer_of(self.number, peer)?)) }
    }
}

/// `LMT_ANY_PEER` of the header.
///
/// cbindgen:ignore
pub const ANY_PEER: lmt_peer = lmt_peer { owner: 0, number: u64::MAX };

/// A door, with what carries its packets.
pub struct DoorObject {
    pub number: Number,
    pub inner: Door,
    pub port: CPort,
}

/// What belongs to an endpoint or a door, and has a handle of its own.
pub struct Taken<T> {
    pub owner: Number,
    pub inner: T,
}

/// A peer as C names it.
#[inline]
pub const fn name_of(owner: Number, peer: PeerId) -> lmt_peer {
    lmt_peer { owner, number: peer.to_raw() }
}

/// The peer that C names.
///
/// # Errors
/// It is another's.
#[inline]
pub fn peer_of(owner: Number, peer: lmt_peer) -> Result<PeerId, Error> {
    if peer.owner == owner {
        return Ok(PeerId::from_raw(peer.number));
    }
    Err(OperationError::UnknownPeer.into())
}

/// An operation as C names it.
#[inline]
pub const fn handle_of(owner: Number, request: RequestId) -> lmt_request {
    lmt_request { owner, number: request.to_raw() }
}

/// The operation that C names.
///
/// # Errors
/// It is another's, or none.
#[inline]
pub fn request_of(owner: Number, request: lmt_request) -> Result<RequestId, Error> {
    if request.owner == owner {
        return Ok(RequestId::from_raw(request.number));
    }
    Err(OperationError::UnknownRequest.into())
}

/// What C is told of an operation that has ended, if there is something to tell.
#[inline]
pub fn status_of(owner: Number, result: &Result<Status, OperationError>) -> Option<lmt_status> {
    match *result {
        Ok(Status { peer, tag, bytes, .. }) => {
            Some(lmt_status { peer: name_of(owner, peer), tag, bytes, message_bytes: bytes })
        }
        Err(OperationError::Truncated { peer, tag, message_bytes, received_bytes, .. }) => {
            Some(lmt_status { peer: name_of(owner, peer), tag, bytes: received_bytes, message_bytes })
        }
        Err(_) => None,
    }
}

/// The group in which a launcher has started this process.
///
/// # Errors
/// There is none, or its variables contradict each other.
pub fn group() -> Result<Group, Error> {
    use crate::code::lmt_code::{LMT_ERR_CONFIGURATION, LMT_ERR_NO_GROUP};
    match Group::from_env() {
        Ok(Some(group)) => Ok(group),
        Ok(None) => Err(Error::new(
            LMT_ERR_NO_GROUP,
            "no launcher has started this process (LMT_RANK is not set); start it by `lmt run -n RANKS -- PROGRAM`",
        )),
        Err(error) => Err(Error::new(LMT_ERR_CONFIGURATION, error.to_string())),
    }
}
