//! The engines of a domain. The ids of its endpoints follow each other, so that a
//! peer that knows one of them finds the first, which has the memory regions.

use lmt::{ConnectError, CreateError, EndpointId, Engine};

use super::State;
use super::endpoint::{Endpoint, Settings};
use super::vector::{NAME_BYTES, Place};
use crate::abi::Errno;
use crate::log::{self, Subsystem};
use crate::naming::{self, Name};
use crate::refuse;

/// How long a peer may take that is there, in milliseconds: an hour.
const ANSWER_TIMEOUT_MS: u64 = 60 * 60 * 1000;

/// Where a domain's ids begin, and the first engine while no endpoint has it.
#[derive(Default)]
pub(super) struct DomainEngine {
    first: Option<EndpointId>,
    /// How many engines were made.
    made: u16,
    /// Made for a memory region before any endpoint was opened.
    spare: Option<Engine>,
    /// The number of the endpoint with the first engine.
    endpoint: Option<usize>,
}

impl std::fmt::Debug for DomainEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { first, made, spare, endpoint } = self;
        let fields = (first, made, spare.is_some(), endpoint);
        f.debug_tuple("Home").field(&fields).finish()
    }
}

impl DomainEngine {
    /// One more engine, and its number in the domain.
    ///
    /// # Errors
    /// As the system said, or [`Errno::ADDRINUSE`] of an address that another endpoint has.
    fn make(&mut self, source: Option<EndpointId>) -> Result<(Engine, u16), Errno> {
        let refused = |error: lmt::CreateError| {
            let why = format_args!("an endpoint cannot be made: {error}");
            refuse::because(Subsystem::EpCtrl, refuse::errno_of_creation(&error), why)
        };
        let number = self.made;
        let after = number.checked_add(1).ok_or_else(|| {
            let why = format_args!("65535 endpoints were made in this domain; open another domain");
            refuse::because(Subsystem::EpCtrl, Errno::NOMEM, why)
        })?;
        let first = match self.first.or(source) {
            Some(first) => first,
            None => lmt::random_id().map_err(refused)?,
        };
        // Before the first peer takes descriptors.
        lmt::launch::raise_open_files();
        let engine = lmt::Endpoint::builder()
            .id(first.member(number.into()))
            .configure(raise_answer_timeout)
            .build_engine()
            .map_err(|error| match error {
                CreateError::Connect(ConnectError::NameInUse { .. }) => {
                    let why = format_args!("an endpoint cannot be made: {error}");
                    refuse::because(Subsystem::EpCtrl, Errno::ADDRINUSE, why)
                }
                error => refused(error),
            })?;
        // Ranks are started by an MPI's launcher, side by side.
        lmt::launch::admit_siblings();
        (self.first, self.made) = (Some(first), after);
        Ok((engine, number))
    }
}

/// A rank may compute, or wait for its launcher, before it first makes progress.
fn raise_answer_timeout(config: &mut lmt::Config) {
    if config.answer_timeout_ms == 0 {
        config.answer_timeout_ms = ANSWER_TIMEOUT_MS;
    }
}

impl State {
    /// Opens an endpoint; gives its number and the name under which others reach it. A
    /// domain's first has the address `source`, if one is given, the others' follow.
    ///
    /// # Errors
    /// As the system said, or [`Errno::ADDRINUSE`], with a sentence in the log, or
    /// [`Errno::INVAL`]: that is no address.
    pub fn open_endpoint(
        &mut self,
        settings: Settings,
        source: Option<&[u8]>,
    ) -> Result<(usize, Name), Errno> {
        let source = source.map(naming::checked).transpose()?;
        let wanted = source.map(|name| Place::from_name(&name)).transpose()?;
        let (engine, number) = match self.home.spare.take() {
            Some(engine) => (engine, 0),
            None => self.home.make(wanted.as_ref().map(Place::home_id))?,
        };
        let place = Place { address: engine.address().clone(), number };
        let name = match place.to_name() {
            Ok(name) => name,
            Err(error) => {
                if number == 0 {
                    // The domain's memory regions are with it.
                    self.home.spare = Some(engine);
                }
                let why = format_args!(
                    "LMT_SOCKET_DIR is too long for an endpoint's name of {NAME_BYTES} bytes; choose a shorter path"
                );
                return Err(refuse::because(Subsystem::EpCtrl, error, why));
            }
        };
        let at = self.endpoints.insert(Endpoint::new(engine, settings));
        if number == 0 {
            self.home.endpoint = Some(at);
        }
        Ok((at, name))
    }

    /// The engine that has the domain's memory regions; made if there is none yet.
    pub(super) fn home(&mut self) -> Result<&mut Engine, Errno> {
        if self.home.made == 0 {
            self.home.spare = Some(self.home.make(None)?.0);
        }
        let of_endpoint = self.home.endpoint.and_then(|at| self.endpoints.get_mut(at));
        match (of_endpoint, &mut self.home.spare) {
            (Some(endpoint), _) => Ok(endpoint.engine_mut()),
            (None, Some(engine)) => Ok(engine),
            (None, None) => {
                log::warn(
                    Subsystem::Mr,
                    format_args!(
                        "the domain's first endpoint is closed, which had its memory regions; keep it open"
                    ),
                );
                Err(Errno::OPBADSTATE)
            }
        }
    }

    /// The endpoint with this number is closed.
    pub(super) fn release_domain_engine(&mut self, number: usize) {
        if self.home.endpoint == Some(number) {
            self.home.endpoint = None;
        }
    }
}
