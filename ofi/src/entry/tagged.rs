//! Tagged messages (fi_tagged(3)).
#![allow(unsafe_code)] // Called from C.

use std::ffi::c_void;

use lmt::buffer::Access;
use lmt::{Label, TagMatch, Wanted};

use super::calls::{self, message_table};
use crate::abi::endpoint::{FidEp, OpsTagged};
use crate::abi::tagged::MsgTagged;
use crate::abi::{FiAddr, flags};
use crate::border;
use crate::state::spaces::TAGGED;

const fn label(tag: u64) -> Label {
    Label { tag, space: TAGGED, immediate: None }
}

const fn wanted(tag: u64, ignore: u64) -> Wanted {
    Wanted { space: TAGGED, tags: TagMatch { tag, ignore } }
}

message_table!(OpsTagged, MsgTagged, label(tag), wanted(tag, ignore));
