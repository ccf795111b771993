//! What to do about one peer when something happens: the decisions of the
//! handshake without its input and output.
//!
//! The one who begins a connection sends HELLO; the other answers HELLO. Who
//! has the other's HELLO probes it and sends REPORT; who has sent and received
//! a REPORT is established. When both begin at the same moment, the connection
//! begun by the smaller id survives. A connection is begun once connect(2) has
//! succeeded: then its HELLO is on its way to the other's backlog, and the
//! smaller may answer MERGE to the greater's HELLO. Before that the smaller
//! takes the greater's connection instead of its own, so that MERGE never
//! promises a connection that does not come. MERGE sends the greater back to
//! retrying, and does not make it wait: should the smaller's connection fail
//! after all, the greater's next attempt finds nobody in its way.
//!
//! Before [`Event::TheirHello`] is decided, everything that the peer sent over
//! an older connection must have been read: a peer that closes one connection
//! and begins another has closed first.

/// Where the dealings with one peer stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(super) enum State {
    /// No connection and none wished for.
    Idle,
    /// A connection is wished for; connect(2) has not succeeded.
    Wanted,
    /// Our connection is begun, our HELLO on its way, theirs awaited.
    Greeted,
    /// Both HELLOs exchanged, our REPORT on its way, theirs awaited.
    Probed {
        /// Whether to try again should this connection end now: it is ours, or
        /// we wished for one ourselves.
        wished: bool,
    },
    /// Both REPORTs exchanged.
    Established,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(super) enum Event {
    /// The embedder wishes to be connected.
    ConnectRequested,
    /// connect(2) succeeded and the peer may be talked to.
    Connected,
    /// HELLO arrived on a connection that the peer began.
    TheirHello,
    /// HELLO arrived on the current connection.
    Hello,
    /// REPORT arrived on the current connection.
    Report,
    /// MERGE arrived on the current connection.
    Merge,
    /// REFUSE arrived on the current connection.
    Refuse,
    /// GOODBYE arrived on the current connection.
    Goodbye,
    /// Descriptors arrived on the current connection.
    Descriptors,
    /// Something that is not of this protocol arrived.
    Malformed,
    /// The current connection ended; `alive` says whether the peer's process
    /// is known to live.
    Eof {
        /// The pidfd is there and does not say that it died.
        alive: bool,
    },
    /// The peer's process died.
    Died,
    /// The deadline has passed.
    Late,
    /// This side will not go on: other user, or the embedder said no.
    Rejection,
}

/// Why an attempt failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(super) enum Failure {
    /// The peer died or closed its endpoint.
    Dead,
    /// Nobody answered in time.
    Late,
    /// The peer said no.
    Refused,
}

/// What to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(super) enum Action {
    /// Nothing.
    Nothing,
    /// Call connect(2) as soon as possible.
    Try,
    /// Make the new connection the current one and send HELLO.
    Greet,
    /// Drop the current connection, if any; make the peer's the current one,
    /// send HELLO, probe, send REPORT.
    Adopt,
    /// Answer MERGE on the peer's connection and close that.
    AnswerMerge,
    /// Answer REFUSE on the peer's connection and close that.
    AnswerRefuse,
    /// Probe the peer and send REPORT.
    Probe,
    /// Tell the embedder that the peer is there.
    Establish,
    /// Hand the descriptors to the embedder.
    Deliver,
    /// Drop the current connection and call connect(2) again after a while.
    Retreat,
    /// Drop all and tell the embedder why.
    Fail(Failure),
    /// Send REFUSE, drop all and tell the embedder.
    Refuse,
    /// Drop all and tell the embedder that an established connection ended.
    Close {
        /// Whether the peer said GOODBYE.
        goodbye: bool,
    },
    /// Send REFUSE, drop all, and tell the embedder that it ended.
    RefuseAndClose,
}

/// The next state and the action. `smaller` says whether this endpoint's id is
/// the smaller of the two.
pub(super) fn decide(state: State, event: Event, smaller: bool) -> (State, Action) {
    match event {
        Event::ConnectRequested => wish(state),
        Event::Connected if state == State::Wanted => (State::Greeted, Action::Greet),
        // Attempts are made in Wanted only.
        Event::Connected => (state, Action::Nothing),
        Event::TheirHello => their_hello(state, smaller),
        Event::Hello | Event::Report | Event::Merge | Event::Descriptors => message(state, event, smaller),
        Event::Goodbye | Event::Refuse | Event::Malformed | Event::Rejection => refusal(state, event),
        Event::Eof { .. } | Event::Died | Event::Late => end(state, event),
    }
}

fn wish(state: State) -> (State, Action) {
    match state {
        State::Idle => (State::Wanted, Action::Try),
        State::Probed { .. } => (State::Probed { wished: true }, Action::Nothing),
        State::Wanted | State::Greeted | State::Established => (state, Action::Nothing),
    }
}

fn their_hello(state: State, smaller: bool) -> (State, Action) {
    match state {
        State::Idle => (State::Probed { wished: false }, Action::Adopt),
        State::Wanted => (State::Probed { wished: true }, Action::Adopt),
        State::Greeted if smaller => (state, Action::AnswerMerge),
        State::Greeted => (State::Probed { wished: true }, Action::Adopt),
        // The current connection still stands, so this is not the same
        // endpoint come again.
        State::Probed { .. } | State::Established => (state, Action::AnswerRefuse),
    }
}

fn message(state: State, event: Event, smaller: bool) -> (State, Action) {
    match (event, state) {
        (Event::Hello, State::Greeted) => (State::Probed { wished: true }, Action::Probe),
        (Event::Report, State::Probed { .. }) => (State::Established, Action::Establish),
        (Event::Merge, State::Greeted) if !smaller => (State::Wanted, Action::Retreat),
        (Event::Descriptors, State::Established) => (state, Action::Deliver),
        _ => refusal(state, Event::Malformed),
    }
}

fn refusal(state: State, event: Event) -> (State, Action) {
    let action = match (state, event) {
        (State::Idle, _) => Action::Nothing,
        (State::Established, Event::Goodbye) => Action::Close { goodbye: true },
        (State::Established, Event::Refuse) => Action::Close { goodbye: false },
        (State::Established, _) => Action::RefuseAndClose,
        (_, Event::Goodbye) => Action::Fail(Failure::Dead),
        (_, Event::Refuse) => Action::Fail(Failure::Refused),
        _ => Action::Refuse,
    };
    (State::Idle, action)
}

fn end(state: State, event: Event) -> (State, Action) {
    match (state, event) {
        (State::Idle, _) => (state, Action::Nothing),
        (State::Established, Event::Late) => (state, Action::Nothing),
        (State::Established, _) => (State::Idle, Action::Close { goodbye: false }),
        (State::Wanted, Event::Eof { .. }) => (state, Action::Nothing),
        (State::Greeted | State::Probed { wished: true }, Event::Eof { alive: true }) => {
            (State::Wanted, Action::Retreat)
        }
        (_, Event::Late) => (State::Idle, Action::Fail(Failure::Late)),
        _ => (State::Idle, Action::Fail(Failure::Dead)),
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
