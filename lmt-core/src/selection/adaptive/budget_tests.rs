use super::*;

#[test]
fn one_percent_is_earned_and_no_pause_pays() {
    let mut budget = Budget::new();
    budget.spend(FIRST_ROUNDS, false);
    (0..1_000).for_each(|_| budget.earn(1.0));
    let total = budget.steady + budget.change;
    assert!((total - 10.0).abs() < 1e-6, "{total}");
    budget.earn(1e9);
    assert!(budget.steady + budget.change < total + 0.2);
}

#[test]
fn what_is_saved_is_bounded_and_debts_are_paid_off() {
    let mut budget = Budget::new();
    (0..1_000_000).for_each(|_| budget.earn(1.0));
    assert!(!budget.allows_change(FIRST_ROUNDS + 1.0) && !budget.allows_steady(SAVED_ROUNDS + 1.0));
    assert!(!budget.is_scarce());
    budget.spend(SAVED_ROUNDS + 5.0, true);
    (0..1_000).for_each(|_| budget.earn(1.0));
    assert!(!budget.allows_steady(1.0));
    budget.spend(0.9 * FIRST_ROUNDS, false);
    assert!(budget.is_scarce() && budget.allows_change(3.0));
}
