//! The groups of this thread, so that a wait in one moves the calls of the others: two
//! ranks may wait in two groups for what each has begun in the other.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use lmt_core::endpoint::Engine;
use lmt_core::identity::EndpointId;

use crate::calls::Calls;

thread_local! {
    /// All that live; a group stays on its thread.
    static GROUPS: RefCell<Vec<(EndpointId, Weak<RefCell<Calls>>)>> = const { RefCell::new(Vec::new()) };
}

/// Enters a group of an endpoint.
pub(crate) fn enter(endpoint: EndpointId, calls: &Rc<RefCell<Calls>>) {
    GROUPS.with_borrow_mut(|groups| {
        groups.retain(|(_, other)| other.strong_count() > 0);
        groups.push((endpoint, Rc::downgrade(calls)));
    });
}

/// Moves the calls of all groups of an endpoint but those that are in use, which are
/// being moved; whether any moved.
pub(crate) fn advance(endpoint: EndpointId, engine: &mut Engine) -> bool {
    // That of the only one is in use where this is called.
    GROUPS.with_borrow(Vec::len) > 1 && advance_all(endpoint, engine)
}

/// The same for who waits for something else than a call.
pub(crate) fn advance_all(endpoint: EndpointId, engine: &mut Engine) -> bool {
    GROUPS.with_borrow(|groups| {
        let of_endpoint = groups.iter().filter(|(other, _)| *other == endpoint);
        let mut moved = false;
        for calls in of_endpoint.filter_map(|(_, calls)| calls.upgrade()) {
            if let Ok(mut calls) = calls.try_borrow_mut() {
                moved |= calls.advance(engine);
            }
        }
        moved
    })
}
