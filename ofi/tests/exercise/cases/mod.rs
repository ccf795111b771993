//! The cases. Each is run by both processes; who is which, [`Side::is_first`] says.

mod addresses;
mod counters;
mod events;
mod messages;
mod objects;
mod queues;
mod receives;
mod remote;
mod waiting;

use crate::link::Link;
use crate::side::{Form, Kind, Sent, Side, Wanted};
use lmt_fi::abi::ADDR_UNSPEC;

/// A case takes a side, and gives its link back when all was right.
pub type Case = fn(Side) -> Link;

pub const CASES: &[(&str, Case)] = &[
    ("getinfo", objects::getinfo),
    ("getinfo-names", objects::named),
    ("close-order", objects::close_order),
    ("enable", objects::enable),
    ("names", objects::names),
    ("options", objects::options),
    ("operation-flags", objects::operation_flags),
    ("av-table", addresses::table),
    ("av-map", addresses::map),
    ("av-lookup", addresses::look_up),
    ("av-strings", addresses::strings),
    ("av-sync-errors", addresses::sync_errors),
    ("cq-formats", queues::formats),
    ("cq-selective", queues::selective),
    ("cq-errors", queues::errors),
    ("cq-many", queues::many),
    ("cq-timeout", queues::timeout),
    ("cq-wait", queues::wait),
    ("cq-signal", queues::signal),
    ("counters", counters::numbers),
    ("counter-wait", counters::wait),
    ("counter-errors", counters::errors),
    ("send-forms", messages::forms),
    ("lengths", messages::lengths),
    ("both-ways", messages::both_ways),
    ("order", messages::order),
    ("many-under-way", messages::many),
    ("completion-levels", messages::levels),
    ("remote-data", messages::remote_data),
    ("ignore-masks", receives::masks),
    ("all-tag-bits", receives::all_bits),
    ("directed", receives::directed),
    ("spaces", receives::spaces),
    ("multi-receive", receives::multi),
    ("multi-receive-order", receives::multi_order),
    ("multi-receive-first", receives::multi_first),
    ("peek", receives::peek),
    ("claim", receives::claim),
    ("discard", receives::discard),
    ("cancel", receives::cancel),
    ("truncation", receives::truncation),
    ("rma-forms", remote::forms),
    ("rma-errors", remote::errors),
    ("rma-fault", remote::fault),
    ("eq", events::queue),
    ("eq-wait", events::wait),
    ("av-events", events::insertions),
    ("wait-fd", waiting::descriptor),
    ("wait-fd-rounds", waiting::rounds),
    ("wait-fd-counter", waiting::counter),
    ("wait-threads", waiting::threads),
    ("poll-set", waiting::poll_set),
];

/// Bytes that differ from place to place.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A tagged message by the plainest call.
pub fn tagged(bytes: &[u8], tag: u64, number: usize) -> Sent<'_> {
    Sent { kind: Kind::Tagged, form: Form::One, bytes, tag, data: 0, number, flags: 0 }
}

/// A receive of tagged messages from anybody by the plainest call.
pub fn any(tag: u64, number: usize) -> Wanted {
    Wanted { kind: Kind::Tagged, form: Form::One, from: ADDR_UNSPEC, tag, ignore: 0, number, flags: 0 }
}

/// A receive of tagged messages with flags.
pub fn with(tag: u64, number: usize, flags: u64) -> Wanted {
    Wanted { form: Form::Message, flags, ..any(tag, number) }
}

/// The end of a case: everything is closed in order when both are there.
pub fn finish(mut side: Side) -> Link {
    side.meet();
    side.close_endpoint();
    side.close()
}
