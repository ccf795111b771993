//! How an endpoint is set up: identity, configuration, mechanisms.

use std::sync::Arc;

use lmt_core::config::{Config, ConfigError};
use lmt_core::config_key::Value;
use lmt_core::device::DeviceLayer;
use lmt_core::endpoint::{CreateError, Engine};
use lmt_core::identity::EndpointId;
use lmt_core::mechanism::{Lmt, Mechanisms};
use lmt_selector::configuration::Configuration;

use crate::configuration::{Change, EndpointParts, Request, changing, setting, setting_to};
use crate::endpoint::Endpoint;
use crate::stats;

/// Sets up an [`Endpoint`].
///
/// ```
/// let endpoint = lmt::Endpoint::builder()
///     .configure(|config| config.eager_max_bytes = 2048)
///     .build()?;
/// assert_eq!(endpoint.config().eager_max_bytes, 2048);
/// # Ok::<(), lmt::CreateError>(())
/// ```
pub struct EndpointBuilder {
    id: Option<EndpointId>,
    config: Option<Config>,
    changes: Vec<Change>,
    mechanisms: Mechanisms,
    with_default_mechanisms: bool,
    statistics: Option<bool>,
}

impl Endpoint {
    /// An endpoint with a random identity, configured by the environment, the
    /// user's files and the defaults ([`crate::configuration`]).
    ///
    /// # Errors
    /// [`CreateError`] in one sentence: memory, sockets or a setting that
    /// cannot work.
    pub fn new() -> Result<Self, CreateError> {
        Self::builder().build()
    }

    /// An endpoint to be configured.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::new()
    }
}

impl EndpointBuilder {
    fn new() -> Self {
        Self {
            id: None,
            config: None,
            changes: Vec::new(),
            mechanisms: Mechanisms::new(),
            with_default_mechanisms: true,
            statistics: None,
        }
    }

    /// The identity, for instance a member of a launcher's group; random when
    /// not given. No two endpoints of a machine may have the same.
    #[must_use]
    pub fn id(mut self, id: EndpointId) -> Self {
        self.id = Some(id);
        self
    }

    /// What the program wants otherwise than [`Config::default`]: that counts as
    /// an explicit call. Keys that it leaves at their default keep what
    /// environment and files say; [`EndpointBuilder::set`] sets those, too. Rules
    /// hold all the same.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Changes the configuration; an explicit call outranks the environment and
    /// files. It speaks of what it changes: a key that already had the value does
    /// not count as called for, and may lose to a rule of a file.
    /// [`EndpointBuilder::set`] counts whatever the value was.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut Config) + 'static) -> Self {
        self.changes.push(changing(change));
        self
    }

    /// Sets one key of [`lmt_core::config::KEYS`], which outranks the environment
    /// and files, whatever they say.
    ///
    /// ```
    /// use lmt::config_key::Value;
    ///
    /// let builder = lmt::Endpoint::builder().set("eager_max_bytes", Value::Number(4096))?;
    /// assert_eq!(builder.build()?.config().eager_max_bytes, 4096);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such key, or it cannot have that value.
    pub fn set(mut self, key: &str, value: Value) -> Result<Self, ConfigError> {
        self.changes.push(setting_to(key, value)?);
        Ok(self)
    }

    /// Only these mechanisms, in this order.
    #[must_use]
    pub fn mechanisms(mut self, names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        self.changes.push(setting("mechanisms", move |config| config.mechanisms = Some(names)));
        self
    }

    /// Adds a mechanism that is not in this crate's list, ahead of the list. It
    /// goes before what the built-in rules name, and no file and no variable
    /// sets anything of it.
    #[must_use]
    pub fn register<M: Lmt>(mut self, mechanism: M) -> Self {
        self.mechanisms.register(mechanism);
        self
    }

    /// Whether the endpoint, or the device layer, prints at its end what it has moved, whatever
    /// `LMT_STATS` says. See `docs/explain.md`.
    #[must_use]
    pub const fn statistics(mut self, wanted: bool) -> Self {
        self.statistics = Some(wanted);
        self
    }

    /// Leaves this crate's list of mechanisms out.
    #[must_use]
    pub fn without_default_mechanisms(mut self) -> Self {
        self.with_default_mechanisms = false;
        self
    }

    /// The engine below the safe interface, for embedders that own their
    /// buffers.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn build_engine(self) -> Result<Engine, CreateError> {
        self.build_both().map(|(engine, _)| engine)
    }

    /// The engine, and what it is configured by.
    fn build_both(self) -> Result<(Engine, Arc<Configuration>), CreateError> {
        let statistics_place = self.statistics_place()?;
        let (id, EndpointParts { config, mechanisms, policy, configuration }) = self.parts()?;
        let mut engine = Engine::with_policy(id, config, mechanisms, Box::new(policy))?;
        if let Some(place) = statistics_place {
            engine.at_end(move |eager, mechanisms| {
                stats::write(&place, id, Some(eager), mechanisms);
            });
        }
        Ok((engine, configuration))
    }

    /// The endpoint.
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn build(self) -> Result<Endpoint, CreateError> {
        self.build_both().map(|(engine, configuration)| Endpoint::configured(engine, configuration))
    }

    /// For an MPI device with its own packets and its own
    /// matching ([`crate::device`]).
    ///
    /// # Errors
    /// [`CreateError`].
    pub fn build_device_layer(self) -> Result<DeviceLayer, CreateError> {
        let statistics_place = self.statistics_place()?;
        let (id, EndpointParts { config, mechanisms, policy, .. }) = self.parts()?;
        let mut layer = DeviceLayer::with_policy(id, config, mechanisms, Box::new(policy.without_eager()))?;
        if let Some(place) = statistics_place {
            layer.at_end(move |mechanisms| stats::write(&place, id, None, mechanisms));
        }
        Ok(layer)
    }

    /// Where statistics go at the end, if anywhere.
    fn statistics_place(&self) -> Result<Option<stats::Place>, CreateError> {
        match self.statistics {
            Some(wanted) => Ok(wanted.then_some(stats::Place::StandardError)),
            None => stats::place(),
        }
    }

    fn id_or_random(id: Option<EndpointId>) -> Result<EndpointId, CreateError> {
        id.map_or_else(crate::random_id, Ok)
    }

    fn parts(self) -> Result<(EndpointId, EndpointParts), CreateError> {
        let Self { id, config, changes, mechanisms, with_default_mechanisms, .. } = self;
        let made =
            Request { config, changes, own: mechanisms, has_default_mechanisms: with_default_mechanisms }
                .make()?;
        Ok((Self::id_or_random(id)?, made))
    }
}
