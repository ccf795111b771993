//! Collective operations that run side by side, with memory that the borrow checker
//! keeps alive.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::error::GroupError;
use crate::group::Group;
use crate::operation::Operation;

/// Where operations of a group run side by side; see [`Group::scope`].
///
/// A collective call cannot be cancelled, since others are in it: leaving the scope
/// waits for all. Leaving it by a panic breaks the group instead, so that all come out.
pub struct Scope<'scope, 'env: 'scope> {
    group: &'env Group<'env>,
    open: RefCell<Vec<u32>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// An operation that has begun.
#[must_use = "the scope waits for what nobody waits for, and drops its result"]
pub struct Pending<'scope> {
    group: &'scope Group<'scope>,
    open: &'scope RefCell<Vec<u32>>,
    number: u32,
}

/// Waits for what is open when the scope is left.
struct Leave<'a, 'env> {
    group: &'a Group<'env>,
    open: &'a RefCell<Vec<u32>>,
}

impl Drop for Leave<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.open.borrow().is_empty() {
            self.group.abandon();
        }
        self.group.wait_all(self.open.take());
    }
}

impl Group<'_> {
    /// Calls `body` with a scope in which operations run side by side and beside other
    /// work; all have ended when it returns. On all ranks they begin in the same order.
    pub fn scope<'env, F, T>(&'env self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        let scope = Scope { group: self, open: RefCell::default(), scope: PhantomData, env: PhantomData };
        let _leave = Leave { group: scope.group, open: &scope.open };
        body(&scope)
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Begins this rank's part of an operation.
    ///
    /// # Errors
    /// The group is broken. All else is told by the request.
    pub fn start(&'scope self, operation: Operation<'env>) -> Result<Pending<'scope>, GroupError> {
        let number = self.group.start(operation)?;
        self.open.borrow_mut().push(number);
        Ok(Pending { group: self.group, open: &self.open, number })
    }
}

impl Pending<'_> {
    /// Waits for its end.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn wait(self) -> Result<(), GroupError> {
        let result = self.group.wait(self.number);
        self.close();
        result
    }

    /// Its result if it has ended; makes progress once. Itself if it has not.
    ///
    /// # Errors
    /// It has not ended.
    pub fn test(self) -> Result<Result<(), GroupError>, Self> {
        if let Err(error) = self.group.progress() {
            return Ok(Err(error));
        }
        match self.group.fetch(self.number) {
            Some(result) => {
                self.close();
                Ok(result)
            }
            None => Err(self),
        }
    }

    fn close(&self) {
        self.open.borrow_mut().retain(|number| *number != self.number);
    }
}
