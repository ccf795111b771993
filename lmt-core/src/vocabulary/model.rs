//! Who of the two processes moves the bytes of a message, and what a mechanism
//! reaches by that.

use serde::{Deserialize, Serialize};

/// Who of the two processes moves the bytes (knem-jpdc, section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Model {
    /// The receiver copies out of the sender's memory.
    Get = 1,
    /// The sender copies into the receiver's memory.
    Put = 2,
    /// Both take part.
    Cooperative = 3,
    /// The receiver copies from the front and the sender from the back, each
    /// while it has nothing better to do, until they meet ([`crate::both_ends`]).
    Both = 4,
    /// Both take part, and the sender begins before it hears of the receiver.
    Stream = 5,
}

impl Model {
    /// The model with this number on the wire, if there is one.
    pub const fn from_wire(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Get),
            2 => Some(Self::Put),
            3 => Some(Self::Cooperative),
            4 => Some(Self::Both),
            5 => Some(Self::Stream),
            _ => None,
        }
    }

    /// All models.
    pub const ALL: [Self; 5] = [Self::Get, Self::Put, Self::Cooperative, Self::Both, Self::Stream];

    /// The name under which users know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Cooperative => "cooperative",
            Self::Both => "both",
            Self::Stream => "stream",
        }
    }

    /// Whether both ends see by what they share that the message is whole, so
    /// that each leaves it ([`crate::mechanism::SharedCompletion`]) and mostly no packet has
    /// to say so.
    pub const fn is_left(self) -> bool {
        matches!(self, Self::Both | Self::Stream)
    }

    /// Whether the receiver reads the sender's memory, at least in part.
    pub const fn reads_sender(self) -> bool {
        matches!(self, Self::Get | Self::Both)
    }

    /// The model of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Which memory a mechanism copies from and to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Reach {
    /// Any.
    #[default]
    AnyMemory,
    /// Of the other end only its shared buffers ([`crate::region::shared_buffer`]): a
    /// receiver gets from one, a sender puts into one, and both copy where both
    /// ends are such. The memory of who copies alone is any.
    SharedBuffers,
}

/// Whether the memory of the two ends of a message is in shared buffers
/// ([`crate::region::shared_buffer`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct SharedEnds {
    /// The sender's.
    pub sender: bool,
    /// The receiver's, as far as its sender knows.
    pub receiver: bool,
}

impl Reach {
    /// Whether a message between such ends can go by this model.
    pub const fn allows(self, model: Model, ends: SharedEnds) -> bool {
        match (self, model) {
            (Self::AnyMemory, _) => true,
            (Self::SharedBuffers, Model::Get) => ends.sender,
            (Self::SharedBuffers, Model::Put) => ends.receiver,
            (Self::SharedBuffers, Model::Cooperative | Model::Both | Model::Stream) => {
                ends.sender && ends.receiver
            }
        }
    }
}

/// Which end of a message this process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Role {
    /// The message's bytes are here.
    Sender,
    /// They are to arrive here.
    Receiver,
}
