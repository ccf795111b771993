use super::*;
use crate::algorithm::Kind;
use crate::simulation::{Case, any_call, check};

#[test]
fn nobody_leaves_before_all_have_come() {
    for size in 1..=40 {
        for algorithm in Algorithm::of(Kind::Barrier) {
            check(&Case::new(Kind::Barrier, size, 0), algorithm, u64::from(size));
        }
    }
}

#[test]
fn messages_take_log2_rounds() {
    for (size, rounds) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1024, 10), (u32::MAX, 32)]
    {
        let call = any_call(&Case { domains: vec![], ..Case::new(Kind::Barrier, size.min(64), 0) }, 0);
        assert_eq!(program(&Call { size, ..call }, Algorithm::Messages).steps.len(), rounds, "{size} ranks");
    }
}
