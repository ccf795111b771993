use super::*;
use crate::mechanism::Model;
use crate::rendezvous::Candidates;
use crate::selection::adaptive::simulation;

const NOISE: f64 = 0.03;

fn arms(count: usize) -> Arms {
    let candidates: Candidates = simulation::candidates(count);
    assert_eq!(candidates.as_slice()[0].model, Model::Get);
    let alternatives = (0..count).collect();
    Arms::new(&Ways { candidates: &candidates, alternatives, has_cells: false })
}

#[test]
fn ratios_follow_the_way_that_is_chosen() {
    let mut arms = arms(3);
    arms.note(1, -0.5, false);
    arms.note(2, 0.25, false);
    assert_eq!(arms.better(NOISE), Some(1));
    assert_eq!(arms.choose(1), -0.5);
    let ratios: Vec<f64> = arms.all().iter().map(|arm| arm.log_ratio).collect();
    assert_eq!(ratios, [0.5, 0.0, 0.75]);
    assert_eq!(arms.better(NOISE), None);
}

#[test]
fn a_small_gain_has_to_be_certain() {
    let mut arms = arms(2);
    arms.note(1, -0.05, false);
    assert_eq!(arms.better(NOISE), None);
    assert!(arms.is_promising(1, NOISE));
    (0..30).for_each(|_| arms.note(1, -0.05, false));
    assert_eq!(arms.better(NOISE), Some(1));
    let mut equal = super::tests::arms(2);
    (0..30).for_each(|_| equal.note(1, -0.02, false));
    assert_eq!(equal.better(0.0), None, "the hysteresis");
}

#[test]
fn what_was_the_best_before_is_tried_first() {
    let mut arms = arms(4);
    arms.note(3, -0.5, false);
    arms.choose(3);
    arms.forget(1);
    arms.note(1, -0.5, false);
    arms.choose(1);
    arms.forget(2);
    assert_eq!(arms.next_to_explore(NOISE, true), Some(3));
    arms.note(3, 1.0, false);
    assert_eq!(arms.next_to_explore(NOISE, true), None);
    assert_eq!(arms.next_to_explore(NOISE, false), Some(0), "none was tried more");
}

#[test]
fn a_way_that_warms_up_is_looked_at_again() {
    let mut arms = arms(2);
    for log_ratio in [1.5, 1.0, 0.5, 0.1, -0.3] {
        arms.note(1, log_ratio, false);
        let known = arms.get(1).map_or(0.0, |arm| arm.log_ratio);
        assert!((known - log_ratio).abs() < 1e-9, "{known}");
        assert!(arms.is_promising(1, NOISE) || log_ratio < 0.0);
    }
    assert_eq!(arms.better(NOISE), Some(1));
}
