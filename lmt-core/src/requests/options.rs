//! How a message is to be sent.

use crate::selection::Hints;

/// When a send is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SendMode {
    /// When its buffer may be used again: at once, or when the receiver has looked for
    /// messages, or when it is matched, by the way that the message takes. Two processes
    /// that both send before they receive may wait for each other beyond
    /// `inbox_eager_max_bytes`, though the message is short enough for cells: these may
    /// have run out.
    #[default]
    Standard,
    /// When the message is matched by a receive, too.
    Synchronous,
}

/// How a message is to be sent: when the send is complete, and what the caller
/// tells of the message. A [`SendMode`] alone will do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// When the send is complete.
    pub mode: SendMode,
    /// What helps to choose the way.
    pub hints: Hints,
}

impl From<SendMode> for SendOptions {
    fn from(mode: SendMode) -> Self {
        Self { mode, ..Self::default() }
    }
}

impl From<Hints> for SendOptions {
    fn from(hints: Hints) -> Self {
        Self { hints, ..Self::default() }
    }
}
