//! What is configured, and the policy that comes of it.
//!
//! The files, the environment and the defaults are read by [`lmt_selector`];
//! this module tells it of the mechanisms of this crate, applies what it has
//! found, and notes what the program's own calls change.

use std::sync::{Arc, OnceLock};

use lmt_core::config::{Config, ConfigError, KEYS};
use lmt_core::config_key::Value;
use lmt_core::endpoint::CreateError;
use lmt_core::mechanism::Mechanisms;
use lmt_core::selection::Source;
use lmt_selector::config::{ConfigFailure, Known, Sources};
use lmt_selector::configuration::Configuration;
use lmt_selector::policy::{MachineSource, RulePolicy};
use lmt_selector::topology::Machine;

/// The text of the built-in defaults: `configs/default.toml` of the sources.
pub const DEFAULTS: &str = include_str!("../default.toml");

/// Where this process's configuration is read from: its environment, its user's
/// folder, the built-in defaults, and the mechanisms of this crate.
///
/// ```
/// let sources = lmt::configuration::sources();
/// assert!(sources.known.names().contains(&"shm"));
/// ```
pub fn sources() -> Sources {
    Sources::of_this_process(DEFAULTS, Known::of(&mut default_mechanisms()))
        .with_other_variables(&crate::launch::VARIABLES)
}

/// Reads this process's configuration, as an endpoint does that is created now.
///
/// # Errors
/// All that is wrong with files and variables.
pub fn load() -> Result<Configuration, ConfigFailure> {
    lmt_selector::config::load(&sources())
}

/// All variables that lmt reads: those of the keys, a few more that users may
/// set, and what the launcher sets for its ranks. One that begins with `LMT_`
/// and is not among them is a slip.
///
/// ```
/// assert!(lmt::configuration::variables().iter().any(|name| name == "LMT_MECHANISM"));
/// ```
pub fn variables() -> Vec<String> {
    let of_launcher = crate::launch::VARIABLES.map(str::to_owned);
    let mut all = lmt_selector::config::known_variables(&Known::of(&mut default_mechanisms()));
    all.extend(of_launcher);
    all.sort_unstable();
    all.dedup();
    all
}

/// The value of one of an endpoint's keys, written as in its environment variable:
/// for [`crate::EndpointBuilder::set`].
///
/// ```
/// use lmt::config_key::Value;
///
/// assert_eq!(lmt::configuration::value_of("quota_bytes", "1 MiB")?, Value::Number(1 << 20));
/// # Ok::<(), lmt::CreateError>(())
/// ```
///
/// # Errors
/// There is no such key, or it cannot have that value.
pub fn value_of(key: &str, text: &str) -> Result<Value, CreateError> {
    lmt_selector::config::value_of(key, text).map_err(|sentence| CreateError::Configuration { sentence })
}

/// The machine as hwloc describes it, or the kernel's files where there is none, read once for the
/// process. It takes some milliseconds the first time.
///
/// # Errors
/// One sentence: why it cannot be described.
pub fn machine() -> Result<Arc<Machine>, String> {
    static MACHINE: OnceLock<Result<Arc<Machine>, String>> = OnceLock::new();
    MACHINE.get_or_init(|| Machine::load().map(Arc::new).map_err(|error| error.to_string())).clone()
}

fn default_mechanisms() -> Mechanisms {
    let mut mechanisms = Mechanisms::new();
    crate::list::register_all(&mut mechanisms);
    mechanisms
}

/// A change of the configuration by the program.
pub(crate) type Change = Box<dyn FnOnce(&mut Configuration)>;

/// A change of which only that counts as the program's call which is otherwise
/// than before: a closure does not tell what else it has touched.
pub(crate) fn changing(change: impl FnOnce(&mut Config) + 'static) -> Change {
    Box::new(|configuration| note_changes(configuration, change))
}

/// A change that counts as the program's call also where the key had that value
/// already.
pub(crate) fn setting(key: &'static str, change: impl FnOnce(&mut Config) + 'static) -> Change {
    Box::new(move |configuration| {
        change(&mut configuration.config);
        configuration.sources.insert(key, Source::Call);
    })
}

