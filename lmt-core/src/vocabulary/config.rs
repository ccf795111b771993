//! What an endpoint can be told, with units, defaults and their reasons.

use serde::{Deserialize, Serialize};

use super::config_key::{Key, Kind, Value};

/// The longest message that may travel in inbox cells, in bytes: what
/// `eager_max_bytes` may be at most, and where a rule that takes cells ends at the
/// latest.
pub const EAGER_MAX_BYTES: u64 = 1 << 20;

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
    /// go by rendezvous and a mechanism moves them. Default 256 KiB: what two processes
    /// copy through a fast box sooner than announced while it is in the caches; the rules may
    /// end it before.
    pub eager_max_bytes: u64,
    /// The longest message that travels in the inbox's cells where a peer gives no
    /// fast box, if [`Self::eager_max_bytes`] is more; likewise where the cells that two
    /// processes hand each other or the peer's room for unexpected messages have run out.
    /// Default 32 KiB.
    pub inbox_eager_max_bytes: u64,
    /// Cells of this endpoint's inbox, a power of two. Default 128: half a MiB
    /// with the default cells, and two for each of 64 senders.
    pub inbox_cells: u32,
    /// Payload of one cell, in bytes, a multiple of 64. Default 4096.
    pub cell_bytes: u32,
    /// How many peers, the first to connect, get a fast box beside the inbox: a
    /// ring of their own of 692 KiB. Default 8.
    pub fast_boxes: u32,
    /// The most peers that an endpoint knows, at most 65535; each takes a
    /// cache line of its segment. Default 1024.
    pub max_peers: u32,
    /// Bytes of unexpected messages kept for one sender before it is held
    /// back, each with 256 bytes more than its own; what is more is only announced.
    /// Default 1 MiB.
    pub unexpected_max_bytes: u64,
    /// Messages that wait in this process for one peer whose inbox is full or
    /// that is not connected yet, and as many that are announced to it and not
    /// done, before a send says WouldBlock. Default 1024.
    pub pending_max_messages: u32,
    /// How long a peer may take to appear and answer before an operation with
    /// it fails, in milliseconds. Default 10 000.
    pub connect_timeout_ms: u64,
    /// How long a peer may take to answer whose endpoint is there and whose
    /// process lives, in milliseconds, if that is more than
    /// `connect_timeout_ms`. Default 0.
    pub answer_timeout_ms: u64,
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
    /// By which routines this process copies, as [`lmt_copy::Plan`] reads it.
    /// The process has one choice: that of its first endpoint. Default `auto`.
    pub copy_routine: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            eager_max_bytes: 256 << 10,
            inbox_eager_max_bytes: 32 << 10,
            inbox_cells: 128,
            cell_bytes: 4096,
            fast_boxes: 8,
            max_peers: 1024,
            unexpected_max_bytes: 1 << 20,
            pending_max_messages: 1024,
            connect_timeout_ms: 10_000,
            answer_timeout_ms: 0,
            close_timeout_ms: 1000,
            quota_bytes: 1 << 20,
            spins: 50_000,
            yields: 1000,
            allow_other_users: false,
            socket_dir: None,
            mechanisms: None,
            copy_routine: "auto".to_owned(),
        }
    }
}

