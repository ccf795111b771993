//! The collective operations of an application, and the time that they take.

use std::cell::Cell;
use std::time::Instant;

use lmt_collectives::{Algorithm, Element, Group, GroupError, Operation, Operator, Reduction};

use super::words::Word;

/// A group whose calls are timed.
pub struct Comm<'a> {
    group: &'a Group<'a>,
    /// Of the operation that moves the application's data; the group's choice if none.
    algorithm: Option<Algorithm>,
    seconds: Cell<f64>,
    sum: Reduction,
}

impl<'a> Comm<'a> {
    /// Nothing has taken any time yet.
    ///
    /// # Errors
    /// Sums of these numbers are not defined.
    pub fn new(group: &'a Group<'a>, algorithm: Option<Algorithm>) -> Result<Self, GroupError> {
        let sum = Reduction::new(Operator::Sum, Element::U32)
            .map_err(|undefined| GroupError::Arguments(undefined.to_string()))?;
        Ok(Self { group, algorithm, seconds: Cell::new(0.0), sum })
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.group.rank()
    }

    /// How many there are.
    pub fn size(&self) -> u32 {
        self.group.size()
    }

    /// The time that calls have taken since it was last asked for.
    pub fn take_seconds(&self) -> f64 {
        self.seconds.replace(0.0)
    }

    /// The operation that moves the data, by the algorithm that was asked for.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn run(&self, operation: Operation<'_>) -> Result<(), GroupError> {
        self.timed(operation.by(self.algorithm))
    }

    /// What the operation that moves the data is done by.
    ///
    /// # Errors
    /// As [`Group::explain`].
    pub fn algorithm_of(&self, operation: &Operation<'_>) -> Result<Algorithm, GroupError> {
        match self.algorithm {
            Some(named) => Ok(named),
            None => self.group.explain(operation).map(|(chosen, _)| chosen),
        }
    }

    /// Adds up the ranks' numbers, for all.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn add_up(&self, numbers: &mut [Word]) -> Result<(), GroupError> {
        self.timed(Operation::allreduce_in_place(numbers.as_flattened_mut(), &self.sum))
    }

    /// Gives each rank its number, and takes theirs for this one.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn swap(&self, numbers: &mut [Word]) -> Result<(), GroupError> {
        self.timed(Operation::alltoall_in_place(numbers.as_flattened_mut()))
    }

    /// What all ranks have, in their order.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn all_have<const N: usize>(&self, own: [u64; N]) -> Result<Vec<[u64; N]>, GroupError> {
        let own = own.map(u64::to_ne_bytes);
        let mut all = vec![[[0; 8]; N]; self.size() as usize];
        self.timed(Operation::allgather(own.as_flattened(), all.as_flattened_mut().as_flattened_mut()))?;
        Ok(all.into_iter().map(|one| one.map(u64::from_ne_bytes)).collect())
    }

    /// Nobody gets past it before all have come to it.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn barrier(&self) -> Result<(), GroupError> {
        self.timed(Operation::barrier())
    }

    /// Any other operation.
    ///
    /// # Errors
    /// As [`Group::run`].
    pub fn collect(&self, operation: Operation<'_>) -> Result<(), GroupError> {
        self.timed(operation)
    }

    fn timed(&self, operation: Operation<'_>) -> Result<(), GroupError> {
        let start = Instant::now();
        let result = self.group.run(operation);
        self.seconds.set(self.seconds.get() + start.elapsed().as_secs_f64());
        result
    }
}
