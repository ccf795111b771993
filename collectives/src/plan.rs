//! What is worked out for a call before anything moves, and kept for calls that come
//! again: an application's calls do.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::rc::Rc;

use crate::algorithm::{Algorithm, Kind};
use crate::call::{Blocks, Call};
use crate::check::Team;
use crate::operation::Operation;
use crate::program::Program;
use crate::signature::Signature;

/// A call, and how it goes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub call: Call,
    pub program: Program,
    pub signature: Signature,
}

impl Plan {
    /// Of a call whose arguments are wrong on this rank: one that no other is like, so
    /// that the others hear of it.
    pub fn of_wrong(team: &Team) -> Self {
        Self {
            call: empty_call(team),
            program: Program::default(),
            signature: Signature::of_wrong(team.rank),
        }
    }
}

fn empty_call(team: &Team) -> Call {
    Call {
        kind: Kind::Barrier,
        rank: team.rank,
        size: team.size,
        root: 0,
        bytes: 0,
        blocks: Blocks::Equal(0),
        input_blocks: Blocks::Equal(0),
        in_place: false,
        element_bytes: 1,
        domains: Rc::from([]),
        slot_bytes: 0,
    }
}

/// What of an operation its [`Call`] does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    /// The algorithm that the caller names.
    pub algorithm: Option<Algorithm>,
    /// Whether it is one of the forms with lists.
    pub is_listed: bool,
    /// Tells reductions apart; 0 where there is none.
    pub reduction: u32,
}

impl Asked {
    pub fn of(operation: &Operation<'_>) -> Self {
        let reduction = operation.reduction.as_ref().map_or(0, |reduction| reduction.code());
        Self { algorithm: operation.algorithm, is_listed: operation.is_listed, reduction }
    }
}

/// Plans of calls that may come again, the latest first.
#[derive(Debug, Default)]
pub(crate) struct Plans(VecDeque<(Asked, Rc<Plan>)>);

/// So many are kept.
const KEPT: usize = 16;

impl Plans {
    /// That of the last time.
    pub fn find(&mut self, call: &Call, asked: Asked) -> Option<Rc<Plan>> {
        let at = self.0.iter().position(|(kept, plan)| *kept == asked && plan.call == *call)?;
        if at > 0 {
            let found = self.0.remove(at)?;
            self.0.push_front(found);
        }
        self.0.front().map(|(_, plan)| Rc::clone(plan))
    }

    /// Keeps one.
    pub fn keep(&mut self, asked: Asked, plan: Plan) -> Rc<Plan> {
        let plan = Rc::new(plan);
        self.0.truncate(KEPT - 1);
        self.0.push_front((asked, Rc::clone(&plan)));
        plan
    }

    /// Forgets all: what they depend on has changed.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
