//! How a scope reaches its engine: directly, or through a lock.

use lmt_core::endpoint::{Engine, OperationError, PolledReceive, RequestId, Status, yield_core};

use crate::open::OperationLists;

/// An endpoint type that lends its engine for the length of a call.
///
/// Sealed: implemented by [`crate::Endpoint`] and [`crate::SharedEndpoint`],
/// and only this crate calls its methods. Who could reach the engine of a scope
/// that is open could put another in its place, and the scope would wait for
/// the operations of the wrong one while its buffers end:
///
/// ```compile_fail,E0603
/// use lmt::Access;
/// let (one, two) = (lmt::Endpoint::new().unwrap(), lmt::Endpoint::new().unwrap());
/// one.with(lmt::access::Token::new(), |a| two.with(lmt::access::Token::new(), |b| Ok(std::mem::swap(a, b))));
/// ```
///
/// ```compile_fail,E0061
/// # use lmt::Access;
/// fn reach<A: Access>(access: &A) {
///     access.with(|_engine| Ok(()));
/// }
/// ```
///
/// ```compile_fail,E0599
/// let shared = lmt::SharedEndpoint::new(lmt::Endpoint::new().unwrap());
/// shared.with_engine(|_engine| ());
/// ```
pub trait Access: sealed::Sealed {
    /// Calls `f` with the engine, unless this is a forked child.
    #[doc(hidden)]
    fn with<R>(
        &self,
        token: Token,
        f: impl FnOnce(&mut Engine) -> Result<R, OperationError>,
    ) -> Result<R, OperationError>;

    /// Lets others run after empty polls, without a lock, which they may want.
    #[doc(hidden)]
    fn yield_if_idle(&self, token: Token) {
        if self.with(token, |engine| Ok(engine.should_yield())).unwrap_or(false) {
            let others = yield_core();
            // It fails in a forked child, which waits for nobody.
            let _noted = self.with(token, |engine| {
                engine.note_yield(others);
                Ok(())
            });
        }
    }

    /// Looks for the message of a receive that is waited for next; whether it is there.
    #[doc(hidden)]
    #[inline]
    fn poll_before_posting(
        &self,
        _token: Token,
        _awaited: &mut PolledReceive,
    ) -> Result<bool, OperationError> {
        Ok(false)
    }

    /// Waits for a request and takes its result.
    #[doc(hidden)]
    fn wait(&self, token: Token, request: RequestId) -> Result<Status, OperationError>;

    /// Waits for one of several requests; gives its place. An error says that
    /// this is a forked child.
    #[doc(hidden)]
    fn wait_any(
        &self,
        token: Token,
        requests: impl Iterator<Item = RequestId> + Clone,
    ) -> Result<Option<usize>, OperationError>;

    /// Lists for scopes.
    #[doc(hidden)]
    fn spares(&self, token: Token) -> &OperationLists;
}

/// What the methods of [`Access`] ask for, and only this crate can make: a
/// caller elsewhere can neither name it (its module is private) nor build it.
#[derive(Clone, Copy, Debug)]
pub struct Token(());

impl Token {
    pub(crate) const fn new() -> Self {
        Self(())
    }
}

pub(crate) mod sealed {
    /// Keeps [`super::Access`] to the types of this crate.
    pub trait Sealed {}
}
