//! What a mechanism is: the same for all peers and all along.

use crate::vocabulary::model::{Model, Reach};

/// What a mechanism needs of the machine beyond the two processes and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Needs {
    /// Nothing but system calls that every kernel of ours has: where it does
    /// not work, something stands in its way.
    Kernel,
    /// A module that most kernels come without.
    Module,
    /// A device that most machines come without.
    Device,
}

/// What a mechanism says of itself. It is asked once, when the mechanism is registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// The name under which users know it: lower case, at most 16 bytes.
    pub name: &'static str,
    /// The models it can do, the preferred one first.
    pub models: &'static [Model],
    /// What it needs of the machine.
    pub needs: Needs,
    /// Which memory it copies from and to. Messages in other memory are not proposed to it.
    pub reach: Reach,
}

impl Description {
    /// A mechanism of this name that needs nothing but the kernel and copies any memory.
    ///
    /// ```
    /// use lmt_core::mechanism::{Description, Model, Needs};
    /// let card = Description { needs: Needs::Device, ..Description::new("card", &[Model::Get]) };
    /// assert_eq!(card.models, [Model::Get]);
    /// ```
    pub const fn new(name: &'static str, models: &'static [Model]) -> Self {
        Self { name, models, needs: Needs::Kernel, reach: Reach::AnyMemory }
    }
}
