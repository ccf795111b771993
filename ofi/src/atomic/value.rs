//! What an operation makes of an element. Elements are bits here, in the lowest
//! bytes of a word that holds the longest.

use super::{Action, Datatype, Op};

/// An element's bits.
pub type Bits = u128;

/// The bits of an element's bytes, as they are in memory.
pub fn from_memory(bytes: &[u8]) -> Bits {
    let mut word = [0; size_of::<Bits>()];
    let shared = bytes.len().min(word.len());
    word[..shared].copy_from_slice(&bytes[..shared]);
    Bits::from_le_bytes(word)
}

/// Their bytes in memory, and zeros behind them.
pub const fn to_memory(bits: Bits) -> [u8; size_of::<Bits>()] {
    bits.to_le_bytes()
}

// Shorter elements are in the lowest bytes of the word, so that they come first in
// memory.
const _: () = assert!(cfg!(target_endian = "little"), "elements of peers are of this machine's order");

/// One that is counted with.
trait Number: Copy + PartialEq {
    const ZERO: Self;
    const ONE: Self;
    fn read(bits: Bits) -> Self;
    fn write(self) -> Bits;
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    /// Whether it is less than the other, where that means something.
    fn is_less(self, other: Self) -> bool;

    fn is_true(self) -> bool {
        self != Self::ZERO
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Number for $integer {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            fn read(bits: Bits) -> Self {
                bits as Self
            }
            fn write(self) -> Bits {
                from_memory(&self.to_le_bytes())
            }
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn product(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }
    )*};
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64, i128, u128);

macro_rules! reals {
    ($($real:ty as $integer:ty),*) => {$(
        impl Number for $real {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            fn read(bits: Bits) -> Self {
                Self::from_bits(bits as $integer)
            }
            fn write(self) -> Bits {
                self.to_bits().into()
            }
            fn sum(self, other: Self) -> Self {
                self + other
            }
            fn product(self, other: Self) -> Self {
                self * other
            }
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }
    )*};
}
reals!(f32 as u32, f64 as u64);

/// A complex number, its real part first.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Complex<T>(T, T);

impl<T: Number + std::ops::Sub<Output = T>> Number for Complex<T> {
    const ZERO: Self = Self(T::ZERO, T::ZERO);
    const ONE: Self = Self(T::ONE, T::ZERO);
    fn read(bits: Bits) -> Self {
        Self(T::read(bits), T::read(bits >> (8 * size_of::<T>())))
    }
    fn write(self) -> Bits {
        self.0.write() | self.1.write() << (8 * size_of::<T>())
    }
    fn sum(self, other: Self) -> Self {
        Self(self.0.sum(other.0), self.1.sum(other.1))
    }
    fn product(self, other: Self) -> Self {
        let real = self.0.product(other.0) - self.1.product(other.1);
        Self(real, self.0.product(other.1).sum(self.1.product(other.0)))
    }
    fn is_less(self, _: Self) -> bool {
        false
    }
}

/// What is there afterwards, where it was `old`; none if it stays as it is.
/// `compare` matters to the functions that compare.
pub fn combine(action: Action, old: Bits, operand: Bits, compare: Bits) -> Option<Bits> {
    match action.op {
        Op::Read => None,
        Op::Write => Some(operand),
        Op::Bor => Some(old | operand),
        Op::Band => Some(old & operand),
        Op::Bxor => Some(old ^ operand),
        Op::Mswap => Some((operand & compare) | (old & !compare)),
        op => match action.datatype {
            Datatype::Int8 => count::<i8>(op, old, operand, compare),
            Datatype::Uint8 => count::<u8>(op, old, operand, compare),
            Datatype::Int16 => count::<i16>(op, old, operand, compare),
            Datatype::Uint16 => count::<u16>(op, old, operand, compare),
            Datatype::Int32 => count::<i32>(op, old, operand, compare),
            Datatype::Uint32 => count::<u32>(op, old, operand, compare),
            Datatype::Int64 => count::<i64>(op, old, operand, compare),
            Datatype::Uint64 => count::<u64>(op, old, operand, compare),
            Datatype::Int128 => count::<i128>(op, old, operand, compare),
            Datatype::Uint128 => count::<u128>(op, old, operand, compare),
            Datatype::Float => count::<f32>(op, old, operand, compare),
            Datatype::Double => count::<f64>(op, old, operand, compare),
            Datatype::FloatComplex => count::<Complex<f32>>(op, old, operand, compare),
            Datatype::DoubleComplex => count::<Complex<f64>>(op, old, operand, compare),
        },
    }
}

/// The operations that look at an element as a number.
fn count<T: Number>(op: Op, old: Bits, operand: Bits, compare: Bits) -> Option<Bits> {
    let (there, new, than) = (T::read(old), T::read(operand), T::read(compare));
    let truth = |is_true: bool| Some(if is_true { T::ONE } else { T::ZERO }.write());
    let swap = |holds: bool| holds.then_some(operand);
    match op {
        Op::Min => swap(new.is_less(there)),
        Op::Max => swap(there.is_less(new)),
        Op::Sum => Some(there.sum(new).write()),
        Op::Prod => Some(there.product(new).write()),
        Op::Lor => truth(there.is_true() || new.is_true()),
        Op::Land => truth(there.is_true() && new.is_true()),
        Op::Lxor => truth(there.is_true() != new.is_true()),
        Op::Cswap => swap(than == there),
        Op::CswapNe => swap(than != there),
        Op::CswapLe => swap(than == there || than.is_less(there)),
        Op::CswapLt => swap(than.is_less(there)),
        Op::CswapGe => swap(than == there || there.is_less(than)),
        Op::CswapGt => swap(there.is_less(than)),
        // Done with the bits, by the caller.
        Op::Bor | Op::Band | Op::Bxor | Op::Read | Op::Write | Op::Mswap => None,
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
