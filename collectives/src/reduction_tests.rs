use super::*;

const ELEMENTS: [Element; 17] = [
    Element::I8,
    Element::I16,
    Element::I32,
    Element::I64,
    Element::U8,
    Element::U16,
    Element::U32,
    Element::U64,
    Element::F32,
    Element::F64,
    Element::C32,
    Element::C64,
    Element::F32AndPlace,
    Element::F64AndPlace,
    Element::I16AndPlace,
    Element::I32AndPlace,
    Element::I64AndPlace,
];

const OPERATORS: [Operator; 12] = [
    Operator::Sum,
    Operator::Product,
    Operator::Min,
    Operator::Max,
    Operator::LogicalAnd,
    Operator::LogicalOr,
    Operator::LogicalXor,
    Operator::BitAnd,
    Operator::BitOr,
    Operator::BitXor,
    Operator::MinPlace,
    Operator::MaxPlace,
];

fn combined(operator: Operator, element: Element, left: &[u8], right: &[u8]) -> Vec<u8> {
    let reduction = Reduction::new(operator, element).expect("defined");
    let mut result = right.to_vec();
    reduction.combine(left, &mut result, true).expect("no panic");
    result
}

fn of<const N: usize>(numbers: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.into_iter().flatten().collect()
}

/// MPI-4.1, 6.9.2: integers have all but places, floats and complex numbers less, pairs
/// the places alone.
#[test]
fn what_is_defined_is_what_mpi_says() {
    let defined = |element: Element| {
        OPERATORS.into_iter().filter(|&operator| Reduction::new(operator, element).is_ok()).count()
    };
    let counts: Vec<usize> = ELEMENTS.into_iter().map(defined).collect();
    assert_eq!(counts, [10, 10, 10, 10, 10, 10, 10, 10, 4, 4, 2, 2, 2, 2, 2, 2, 2]);
    let error = Reduction::new(Operator::BitAnd, Element::F64).expect_err("no bits");
    assert!(error.to_string().contains("BitAnd is not defined for F64"), "{error}");
}

#[test]
fn codes_are_apart() {
    let mut codes = std::collections::HashSet::new();
    for (operator, element) in OPERATORS.iter().flat_map(|&o| ELEMENTS.map(|e| (o, e))) {
        if let Ok(reduction) = Reduction::new(operator, element) {
            assert!(codes.insert(reduction.code()));
            assert_eq!(reduction.element_bytes(), element.bytes());
        }
    }
    assert!(codes.insert(Reduction::custom(0, 8, true, |_, _| {}).code()));
}

#[test]
fn integers() {
    let (a, b) = ([200u8, 7, 0, 255], [100u8, 9, 5, 255]);
    let result = |operator| combined(operator, Element::U8, &a, &b);
    assert_eq!(result(Operator::Sum), [44, 16, 5, 254]);
    assert_eq!(result(Operator::Product), [32, 63, 0, 1]);
    assert_eq!(result(Operator::Min), [100, 7, 0, 255]);
    assert_eq!(result(Operator::Max), [200, 9, 5, 255]);
    assert_eq!(result(Operator::LogicalAnd), [1, 1, 0, 1]);
    assert_eq!(result(Operator::LogicalOr), [1, 1, 1, 1]);
    assert_eq!(result(Operator::LogicalXor), [0, 0, 1, 0]);
    assert_eq!(result(Operator::BitAnd), [64, 1, 0, 255]);
    assert_eq!(result(Operator::BitOr), [236, 15, 5, 255]);
    assert_eq!(result(Operator::BitXor), [172, 14, 5, 0]);
    let signed =
        |operator, a: i16, b: i16| combined(operator, Element::I16, &a.to_ne_bytes(), &b.to_ne_bytes());
    assert_eq!(signed(Operator::Min, -5, 3), (-5i16).to_ne_bytes());
    assert_eq!(signed(Operator::Sum, i16::MAX, 1), i16::MIN.to_ne_bytes());
}

#[test]
fn floats_and_complex_numbers() {
    let result =
        |operator, a: f64, b: f64| combined(operator, Element::F64, &a.to_ne_bytes(), &b.to_ne_bytes());
    assert_eq!(result(Operator::Sum, 1.5, 2.25), 3.75f64.to_ne_bytes());
    assert_eq!(result(Operator::Max, -1.0, -2.0), (-1f64).to_ne_bytes());
    let (a, b) = (of([1f32, 2.0].map(f32::to_ne_bytes)), of([3f32, -1.0].map(f32::to_ne_bytes)));
    assert_eq!(combined(Operator::Product, Element::C32, &a, &b), of([5f32, 5.0].map(f32::to_ne_bytes)));
    assert_eq!(combined(Operator::Sum, Element::C32, &a, &b), of([4f32, 1.0].map(f32::to_ne_bytes)));
}

#[test]
fn pairs() {
    let pair = |value: f64, place: i32| {
        let mut pair = [0; 16];
        pair[..8].copy_from_slice(&value.to_ne_bytes());
        pair[8..12].copy_from_slice(&place.to_ne_bytes());
        pair
    };
    let result = |operator, a: [u8; 16], b: [u8; 16]| combined(operator, Element::F64AndPlace, &a, &b);
    assert_eq!(result(Operator::MinPlace, pair(1.0, 5), pair(2.0, 1)), pair(1.0, 5));
    assert_eq!(result(Operator::MaxPlace, pair(1.0, 5), pair(2.0, 1)), pair(2.0, 1));
    assert_eq!(result(Operator::MaxPlace, pair(2.0, 5), pair(2.0, 1)), pair(2.0, 1));
    assert_eq!(result(Operator::MinPlace, pair(2.0, 1), pair(2.0, 5)), pair(2.0, 1));
}

#[test]
fn the_callers_own_from_both_sides() {
    // Keeps the left one.
    let first = Reduction::custom(0, 1, false, |left, right| right.copy_from_slice(left));
    let (from, mut into) = ([1, 2], [3, 4]);
    first.combine(&from, &mut into, true).expect("no panic");
    assert_eq!(into, [1, 2]);
    let mut into = [3, 4];
    first.combine(&from, &mut into, false).expect("no panic");
    assert_eq!(into, [3, 4]);
}

#[test]
#[should_panic(expected = "at least one byte")]
fn elements_of_no_bytes() {
    let _none = Reduction::custom(0, 0, true, |_, _| {});
}
