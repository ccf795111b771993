//! What reductions combine, and how: MPI's element types and operations, and the
//! caller's own (MPI-4.1, 6.9.2 to 6.9.5).
#![forbid(unsafe_code)]

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// What a vector consists of, in the machine's byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // They are what they are called.
pub enum Element {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// Complex: two `F32`, real part first.
    C32,
    /// Complex: two `F64`, real part first.
    C64,
    /// A pair as C lays it out: `struct { float value; int place; }`, 8 bytes.
    F32AndPlace,
    /// `struct { double value; int place; }`, 16 bytes, of which the last 4 say nothing.
    F64AndPlace,
    /// `struct { short value; int place; }`, 8 bytes; bytes 2 and 3 say nothing.
    I16AndPlace,
    /// `struct { int value; int place; }`, 8 bytes.
    I32AndPlace,
    /// `struct { long value; int place; }`, 16 bytes, of which the last 4 say nothing.
    I64AndPlace,
}

impl Element {
    /// Its length in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C32 => 8,
            Self::F32AndPlace | Self::I16AndPlace | Self::I32AndPlace => 8,
            Self::C64 | Self::F64AndPlace | Self::I64AndPlace => 16,
        }
    }
}

/// MPI's operations. Integers wrap around.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // They are what they are called.
pub enum Operator {
    Sum,
    Product,
    Min,
    Max,
    /// Of integers: not 0 is true, and the result 0 or 1.
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    BitAnd,
    BitOr,
    BitXor,
    /// Of pairs: the least value, and of equal ones the lowest place.
    MinPlace,
    /// Of pairs: the greatest value, and of equal ones the lowest place.
    MaxPlace,
}

/// A function of the caller's: `right[i] = left[i] op right[i]` for all elements of two
/// stretches of the same length.
type Custom = Rc<dyn Fn(&[u8], &mut [u8])>;

/// What a panic carries.
pub(crate) type Panic = Box<dyn Any + Send>;

type Builtin = fn(&[u8], &mut [u8]);

#[derive(Clone)]
enum How {
    Builtin(Builtin),
    Custom(Custom),
}

/// How a reduction combines elements. It must be associative; results may differ in
/// rounding from those of another algorithm, not between ranks or runs.
#[derive(Clone)]
pub struct Reduction {
    element_bytes: u64,
    is_commutative: bool,
    /// What ranks compare: the same for the same reduction.
    code: u32,
    how: How,
}

impl fmt::Debug for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reduction").field("element_bytes", &self.element_bytes).finish_non_exhaustive()
    }
}

/// An operation that is not defined for elements of this kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operator:?} is not defined for {element:?}; MPI-4.1, 6.9.2, lists what is")]
pub struct Undefined {
    /// The operation.
    pub operator: Operator,
    /// The kind of elements.
    pub element: Element,
}

impl Reduction {
    /// One of MPI's.
    ///
    /// ```
    /// use lmt_collectives::{Element, Operator, Reduction};
    /// assert!(Reduction::new(Operator::Sum, Element::F64).is_ok());
    /// assert!(Reduction::new(Operator::BitAnd, Element::F64).is_err());
    /// ```
    ///
    /// # Errors
    /// The operation is not defined for such elements.
    pub fn new(operator: Operator, element: Element) -> Result<Self, Undefined> {
        let builtin = builtin(operator, element).ok_or(Undefined { operator, element })?;
        Ok(Self {
            element_bytes: element.bytes(),
            is_commutative: true,
            code: (operator as u32) << 8 | element as u32,
            how: How::Builtin(builtin),
        })
    }

    /// The caller's own: `combine(left, right)` sets each element of `right` to what
    /// the operation gives of that of `left` and its own. `name`, of 30 bits,
    /// tells the ranks' own operations apart: all must give the same.
    ///
    /// # Panics
    /// Elements of no bytes.
    pub fn custom(
        name: u32,
        element_bytes: u64,
        is_commutative: bool,
        combine: impl Fn(&[u8], &mut [u8]) + 'static,
    ) -> Self {
        assert!(element_bytes > 0, "an element must have at least one byte");
        let code = 1 << 31 | u32::from(is_commutative) << 30 | name & !(3 << 30);
        Self { element_bytes, is_commutative, code, how: How::Custom(Rc::new(combine)) }
    }

    /// The length of an element.
    pub const fn element_bytes(&self) -> u64 {
        self.element_bytes
    }

    pub(crate) const fn code(&self) -> u32 {
        self.code
    }

    /// `into = from op into` where `from_is_left`, else `into = into op from`.
    ///
    /// # Errors
    /// The caller's function has panicked; to be resumed once nothing is borrowed.
    pub(crate) fn combine(&self, from: &[u8], into: &mut [u8], from_is_left: bool) -> Result<(), Panic> {
        let custom = match &self.how {
            How::Builtin(combine) => {
                combine(from, into);
                return Ok(());
            }
            How::Custom(custom) => custom,
        };
        // What it leaves behind in its own state is the caller's business, as with a
        // panic that goes through the caller's own code.
        catch_unwind(AssertUnwindSafe(|| {
            if from_is_left || self.is_commutative {
                return custom(from, into);
            }
            let mut result = from.to_vec();
            custom(into, &mut result);
            into.copy_from_slice(&result);
        }))
    }
}

