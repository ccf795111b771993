//! Why a call failed, the last error of each thread, and the border that no
//! panic crosses.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use lmt::{CreateError, OperationError};

use crate::code::{self, lmt_code};

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    pub code: lmt_code,
    /// What is wrong, and what would be right.
    pub sentence: Cow<'static, str>,
}

impl Error {
    pub fn new(code: lmt_code, sentence: impl Into<Cow<'static, str>>) -> Self {
        Self { code, sentence: sentence.into() }
    }

    /// The argument of this name is NULL.
    pub fn null(name: &str) -> Self {
        Self::new(lmt_code::LMT_ERR_NULL, format!("`{name}` is NULL; pass the address of something"))
    }

    /// An argument has a value that it cannot have.
    pub fn invalid(sentence: impl Into<Cow<'static, str>>) -> Self {
        Self::new(lmt_code::LMT_ERR_INVALID, sentence)
    }
}

impl From<OperationError> for Error {
    fn from(error: OperationError) -> Self {
        Self::new(code::of_operation(&error), error.to_string())
    }
}

impl From<CreateError> for Error {
    fn from(error: CreateError) -> Self {
        Self::new(code::of_creation(&error), error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the sentence for `lmt_last_error`.
pub fn note(error: Error) -> lmt_code {
    let Error { code, sentence } = error;
    // A zero inside would end it early; no sentence of ours has one.
    let sentence = CString::new(sentence.into_owned().replace('\0', "")).unwrap_or_default();
    // A thread that is ending has no place for it any more.
    let _noted = LAST.try_with(|last| last.replace(sentence));
    code
}

/// The sentence that was kept last in this thread. The address is good until the
/// next one is kept.
pub fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// What a function does that C calls: no panic leaves it.
///
/// What a panic has left half done is seen by nobody: the objects stand behind
/// locks ([`crate::handle`]), which it poisons.
pub fn guard(call: impl FnOnce() -> Result<(), Error>) -> lmt_code {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => lmt_code::LMT_OK,
        Ok(Err(error)) => note(error),
        Err(panic) => note(of_panic(panic)),
    }
}

fn of_panic(panic: Box<dyn Any + Send>) -> Error {
    let text = match panic.downcast::<String>().map_err(|panic| panic.downcast::<&str>()) {
        Ok(text) => *text,
        Err(Ok(text)) => (*text).to_owned(),
        Err(Err(panic)) => {
            // Its end might panic again.
            std::mem::forget(panic);
            String::new()
        }
    };
    let sentence = format!("a fault inside lmt ({text}); close the object that was used, and report this");
    Error::new(lmt_code::LMT_ERR_PANIC, sentence)
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
