//! Plain messages (fi_msg(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::c_void;

use lmt::buffer::Access;
use lmt::{Label, TagMatch, Wanted};

use super::calls::{self, message_table};
use crate::abi::endpoint::{FidEp, Msg, OpsMsg};
use crate::abi::{FiAddr, flags};
use crate::border;
use crate::state::spaces::PLAIN;

/// They have no tag.
const fn label() -> Label {
    Label { tag: 0, space: PLAIN, immediate: None }
}

const fn wanted() -> Wanted {
    Wanted { space: PLAIN, tags: TagMatch::any() }
}

message_table!(OpsMsg, Msg, label(), wanted());
