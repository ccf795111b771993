use super::super::Family;
use super::*;

const BASE: [&str; 12] =
    ["min", "max", "sum", "prod", "lor", "land", "bor", "band", "lxor", "bxor", "read", "write"];

fn action(datatype: i32, op: usize) -> Action {
    let family = if op < BASE.len() { Family::Fetch } else { Family::Compare };
    Action::of(family, datatype, op as i32).expect("an action")
}

/// What each of the twelve makes of 12 with 10.
fn all<T: Number>(datatype: i32, ops: &[usize], twelve: T, ten: T) -> Vec<Bits> {
    let (old, operand) = (twelve.write(), ten.write());
    ops.iter().map(|op| combine(action(datatype, *op), old, operand, 0).unwrap_or(old)).collect()
}

macro_rules! on_integers {
    ($($datatype:literal: $integer:ty),*) => {$(
        let bits = |list: &[$integer]| list.iter().map(|one| one.write()).collect::<Vec<_>>();
        let ops: Vec<usize> = (0..12).collect();
        let made = all::<$integer>($datatype, &ops, 12, 10);
        assert_eq!(made, bits(&[10, 12, 22, 120, 1, 1, 14, 8, 0, 6, 12, 10]), stringify!($integer));
        let wraps = combine(action($datatype, 2), <$integer>::MAX.write(), (1 as $integer).write(), 0);
        assert_eq!(wraps, Some(<$integer>::MIN.write()));
    )*};
}

#[test]
fn integers_of_all_lengths() {
    on_integers!(0: i8, 1: u8, 2: i16, 3: u16, 4: i32, 5: u32, 6: i64, 7: u64, 14: i128, 15: u128);
    let least = combine(action(0, 0), (3_i8).write(), (-1_i8).write(), 0);
    assert_eq!(least, Some(0xff), "a sign does not reach past its element");
    assert_eq!(combine(action(1, 0), 3, 0xff, 0), None, "without a sign it is the greatest");
}

#[test]
fn real_numbers() {
    let ops = [0, 1, 2, 3, 4, 5, 8, 10, 11];
    let expected = [0.5, 4.0, 4.5, 2.0, 1.0, 1.0, 0.0, 4.0, 0.5];
    let bits: Vec<Bits> = expected.iter().map(|one: &f64| one.write()).collect();
    assert_eq!(all(9, &ops, 4.0_f64, 0.5), bits);
    let bits: Vec<Bits> = expected.iter().map(|one: &f64| (*one as f32).write()).collect();
    assert_eq!(all(8, &ops, 4.0_f32, 0.5), bits);
    let is_none = |op| combine(action(9, op), 1.0.write(), f64::NAN.write(), 0).is_none();
    assert!(is_none(0) && is_none(1), "no number is neither less nor more");
}

#[test]
fn complex_numbers() {
    let (one, two) = (Complex(1.0_f64, 2.0), Complex(3.0, -1.0));
    assert_eq!(Complex::<f64>::read(one.write()), one);
    let made = all(11, &[2, 3, 5], one, two);
    assert_eq!(made, [Complex(4.0, 1.0).write(), Complex(5.0, 5.0).write(), Complex(1.0, 0.0).write()]);
    let (one, two) = (Complex(1.0_f32, 2.0), Complex(3.0, -1.0));
    assert_eq!(all(10, &[3], one, two), [Complex(5.0_f32, 5.0).write()]);
    assert_eq!(combine(action(10, 12), one.write(), two.write(), one.write()), Some(two.write()));
    assert_eq!(combine(action(10, 12), one.write(), two.write(), two.write()), None);
}

#[test]
fn comparisons_are_of_the_operand_with_what_is_there() {
    // Whether `compare` is equal, not equal, less or equal, less, more or equal, more.
    let holds = |compare: i16, there: i16| {
        [12, 13, 14, 15, 16, 17]
            .map(|op| combine(action(2, op), there.write(), 7_i16.write(), compare.write()).is_some())
    };
    assert_eq!(holds(-1, 5), [false, true, true, true, false, false]);
    assert_eq!(holds(5, 5), [true, false, true, false, true, false]);
    assert_eq!(holds(9, 5), [false, true, false, false, true, true]);
    assert_eq!(combine(action(3, 18), 0b1100, 0b1010, 0b0110), Some(0b1010), "masked bits");
}