/// The keys of an endpoint, in the order in which they are documented. The
/// defaults are [`Config::default`]'s.
pub const KEYS: &[Key] = &[
    Key {
        name: "eager_max_bytes",
        kind: Kind::Bytes { least: 0, most: EAGER_MAX_BYTES, multiple_of: 1 },
        variable: Some("LMT_EAGER_MAX"),
        meaning: "the longest message that travels in inbox cells; longer ones go by rendezvous and a mechanism moves them",
        reason: "through a fast box both copy sooner than announced where the buffers are in the caches, and about as soon elsewhere; what is longer gains less than it takes of the room for unexpected messages, of which one as long takes a quarter",
    },
    Key {
        name: "inbox_eager_max_bytes",
        kind: Kind::Bytes { least: 0, most: EAGER_MAX_BYTES, multiple_of: 1 },
        variable: Some("LMT_INBOX_EAGER_MAX"),
        meaning: "the limit on eager_max_bytes to a peer that gives this endpoint no fast box (fast_boxes), and while handoff cells or the peer's room for unexpected messages do not suffice",
        reason: "inbox cells take twice as long as those of a fast box: above this a mechanism is faster",
    },
    Key {
        name: "inbox_cells",
        kind: Kind::PowerOfTwo { least: 8, most: 65536 },
        variable: Some("LMT_INBOX_CELLS"),
        meaning: "cells of this endpoint's inbox",
        reason: "half a MiB with the default cells, and two cells for each of 64 senders",
    },
    Key {
        name: "cell_bytes",
        kind: Kind::Bytes { least: 512, most: 1 << 20, multiple_of: 64 },
        variable: Some("LMT_CELL_BYTES"),
        meaning: "payload of one cell",
        reason: "a page: what is longer is faster by a mechanism",
    },
    Key {
        name: "fast_boxes",
        kind: Kind::Count { least: 0, most: 64 },
        variable: Some("LMT_FAST_BOXES"),
        meaning: "how many peers, the first to connect, get a fast box: a ring of their own of 692 KiB",
        reason: "each costs memory and polling; most processes talk to few others",
    },
    Key {
        name: "max_peers",
        kind: Kind::Count { least: 1, most: 65535 },
        variable: Some("LMT_MAX_PEERS"),
        meaning: "the most peers that an endpoint knows",
        reason: "each takes a cache line of the segment, and no machine of today has more cores",
    },
    Key {
        name: "unexpected_max_bytes",
        kind: Kind::Bytes { least: 65536, most: u64::MAX, multiple_of: 1 },
        variable: Some("LMT_UNEXPECTED_MAX"),
        meaning: "bytes of unexpected messages kept for one sender before it is held back, each with 256 bytes more than its own; what is more is only announced",
        reason: "a burst of short messages fits, and a thousand senders stay within a GiB",
    },
    Key {
        name: "pending_max_messages",
        kind: Kind::Count { least: 1, most: u32::MAX as u64 },
        variable: Some("LMT_PENDING_MAX"),
        meaning: "messages that wait in this process for one peer whose inbox is full or that is not connected yet, and as many that are announced to it and not done, before a send says WouldBlock",
        reason: "enough for a burst of sends without a receive, little enough to be noticed",
    },
    Key {
        name: "connect_timeout_ms",
        kind: Kind::Milliseconds { least: 0, most: u64::MAX },
        variable: Some("LMT_CONNECT_TIMEOUT_MS"),
        meaning: "how long a peer may take to appear and answer before an operation with it fails",
        reason: "ranks of one group start within seconds of each other",
    },
    Key {
        name: "answer_timeout_ms",
        kind: Kind::Milliseconds { least: 0, most: u64::MAX },
        variable: Some("LMT_ANSWER_TIMEOUT_MS"),
        meaning: "how long a peer may take to answer whose endpoint is there and whose process lives, if that is more than connect_timeout_ms",
        reason: "who waits for peers that compute for minutes before they first communicate, as ranks of MPI programs do, sets it",
    },
    Key {
        name: "close_timeout_ms",
        kind: Kind::Milliseconds { least: 0, most: u64::MAX },
        variable: Some("LMT_CLOSE_TIMEOUT_MS"),
        meaning: "how long closing waits for what is still to be sent",
        reason: "a peer that computes polls its inbox within a second, or not soon",
    },
    Key {
        name: "quota_bytes",
        kind: Kind::Bytes { least: 4096, most: u64::MAX, multiple_of: 1 },
        variable: Some("LMT_QUOTA"),
        meaning: "the most bytes one transfer moves before others get their turn",
        reason: "under 100 us at memory speed",
    },
    Key {
        name: "spins",
        kind: Kind::Count { least: 0, most: u32::MAX as u64 },
        variable: Some("LMT_SPINS"),
        meaning: "how often a waiting endpoint polls before it yields its core after each poll; before that it yields after every 512 polls (or as many as this, if fewer), where others are found to wait too after every poll but the first, and where they compute after every 2048",
        reason: "about a millisecond, so that whoever waits for a copy of some MiB is awake when it is done; a wake-up costs some 20 us",
    },
    Key {
        name: "yields",
        kind: Kind::Count { least: 0, most: u32::MAX as u64 },
        variable: Some("LMT_YIELDS"),
        meaning: "how often it then yields its core before it sleeps",
        reason: "others get the core at once, and a sleep costs some 20 us",
    },
    Key {
        name: "allow_other_users",
        kind: Kind::Flag,
        variable: Some("LMT_ALLOW_OTHER_USERS"),
        meaning: "whether peers of other users may connect",
        reason: "a peer that may use a single copy is trusted with the whole address space",
    },
    Key {
        name: "socket_dir",
        kind: Kind::Folder,
        variable: Some("LMT_SOCKET_DIR"),
        meaning: "folder for the listening socket; the abstract namespace when there is none",
        reason: "a name in the abstract namespace goes with its process; a folder is for containers with network namespaces of their own",
    },
    Key {
        name: "mechanisms",
        kind: Kind::Mechanisms,
        variable: Some("LMT_MECHANISM"),
        meaning: "only these mechanisms are used; set by a call or the environment, in this order whatever the rules say, set in a file, in this order where no rule of a file before it speaks; a name may be a family's (the part before the first hyphen), and may say who copies (name:get, name:put, name:cooperative, name:both)",
        reason: "all that work, in the order of the rules",
    },
    Key {
        name: "copy_routine",
        kind: Kind::Copies,
        variable: Some("LMT_COPY_ROUTINE"),
        meaning: "by which routines this process copies bytes in user space; the first endpoint's holds for the process (docs/copy.md)",
        reason: "the C library's, but AVX2 for aliased copies of up to 256 KiB, which take 16 to 25 times as long by `rep movsb`; `lmt tune` finds what gains less",
    },
];

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
        value: Value,
        /// What it must be.
        rule: String,
    },
    /// There is no such key.
    #[error("there is no key `{key}`; `lmt config --document` lists the keys")]
    UnknownKey {
        /// What was asked for.
        key: String,
    },
}

