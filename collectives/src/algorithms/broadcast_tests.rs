use crate::simulation::{Case, check, sweep};
use crate::{Algorithm, Kind};
use proptest::prelude::*;

#[test]
fn every_algorithm_agrees_with_the_serial_model() {
    for algorithm in Algorithm::of(Kind::Broadcast) {
        sweep(Kind::Broadcast, (1..=18_u32).prop_map(move |number| algorithm.with_number(number)), 100);
        check(&Case::new(Kind::Broadcast, 5, 3), algorithm, 1);
    }
}
