//! Why an endpoint, or a device layer's part of one, cannot be created, and what is
//! checked and set up for either.

use lmt_copy::Plan;
use nix::errno::Errno;

use crate::connect::ConnectError;
use crate::mechanism::{Description, Mechanisms, is_meant};
use crate::queue::GeometryError;
use crate::selection::PathName;
use crate::vocabulary::config::{Config, ConfigError};
use crate::vocabulary::error::MemoryError;
use crate::vocabulary::model::Model;

/// Why an endpoint cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// A number in the configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Sizes that make no inbox.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// Shared memory is not to be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The listening socket could not be set up.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The configuration names a mechanism that does not exist.
    #[error(
        "there is no mechanism `{name}` (see LMT_MECHANISM); `auto` takes what is best, and this build has {known}, or the first part of a name for its family"
    )]
    UnknownMechanism {
        /// The name that was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The configuration names a mechanism in a model that it does not have.
    #[error(
        "there is no path `{name}`: the model {model} is none of {mechanisms}; there are {has}, or the name without its model for what is best"
    )]
    UnknownModel {
        /// The way that was asked for.
        name: String,
        /// The mechanism, or those of the family, that the name means.
        mechanisms: String,
        /// The model that was asked for.
        model: Model,
        /// The ways that there are.
        has: String,
    },
    /// The files, the environment or what is set of a mechanism cannot be used.
    #[error("{sentence}")]
    Configuration {
        /// Where, what is wrong, and what would be right.
        sentence: String,
    },
    /// A system call was refused.
    #[error("{what} failed: {source}; {advice}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: nix::errno::Errno,
        /// What would help.
        advice: String,
    },
}

impl CreateError {
    /// What the system answered; `None` where it is the configuration or the name.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Memory(error) => Some(error.errno()),
            Self::System { source, .. } => Some(*source),
            Self::Connect(ConnectError::System { errno, .. } | ConnectError::Folder { errno, .. }) => {
                Some(Errno::from_raw(*errno))
            }
            _ => None,
        }
    }
}

/// Checks a configuration against the mechanisms that there are.
pub(crate) fn check_config(config: &Config, mechanisms: &Mechanisms) -> Result<(), CreateError> {
    config.check()?;
    let described = mechanisms.descriptions();
    config.mechanisms.iter().flatten().try_for_each(|name| check_path(name, &described))
}

/// Has this process copy as its first endpoint is configured. What a later one
/// asks for otherwise is only remarked on: copies are the process's, and every
/// routine copies the same bytes.
pub(crate) fn install_copier(config: &Config) {
    // The configuration was checked; what means nothing is as if it were auto.
    let plan = config.copy_routine.parse().unwrap_or(Plan::Auto);
    if plan == Plan::Auto && lmt_copy::installed().is_some() {
        return;
    }
    if let Err(error) = lmt_copy::install(plan.copier()) {
        tracing::warn!(copy_routine = config.copy_routine, "{error}; the key copy_routine is left out");
    }
}

/// Checks that there is the way that a name means.
fn check_path(name: &str, described: &[Description]) -> Result<(), CreateError> {
    let meant: Vec<&Description> = described.iter().filter(|one| is_meant(name, one.name)).collect();
    let join = |names: Vec<String>| names.join(", ");
    if meant.is_empty() {
        let known = join(described.iter().map(|one| one.name.to_owned()).collect());
        return Err(CreateError::UnknownMechanism { name: name.to_owned(), known });
    }
    let Some(model) = name.parse::<PathName>().ok().and_then(|way| way.model) else { return Ok(()) };
    if meant.iter().any(|one| one.models.contains(&model)) {
        return Ok(());
    }
    let ways = meant.iter().flat_map(|p| p.models.iter().map(|model| format!("{}:{model}", p.name)));
    Err(CreateError::UnknownModel {
        name: name.to_owned(),
        mechanisms: join(meant.iter().map(|one| one.name.to_owned()).collect()),
        model,
        has: join(ways.collect()),
    })
}