/// The change that sets a key of [`KEYS`].
pub(crate) fn setting_to(key: &str, value: Value) -> Result<Change, ConfigError> {
    // What one configuration takes, each takes: bounds do not depend on others.
    let mut probe = Config::default();
    probe.set(key, value.clone())?;
    let Some(key) = KEYS.iter().find(|known| known.name == key) else {
        return Err(ConfigError::UnknownKey { key: key.to_owned() });
    };
    Ok(setting(key.name, move |config| {
        let done = config.set(key.name, value);
        debug_assert!(done.is_ok(), "it was taken before: {done:?}");
    }))
}

/// What an endpoint is to be made of.
pub(crate) struct Request {
    /// The configuration that the program has given as a whole.
    pub config: Option<Config>,
    /// Changes that it makes.
    pub changes: Vec<Change>,
    /// The mechanisms that it brings.
    pub own: Mechanisms,
    /// Whether the list of this crate stands behind them.
    pub has_default_mechanisms: bool,
}

/// What an endpoint is made of.
pub(crate) struct EndpointParts {
    pub config: Config,
    pub mechanisms: Mechanisms,
    pub policy: RulePolicy,
    pub configuration: Arc<Configuration>,
}

impl Request {
    pub fn make(self) -> Result<EndpointParts, CreateError> {
        let own: Vec<&'static str> = self.own.names();
        let mut mechanisms = self.own;
        let known = if self.has_default_mechanisms {
            crate::list::register_all(&mut mechanisms);
            Known::of(&mut mechanisms)
        } else {
            // Files and variables may speak of all that there are.
            Known::of(&mut mechanisms).and(Known::of(&mut default_mechanisms()).mechanisms)
        };
        let sources =
            Sources::of_this_process(DEFAULTS, known).with_other_variables(&crate::launch::VARIABLES);
        let mut configuration = lmt_selector::config::load(&sources)
            .map_err(|failure| CreateError::Configuration { sentence: failure.to_string() })?;
        apply_settings(&configuration, &own, &mut mechanisms)?;
        if let Some(config) = self.config {
            give(&mut configuration, config);
        }
        for change in self.changes {
            change(&mut configuration);
        }
        let config = configuration.config.clone();
        let existing = mechanisms.names();
        let configuration = Arc::new(configuration);
        let policy = RulePolicy::new(Arc::clone(&configuration), MachineSource::Lazy(machine))
            .with_own_mechanisms(own)
            .with_existing_mechanisms(existing);
        Ok(EndpointParts { config, mechanisms, policy, configuration })
    }
}

/// Sets what files and environment set of mechanisms. One that the program
/// brings itself is as the program has made it: that call outranks both.
fn apply_settings(
    configuration: &Configuration,
    own: &[&'static str],
    mechanisms: &mut Mechanisms,
) -> Result<(), CreateError> {
    let names = mechanisms.names();
    for setting in &configuration.mechanisms {
        let name = setting.mechanism.as_str();
        if own.contains(&name) || !names.contains(&name) {
            continue;
        }
        mechanisms.set(name, &setting.key, setting.value.clone()).map_err(|reason| {
            let sentence = format!("{}: {name} cannot be set as it says: {reason}", setting.source);
            CreateError::Configuration { sentence }
        })?;
    }
    Ok(())
}

/// Sets what a configuration of the program's has otherwise than
/// [`Config::default`]. Of what it leaves as it is there, the program has not
/// spoken: it stays as environment and files say.
fn give(configuration: &mut Configuration, mut given: Config) {
    let default = Config::default();
    let Configuration { config, sources, .. } = configuration;
    for key in KEYS {
        if given.get(key.name) != default.get(key.name) {
            sources.insert(key.name, Source::Call);
        } else if let Some(value) = config.get(key.name) {
            let done = given.set(key.name, value);
            debug_assert!(done.is_ok(), "it was checked when it was read: {done:?}");
        }
    }
    *config = given;
}

fn note_changes(configuration: &mut Configuration, change: impl FnOnce(&mut Config)) {
    let before = configuration.config.clone();
    change(&mut configuration.config);
    for key in KEYS {
        if before.get(key.name) != configuration.config.get(key.name) {
            configuration.sources.insert(key.name, Source::Call);
        }
    }
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