/// Combines the elements of two stretches one by one.
#[inline(always)]
fn each<const N: usize>(from: &[u8], into: &mut [u8], combine: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    for (a, b) in from.as_chunks::<N>().0.iter().zip(into.as_chunks_mut::<N>().0) {
        *b = combine(*a, *b);
    }
}

macro_rules! plain {
    ($type:ty, $combine:expr) => {
        Some(|from: &[u8], into: &mut [u8]| {
            each(from, into, |a, b| {
                let combine: fn($type, $type) -> $type = $combine;
                combine(<$type>::from_ne_bytes(a), <$type>::from_ne_bytes(b)).to_ne_bytes()
            });
        })
    };
}

macro_rules! integer {
    ($type:ty, $operator:expr) => {
        match $operator {
            Operator::Sum => plain!($type, |a, b| a.wrapping_add(b)),
            Operator::Product => plain!($type, |a, b| a.wrapping_mul(b)),
            Operator::Min => plain!($type, |a, b| a.min(b)),
            Operator::Max => plain!($type, |a, b| a.max(b)),
            Operator::LogicalAnd => plain!($type, |a, b| (a != 0 && b != 0).into()),
            Operator::LogicalOr => plain!($type, |a, b| (a != 0 || b != 0).into()),
            Operator::LogicalXor => plain!($type, |a, b| ((a != 0) != (b != 0)).into()),
            Operator::BitAnd => plain!($type, |a, b| a & b),
            Operator::BitOr => plain!($type, |a, b| a | b),
            Operator::BitXor => plain!($type, |a, b| a ^ b),
            Operator::MinPlace | Operator::MaxPlace => None,
        }
    };
}

macro_rules! float {
    ($type:ty, $operator:expr) => {
        match $operator {
            Operator::Sum => plain!($type, |a, b| a + b),
            Operator::Product => plain!($type, |a, b| a * b),
            Operator::Min => plain!($type, |a, b| if a < b { a } else { b }),
            Operator::Max => plain!($type, |a, b| if a > b { a } else { b }),
            _ => None,
        }
    };
}

macro_rules! complex {
    ($type:ty, $bytes:literal, $operator:expr) => {{
        fn read(z: [u8; 2 * $bytes]) -> ($type, $type) {
            let (re, im) = z.split_at($bytes);
            let part = |bytes: &[u8]| <$type>::from_ne_bytes(bytes.try_into().expect("half of a pair"));
            (part(re), part(im))
        }
        fn written((re, im): ($type, $type)) -> [u8; 2 * $bytes] {
            let mut z = [0; 2 * $bytes];
            z[..$bytes].copy_from_slice(&re.to_ne_bytes());
            z[$bytes..].copy_from_slice(&im.to_ne_bytes());
            z
        }
        match $operator {
            Operator::Sum => Some(|from, into| {
                each(from, into, |a, b| {
                    let (a, b) = (read(a), read(b));
                    written((a.0 + b.0, a.1 + b.1))
                });
            }),
            Operator::Product => Some(|from, into| {
                each(from, into, |a, b| {
                    let (a, b) = (read(a), read(b));
                    written((a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0))
                });
            }),
            _ => None,
        }
    }};
}

/// The pair whose value is before the other's, or of equal ones whose place is lower.
macro_rules! pair {
    ($type:ty, $whole:literal, $place:literal, $operator:expr) => {{
        fn read(pair: &[u8; $whole]) -> ($type, i32) {
            let (value, place) = (&pair[..size_of::<$type>()], &pair[$place..$place + 4]);
            let value = <$type>::from_ne_bytes(value.try_into().expect("the value of a pair"));
            (value, i32::from_ne_bytes(place.try_into().expect("the place of a pair")))
        }
        fn pick(a: [u8; $whole], b: [u8; $whole], a_is_before: fn($type, $type) -> bool) -> [u8; $whole] {
            let ((x, at), (y, other)) = (read(&a), read(&b));
            if a_is_before(x, y) || (x == y && at < other) { a } else { b }
        }
        match $operator {
            Operator::MinPlace => Some(|from, into| each(from, into, |a, b| pick(a, b, |x, y| x < y))),
            Operator::MaxPlace => Some(|from, into| each(from, into, |a, b| pick(a, b, |x, y| x > y))),
            _ => None,
        }
    }};
}

fn builtin(operator: Operator, element: Element) -> Option<Builtin> {
    match element {
        Element::I8 => integer!(i8, operator),
        Element::I16 => integer!(i16, operator),
        Element::I32 => integer!(i32, operator),
        Element::I64 => integer!(i64, operator),
        Element::U8 => integer!(u8, operator),
        Element::U16 => integer!(u16, operator),
        Element::U32 => integer!(u32, operator),
        Element::U64 => integer!(u64, operator),
        Element::F32 => float!(f32, operator),
        Element::F64 => float!(f64, operator),
        Element::C32 => complex!(f32, 4, operator),
        Element::C64 => complex!(f64, 8, operator),
        Element::F32AndPlace => pair!(f32, 8, 4, operator),
        Element::F64AndPlace => pair!(f64, 16, 8, operator),
        Element::I16AndPlace => pair!(i16, 8, 4, operator),
        Element::I32AndPlace => pair!(i32, 8, 4, operator),
        Element::I64AndPlace => pair!(i64, 16, 8, operator),
    }
}

#[cfg(test)]
#[path = "reduction_tests.rs"]
mod tests;
