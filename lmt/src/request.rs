//! One operation of a scope: waited for, asked for, or cancelled; and the list in which the
//! scope keeps them all.

use std::cell::RefCell;

use lmt_core::endpoint::{OperationError, RequestId, Status};

use crate::access::{Access, Token};
use crate::open::{Open, Place};

/// The operations of a scope.
#[derive(Debug)]
pub(crate) struct Operations<'env, A: Access> {
    pub(crate) access: &'env A,
    pub(crate) open: RefCell<Open>,
}

/// An operation in flight in a scope: small, because programs move it.
#[derive(Debug)]
#[must_use = "an operation that nobody waits for is cancelled at the end of the scope"]
pub struct Request<'scope, A: Access> {
    pub(crate) operations: &'scope Operations<'scope, A>,
    pub(crate) place: Place,
}

impl<A: Access> Drop for Request<'_, A> {
    fn drop(&mut self) {
        self.operations.open.borrow_mut().let_go(self.place);
    }
}

impl<A: Access> Request<'_, A> {
    /// The number of one that was not done when it was begun.
    pub(crate) fn id(&self) -> Option<RequestId> {
        self.operations.open.borrow().request(self.place)
    }

    /// Its result, if it was done when it was begun.
    #[inline]
    fn take_done(&self) -> Result<Status, Option<RequestId>> {
        self.operations.open.borrow_mut().take_done(self.place)
    }

    /// Its result is there: the scope need not wait for it.
    #[inline]
    fn closed(self) {
        self.operations.open.borrow_mut().close(self.place);
        std::mem::forget(self);
    }

    /// Waits until the operation is finished.
    ///
    /// # Errors
    /// What the operation ended with.
    #[inline]
    pub fn wait(self) -> Result<Status, OperationError> {
        let id = match self.take_done() {
            Ok(status) => {
                std::mem::forget(self);
                return Ok(status);
            }
            Err(id) => id.ok_or(OperationError::UnknownRequest)?,
        };
        let result = self.operations.access.wait(Token::new(), id);
        self.closed();
        result
    }

    /// The result if the operation is finished, else the request again.
    /// Makes progress once if it is not.
    ///
    /// # Errors
    /// The request itself, to be asked again.
    pub fn test(self) -> Result<Result<Status, OperationError>, Self> {
        let access = self.operations.access;
        let id = match self.take_done() {
            Ok(status) => return Ok(Ok(status)),
            Err(None) => return Ok(Err(OperationError::UnknownRequest)),
            Err(Some(id)) => id,
        };
        match access.with(Token::new(), |engine| Ok(engine.test(id))) {
            Ok(Some(result)) => {
                self.closed();
                Ok(result)
            }
            Ok(None) => {
                access.yield_if_idle(Token::new());
                Err(self)
            }
            // A forked child: nothing is in flight here.
            Err(error) => Ok(Err(error)),
        }
    }

    /// Takes the operation back if nothing has matched it yet, and waits for
    /// its end: [`OperationError::Cancelled`], or what it did instead.
    ///
    /// # Errors
    /// What the operation ended with.
    pub fn cancel(self) -> Result<Status, OperationError> {
        if let Some(id) = self.id() {
            self.operations.access.with(Token::new(), |engine| engine.cancel(id))?;
        }
        self.wait()
    }
}
