//! How a scope reaches its engine: directly, or through a lock.

use lmt_core::engine::{Engine, OperationError, RequestId, Status};

/// An endpoint type that lends its engine for the length of a call.
///
/// Sealed: implemented by [`crate::Endpoint`] and [`crate::SharedEndpoint`].
pub trait Access: sealed::Sealed {
    /// Calls `f` with the engine.
    #[doc(hidden)]
    fn with<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R;

    /// Waits for a request and takes its result.
    #[doc(hidden)]
    fn wait(&self, request: RequestId) -> Result<Status, OperationError>;

    /// Waits for one of several requests; gives its place.
    #[doc(hidden)]
    fn wait_any(&self, requests: &[RequestId]) -> Result<Option<usize>, OperationError>;
}

pub(crate) mod sealed {
    /// Keeps [`super::Access`] to the types of this crate.
    pub trait Sealed {}
    impl Sealed for crate::Endpoint {}
    impl Sealed for crate::SharedEndpoint {}
}
