//! What an endpoint can be told, with units, defaults and their reasons.

use serde::{Deserialize, Serialize};

/// Sizes, bounds and times of one endpoint.
///
/// ```
/// let config = lmt_core::config::Config { eager_max_bytes: 4096, ..Default::default() };
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The longest message that travels in inbox cells, in bytes; longer ones
    /// are announced and moved by a mechanism. Default 4096: one cell.
    pub eager_max_bytes: u64,
    /// Cells of this endpoint's inbox, a power of two. Default 128: half a MiB
    /// with the default cells, and two for each of 64 senders.
    pub inbox_cells: u32,
    /// Payload of one cell, in bytes, a multiple of 64. Default 4096.
    pub cell_bytes: u32,
    /// The most peers that an endpoint knows, at most 65535; each takes a
    /// cache line of its segment. Default 1024.
    pub max_peers: u32,
    /// Bytes of unexpected messages kept for one sender before it is held
    /// back. Default 1 MiB.
    pub unexpected_max_bytes: u64,
    /// Messages that wait in this process for one peer whose inbox is full or
    /// that is not connected yet, before a send says WouldBlock. Default 1024.
    pub pending_max_messages: u32,
    /// How long a peer may take to appear and answer before an operation with
    /// it fails, in milliseconds. Default 10 000.
    pub connect_timeout_ms: u64,
    /// How long closing waits for what is still to be sent, in milliseconds.
    /// Default 1000.
    pub close_timeout_ms: u64,
    /// The most bytes one transfer moves before others get their turn.
    /// Default 1 MiB: under 100 us at memory speed.
    pub quota_bytes: u64,
    /// How often a waiting endpoint looks for messages before it yields.
    /// Default 50 000: about a millisecond, so that whoever waits for a copy of
    /// some MiB is awake when it is done; a wake-up costs some 20 us.
    pub spins: u32,
    /// How often it then yields its core before it sleeps. Default 1000.
    pub yields: u32,
    /// Peers of other users are refused unless this is set. Default false.
    pub allow_other_users: bool,
    /// Folder for the listening socket; the abstract namespace when absent.
    pub socket_dir: Option<std::path::PathBuf>,
    /// Only these mechanisms are used, in this order; all when absent.
    pub mechanisms: Option<Vec<String>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            eager_max_bytes: 4096,
            inbox_cells: 128,
            cell_bytes: 4096,
            max_peers: 1024,
            unexpected_max_bytes: 1 << 20,
            pending_max_messages: 1024,
            connect_timeout_ms: 10_000,
            close_timeout_ms: 1000,
            quota_bytes: 1 << 20,
            spins: 50_000,
            yields: 1000,
            allow_other_users: false,
            socket_dir: None,
            mechanisms: None,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number is outside what works.
    #[error("{key} is {value}; it must be {rule}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// What it was set to.
        value: u64,
        /// What it must be.
        rule: &'static str,
    },
    /// An environment variable cannot be read.
    #[error("the environment variable {name} is `{value}`; it must be {rule}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What it holds.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
}

impl Config {
    /// Checks every number.
    ///
    /// # Errors
    /// The first key whose value cannot work, and what would.
    pub fn check(&self) -> Result<(), ConfigError> {
        let checks = [
            (
                "inbox_cells",
                u64::from(self.inbox_cells),
                self.inbox_cells.is_power_of_two() && (8..=65536).contains(&self.inbox_cells),
                "a power of two from 8 to 65536",
            ),
            (
                "cell_bytes",
                u64::from(self.cell_bytes),
                self.cell_bytes.is_multiple_of(64) && (512..=1 << 20).contains(&self.cell_bytes),
                "a multiple of 64 from 512 to 1048576",
            ),
            ("eager_max_bytes", self.eager_max_bytes, self.eager_max_bytes <= 1 << 20, "at most 1048576"),
            ("max_peers", u64::from(self.max_peers), (1..=65535).contains(&self.max_peers), "1 to 65535"),
            (
                "unexpected_max_bytes",
                self.unexpected_max_bytes,
                self.unexpected_max_bytes >= 65536,
                "at least 65536",
            ),
            (
                "pending_max_messages",
                u64::from(self.pending_max_messages),
                self.pending_max_messages >= 1,
                "at least 1",
            ),
            ("quota_bytes", self.quota_bytes, self.quota_bytes >= 4096, "at least 4096"),
        ];
        for (key, value, good, rule) in checks {
            if !good {
                return Err(ConfigError::OutOfRange { key, value, rule });
            }
        }
        Ok(())
    }
}
