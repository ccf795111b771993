//! Operations in flight, by the number under which the engine reports them.

use lmt::{ReportToken, RequestId};

use super::service::asked::Asked;
use super::service::errand::SoftwareRma;
use crate::abi::flags;
use crate::lend::{Owned, Room};

/// What an operation is, as far as its end goes.
#[derive(Debug)]
pub enum Kind {
    /// A send of bytes that nobody else keeps, which are dropped with it.
    Injected {
        /// The bytes.
        #[expect(dead_code, reason = "it is kept, not looked at")]
        owned: Owned,
        /// Whether anybody knows its context, to whom its end can be told.
        has_context: bool,
    },
    /// A read or a write of a peer's memory.
    Remote(Box<SoftwareRma>),
    /// A receive of a peer's request.
    Serve {
        /// Its place among those that are served in order.
        ticket: u64,
        /// Where the request comes to.
        room: Room,
    },
    /// A send of a request or an answer that could not leave at once.
    Service {
        /// Its bytes.
        #[expect(dead_code, reason = "it is kept, not looked at")]
        owned: Owned,
        /// Of a request, the operation that awaits the answer: its number and id.
        answer: Option<(u64, u64)>,
    },
    /// A receive of an answer.
    Asked(Asked),
    /// A receive that an owner has matched.
    Matched {
        /// The address of its buffer, which is only handed back.
        buffer: usize,
        /// The owner's entry.
        entry: usize,
    },
    /// The receive of a multi-receive buffer.
    Multi {
        /// The engine's name for it, which is the buffer's.
        receive: RequestId,
    },
    /// A message in a multi-receive buffer.
    InMulti {
        /// Its place among those that are told in order.
        ticket: u64,
        /// The address of its first byte, which is only handed back.
        buffer: usize,
    },
}

/// A send or a receive of which no more is to be known at its end than what is told: the engine
/// keeps that, and nothing is entered here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain {
    /// What it was begun with.
    pub context: usize,
    /// What its completion says that it was: a send or a receive.
    pub flags: u64,
    /// Whether its good end is told.
    pub reports: bool,
    /// The address of a receive's buffer, which is only handed back.
    pub buffer: usize,
}

impl Plain {
    /// What the engine reports it by. The flags are those of an operation, which has some;
    /// that its end is told is one more.
    #[inline]
    pub const fn token(self) -> ReportToken {
        let Self { context, flags, reports, buffer } = self;
        [context as u64, if reports { flags | flags::COMPLETION } else { flags }, buffer as u64]
    }

    /// The one that is reported by this, if it is none of [`Ops`].
    #[inline]
    pub const fn of_token([context, flags, buffer]: ReportToken) -> Option<Self> {
        if flags == 0 {
            return None;
        }
        let reports = flags & flags::COMPLETION != 0;
        Some(Self {
            context: context as usize,
            flags: flags & !flags::COMPLETION,
            reports,
            buffer: buffer as usize,
        })
    }
}

/// What the engine reports another operation by.
pub const fn token_of(number: u64) -> ReportToken {
    [number, 0, 0]
}

/// An operation.
#[derive(Debug)]
pub struct Op {
    /// What it was begun with.
    pub context: usize,
    /// What its completion says that it was.
    pub flags: u64,
    /// Whether its good end is told.
    pub reports: bool,
    /// The engine's name for it.
    pub request: RequestId,
    /// What it is.
    pub kind: Kind,
}

impl Op {
    /// One that nobody is told of.
    pub const fn hidden(request: RequestId, kind: Kind) -> Self {
        Self { context: 0, flags: 0, reports: false, request, kind }
    }

    /// Whether whoever knows its context may take it back.
    fn can_be_named(&self) -> bool {
        match &self.kind {
            Kind::Matched { .. } | Kind::Multi { .. } => true,
            Kind::Remote(errand) => errand.has_context(),
            Kind::Injected { has_context, .. } => *has_context,
            Kind::InMulti { .. } | Kind::Serve { .. } | Kind::Service { .. } | Kind::Asked(_) => false,
        }
    }
}

#[derive(Debug)]
enum Slot {
    Free(Option<usize>),
    Used(Op),
}

/// All of an endpoint. Memory grows to the most there were at once.
#[derive(Debug, Default)]
pub struct Ops {
    slots: Vec<Slot>,
    free: Option<usize>,
}

impl Ops {
    /// Takes an operation in; gives its number.
    #[inline]
    pub fn insert(&mut self, op: Op) -> u64 {
        let Some(at) = self.free else {
            self.slots.push(Slot::Used(op));
            return (self.slots.len() - 1) as u64;
        };
        if let Slot::Free(next) = std::mem::replace(&mut self.slots[at], Slot::Used(op)) {
            self.free = next;
        }
        at as u64
    }

    /// Takes an operation out.
    #[inline]
    pub fn remove(&mut self, number: u64) -> Option<Op> {
        let at = number as usize;
        let slot = self.slots.get_mut(at).filter(|slot| matches!(slot, Slot::Used(_)))?;
        match std::mem::replace(slot, Slot::Free(self.free)) {
            Slot::Used(op) => {
                self.free = Some(at);
                Some(op)
            }
            Slot::Free(_) => None,
        }
    }

    /// The operation with this number.
    pub fn get(&self, number: u64) -> Option<&Op> {
        match self.slots.get(number as usize)? {
            Slot::Used(op) => Some(op),
            Slot::Free(_) => None,
        }
    }

    /// The engine's name for the first operation that was begun with this context;
    /// looks at each.
    pub fn with_context(&self, context: usize) -> Option<RequestId> {
        self.slots.iter().find_map(|slot| match slot {
            Slot::Used(op) if op.context == context && op.can_be_named() => Some(op.request),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(context: usize) -> Op {
        let request = RequestId::from_raw(context as u64);
        Op { context, flags: 0, reports: true, request, kind: Kind::Multi { receive: request } }
    }

    #[test]
    fn what_the_engine_keeps_comes_back() {
        for reports in [false, true] {
            let plain = Plain { context: usize::MAX, flags: flags::RECV, reports, buffer: 8 };
            assert_eq!(Plain::of_token(plain.token()), Some(plain));
        }
        assert_eq!(Plain::of_token(token_of(7)), None);
    }

    #[test]
    fn numbers_are_used_again() {
        let mut ops = Ops::default();
        let numbers: Vec<u64> = (0..3).map(|context| ops.insert(op(context))).collect();
        assert_eq!(ops.with_context(1), Some(RequestId::from_raw(1)));
        assert_eq!(ops.remove(numbers[1]).map(|op| op.context), Some(1));
        assert!(ops.remove(numbers[1]).is_none() && ops.with_context(1).is_none());
        assert_eq!(ops.remove(numbers[0]).map(|op| op.context), Some(0));
        assert_eq!((ops.insert(op(7)), ops.insert(op(8)), ops.insert(op(9))), (0, 1, 3));
        assert!(ops.remove(99).is_none());
    }
}
