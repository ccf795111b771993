//! An operation with the memory that it uses.
#![allow(unsafe_code)] // The memory is lent to the engine here.

use lmt::buffer::{Access, Buffer, Segment};
use lmt::{Engine, OperationError, PeerId, RequestId, SendMode, Source, Status, TagMatch};

pub struct Operation {
    memory: Vec<u8>,
    request: Option<RequestId>,
}

impl Operation {
    pub fn send(
        engine: &mut Engine,
        to: PeerId,
        tag: u64,
        data: Vec<u8>,
        mode: SendMode,
    ) -> Result<Self, OperationError> {
        let mut operation = Self { memory: data, request: None };
        let buffer = operation.lend(Access::Read);
        operation.request = Some(engine.send(to, tag, buffer, mode)?);
        Ok(operation)
    }

    pub fn receive(
        engine: &mut Engine,
        source: Source,
        tags: TagMatch,
        bytes: usize,
    ) -> Result<Self, OperationError> {
        let mut operation = Self { memory: vec![0xa5; bytes], request: None };
        let buffer = operation.lend(Access::Write);
        operation.request = Some(engine.receive(source, tags, buffer)?);
        Ok(operation)
    }

    fn lend(&mut self, access: Access) -> Buffer {
        let segment = Segment::of_mut(&mut self.memory);
        // SAFETY: the memory is neither touched nor freed before the request is
        // complete: `take` gives it out then, and dropping earlier leaks it.
        unsafe { Buffer::new(&[segment], access) }.expect("a vector lies in the address space")
    }

    /// The result and the memory, once the operation is complete; makes no
    /// progress.
    pub fn take(&mut self, engine: &mut Engine) -> Option<(Result<Status, OperationError>, Vec<u8>)> {
        let request = self.request?;
        if !engine.is_done(request) {
            return None;
        }
        let result = engine.test(request)?;
        self.request = None;
        Some((result, std::mem::take(&mut self.memory)))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.request.is_some() {
            std::mem::forget(std::mem::take(&mut self.memory));
        }
    }
}
