//! Atomic operations (fi_atomic(3)): which there are, and what each does to the
//! memory that it is about. Of these files only `memory` touches any.
//!
//! All integers, `float`, `double` and their complex numbers. Of `long double` there
//! is nothing: its arithmetic is no language's but C's.

pub mod memory;
pub mod value;

use std::ffi::c_int;

use crate::abi::Errno;

/// The most bytes of operands that one call takes.
pub const MAX_BYTES: usize = 8 << 10;

/// What an element is (`enum fi_datatype`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datatype {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float,
    Double,
    FloatComplex,
    DoubleComplex,
    Int128,
    Uint128,
}

/// By `fi_datatype`'s numbers; those between are of `long double`.
const DATATYPES: [Option<Datatype>; 16] = [
    Some(Datatype::Int8),
    Some(Datatype::Uint8),
    Some(Datatype::Int16),
    Some(Datatype::Uint16),
    Some(Datatype::Int32),
    Some(Datatype::Uint32),
    Some(Datatype::Int64),
    Some(Datatype::Uint64),
    Some(Datatype::Float),
    Some(Datatype::Double),
    Some(Datatype::FloatComplex),
    Some(Datatype::DoubleComplex),
    None,
    None,
    Some(Datatype::Int128),
    Some(Datatype::Uint128),
];

impl Datatype {
    /// How many bytes an element has.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double | Self::FloatComplex => 8,
            Self::DoubleComplex | Self::Int128 | Self::Uint128 => 16,
        }
    }

    const fn is_complex(self) -> bool {
        matches!(self, Self::FloatComplex | Self::DoubleComplex)
    }

    const fn is_integer(self) -> bool {
        !self.is_complex() && !matches!(self, Self::Float | Self::Double)
    }
}

/// What is done (`enum fi_op`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Min,
    Max,
    Sum,
    Prod,
    Lor,
    Land,
    Bor,
    Band,
    Lxor,
    Bxor,
    Read,
    Write,
    Cswap,
    CswapNe,
    CswapLe,
    CswapLt,
    CswapGe,
    CswapGt,
    Mswap,
}

/// By `fi_op`'s numbers.
const OPS: [Op; 19] = [
    Op::Min,
    Op::Max,
    Op::Sum,
    Op::Prod,
    Op::Lor,
    Op::Land,
    Op::Bor,
    Op::Band,
    Op::Lxor,
    Op::Bxor,
    Op::Read,
    Op::Write,
    Op::Cswap,
    Op::CswapNe,
    Op::CswapLe,
    Op::CswapLt,
    Op::CswapGe,
    Op::CswapGt,
    Op::Mswap,
];

impl Op {
    const fn is_bitwise(self) -> bool {
        matches!(self, Self::Bor | Self::Band | Self::Bxor | Self::Mswap)
    }

    const fn asks_which_is_less(self) -> bool {
        matches!(self, Self::Min | Self::Max | Self::CswapLe | Self::CswapLt | Self::CswapGe | Self::CswapGt)
    }

    const fn compares(self) -> bool {
        matches!(
            self,
            Self::Cswap
                | Self::CswapNe
                | Self::CswapLe
                | Self::CswapLt
                | Self::CswapGe
                | Self::CswapGt
                | Self::Mswap
        )
    }
}

/// Which of the three families of functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// `fi_atomic`: nothing comes back.
    Base,
    /// `fi_fetch_atomic`: what was there before comes back.
    Fetch,
    /// `fi_compare_atomic`: the same, and a second operand goes there.
    Compare,
}

const FAMILIES: [Family; 3] = [Family::Base, Family::Fetch, Family::Compare];

/// An operation on a type of element that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Action {
    /// By which functions.
    pub family: Family,
    /// On what.
    pub datatype: Datatype,
    /// What.
    pub op: Op,
}

impl Action {
    /// The operation that C's numbers mean.
    ///
    /// # Errors
    /// [`Errno::OPNOTSUPP`]: there is none, or not by these functions.
    pub fn of(family: Family, datatype: c_int, op: c_int) -> Result<Self, Errno> {
        let known = |number: c_int| usize::try_from(number).ok();
        let datatype = known(datatype).and_then(|at| *DATATYPES.get(at)?).ok_or(Errno::OPNOTSUPP)?;
        let op = known(op).and_then(|at| OPS.get(at).copied()).ok_or(Errno::OPNOTSUPP)?;
        let fits_family = match family {
            Family::Base => !op.compares() && op != Op::Read,
            Family::Fetch => !op.compares(),
            Family::Compare => op.compares(),
        };
        let fits_datatype = (datatype.is_integer() || !op.is_bitwise())
            && !(datatype.is_complex() && op.asks_which_is_less());
        if fits_family && fits_datatype { Ok(Self { family, datatype, op }) } else { Err(Errno::OPNOTSUPP) }
    }

    /// Three bytes that mean it, in messages.
    pub fn to_bytes(self) -> [u8; 3] {
        let at = |found: Option<usize>| found.unwrap_or_default() as u8;
        [
            at(FAMILIES.iter().position(|one| *one == self.family)),
            at(DATATYPES.iter().position(|one| *one == Some(self.datatype))),
            at(OPS.iter().position(|one| *one == self.op)),
        ]
    }

    /// What three bytes of a message mean.
    ///
    /// # Errors
    /// As [`Action::of`].
    pub fn from_bytes([family, datatype, op]: [u8; 3]) -> Result<Self, Errno> {
        let family = FAMILIES.get(usize::from(family)).ok_or(Errno::OPNOTSUPP)?;
        Self::of(*family, datatype.into(), op.into())
    }

    /// How many operands of each element go there.
    pub const fn operands(self) -> usize {
        match (self.family, self.op) {
            (_, Op::Read) => 0,
            (Family::Compare, _) => 2,
            _ => 1,
        }
    }

    /// Whether the target is read for somebody else.
    pub const fn fetches(self) -> bool {
        !matches!(self.family, Family::Base)
    }

    /// Whether the target may change.
    pub const fn writes(self) -> bool {
        !matches!(self.op, Op::Read)
    }

    /// The most elements of one call.
    pub const fn most(self) -> usize {
        MAX_BYTES / self.datatype.bytes()
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