impl Config {
    /// Checks every number.
    ///
    /// # Errors
    /// The first key whose value cannot work, and what would.
    pub fn check(&self) -> Result<(), ConfigError> {
        for key in KEYS {
            let Some(value) = self.get(key.name) else { continue };
            key.check(&value).map_err(|rule| ConfigError::OutOfRange { key: key.name, value, rule })?;
        }
        Ok(())
    }

    /// The value of a key; `None` when there is no such key.
    pub fn get(&self, name: &str) -> Option<Value> {
        let number = |number: u64| Some(Value::Number(number));
        match name {
            "eager_max_bytes" => number(self.eager_max_bytes),
            "inbox_eager_max_bytes" => number(self.inbox_eager_max_bytes),
            "inbox_cells" => number(self.inbox_cells.into()),
            "cell_bytes" => number(self.cell_bytes.into()),
            "fast_boxes" => number(self.fast_boxes.into()),
            "max_peers" => number(self.max_peers.into()),
            "unexpected_max_bytes" => number(self.unexpected_max_bytes),
            "pending_max_messages" => number(self.pending_max_messages.into()),
            "connect_timeout_ms" => number(self.connect_timeout_ms),
            "answer_timeout_ms" => number(self.answer_timeout_ms),
            "close_timeout_ms" => number(self.close_timeout_ms),
            "quota_bytes" => number(self.quota_bytes),
            "spins" => number(self.spins.into()),
            "yields" => number(self.yields.into()),
            "allow_other_users" => Some(Value::Flag(self.allow_other_users)),
            "socket_dir" => Some(match &self.socket_dir {
                Some(folder) => Value::Text(folder.to_string_lossy().into_owned()),
                None => Value::Absent,
            }),
            "copy_routine" => Some(Value::Text(self.copy_routine.clone())),
            "mechanisms" => Some(self.mechanisms.clone().map_or(Value::Absent, Value::Names)),
            _ => None,
        }
    }

    /// Sets a key, after its kind and bounds were checked.
    ///
    /// # Errors
    /// There is no such key, or it cannot have that value.
    pub fn set(&mut self, name: &str, value: Value) -> Result<(), ConfigError> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            return Err(ConfigError::UnknownKey { key: name.to_owned() });
        };
        key.check(&value).map_err(|rule| ConfigError::OutOfRange {
            key: key.name,
            value: value.clone(),
            rule,
        })?;
        match (key.name, value) {
            ("eager_max_bytes", Value::Number(bytes)) => self.eager_max_bytes = bytes,
            ("inbox_eager_max_bytes", Value::Number(bytes)) => self.inbox_eager_max_bytes = bytes,
            // The bounds of these keys lie within 32 bits.
            ("inbox_cells", Value::Number(cells)) => self.inbox_cells = cells as u32,
            ("cell_bytes", Value::Number(bytes)) => self.cell_bytes = bytes as u32,
            ("fast_boxes", Value::Number(count)) => self.fast_boxes = count as u32,
            ("max_peers", Value::Number(peers)) => self.max_peers = peers as u32,
            ("unexpected_max_bytes", Value::Number(bytes)) => self.unexpected_max_bytes = bytes,
            ("pending_max_messages", Value::Number(messages)) => self.pending_max_messages = messages as u32,
            ("connect_timeout_ms", Value::Number(time)) => self.connect_timeout_ms = time,
            ("answer_timeout_ms", Value::Number(time)) => self.answer_timeout_ms = time,
            ("close_timeout_ms", Value::Number(time)) => self.close_timeout_ms = time,
            ("quota_bytes", Value::Number(bytes)) => self.quota_bytes = bytes,
            ("spins", Value::Number(spins)) => self.spins = spins as u32,
            ("yields", Value::Number(yields)) => self.yields = yields as u32,
            ("allow_other_users", Value::Flag(flag)) => self.allow_other_users = flag,
            ("socket_dir", Value::Text(folder)) => self.socket_dir = Some(folder.into()),
            ("socket_dir", _) => self.socket_dir = None,
            ("copy_routine", Value::Text(text)) => self.copy_routine = text,
            ("mechanisms", Value::Names(names)) => self.mechanisms = Some(names),
            ("mechanisms", _) => self.mechanisms = None,
            (name, value) => {
                let rule = key.kind.to_string();
                debug_assert!(false, "the key {name} has no field for {value:?}");
                return Err(ConfigError::OutOfRange { key: name, value, rule });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
