//! What the environment tells an endpoint (`LMT_*`).

use lmt_core::config::{Config, ConfigError, KEYS};
use lmt_core::mechanisms::Mechanisms;

use crate::list::register_all;

/// What users may set that is no key: where the keys' values come from, and
/// whether counters are printed at the end.
const OTHERS: [&str; 2] = ["LMT_CONFIG", "LMT_STATS"];

/// All variables that lmt reads: those of the keys, of the endpoint's and of
/// each mechanism's, a few more that users may set, and what the launcher sets
/// for its ranks. One that begins with `LMT_` and is not among them is a slip.
///
/// ```
/// assert!(lmt::environment_variables().contains(&"LMT_MECHANISM"));
/// ```
pub fn environment_variables() -> Vec<&'static str> {
    let mut mechanisms = Mechanisms::new();
    register_all(&mut mechanisms);
    let of_mechanisms = mechanisms.keys().into_iter().flat_map(|(_, keys)| keys);
    let of_keys = KEYS.iter().chain(of_mechanisms).filter_map(|key| key.variable);
    let mut all: Vec<&str> = of_keys.chain(OTHERS).chain(crate::launch::VARIABLES).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Applies the environment to a configuration: `LMT_MECHANISM` (a list with
/// commas, or `auto`), `LMT_EAGER_MAX` (bytes), `LMT_SOCKET_DIR` (a folder) and
/// `LMT_CONNECT_TIMEOUT_MS`.
///
/// # Errors
/// A variable whose value cannot be read: which, and what it should be.
pub fn config_from_env(mut config: Config) -> Result<Config, ConfigError> {
    if let Some(names) = read("LMT_MECHANISM")?
        && names != "auto"
    {
        config.mechanisms = Some(names.split(',').map(|n| n.trim().to_owned()).collect());
    }
    if let Some(bytes) = number("LMT_EAGER_MAX", "a number of bytes, as in LMT_EAGER_MAX=4096")? {
        config.eager_max_bytes = bytes;
    }
    if let Some(time) = number("LMT_CONNECT_TIMEOUT_MS", "a number of milliseconds")? {
        config.connect_timeout_ms = time;
    }
    if let Some(folder) = std::env::var_os("LMT_SOCKET_DIR").filter(|f| !f.is_empty()) {
        config.socket_dir = Some(folder.into());
    }
    Ok(config)
}

fn read(name: &'static str) -> Result<Option<String>, ConfigError> {
    match std::env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(text)) => Err(ConfigError::Variable {
            name: name.to_owned(),
            value: text.to_string_lossy().into_owned(),
            rule: "plain text".to_owned(),
        }),
    }
}

fn number(name: &'static str, rule: &'static str) -> Result<Option<u64>, ConfigError> {
    let Some(value) = read(name)? else { return Ok(None) };
    value.parse().map(Some).map_err(|_| ConfigError::Variable {
        name: name.to_owned(),
        value,
        rule: rule.to_owned(),
    })
}
