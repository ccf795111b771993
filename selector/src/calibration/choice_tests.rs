use proptest::prelude::*;

use super::*;
use crate::calibration::Load;
use crate::calibration::testing::{Line, MACHINE, Scatter, measured, order, scattered};
use crate::topology::Place;

const LOAD: Load = Load { place: Place::SharedL3, pairs: 1, off_cache: false };

fn exact(lines: &[Line]) -> Course {
    measured(lines, LOAD, 1, 0.0, 3, 5)
}

fn runs(chosen: &[Chosen]) -> Vec<(&str, u64)> {
    let run = |run: &[Chosen]| run.last().map(|last| last.bytes);
    let chunks = chosen.chunk_by(|one, next| one.way == next.way);
    chunks.filter_map(|chunk| Some((chunk.first()?.way.as_str(), run(chunk)?))).collect()
}

#[test]
fn each_class_has_its_fastest_way_and_ties_go_to_the_first() {
    let course = exact(&MACHINE);
    let chosen = choose(&course, &order(&MACHINE), None);
    // 300 + 0.35 n = 1500 + 0.12 n at 5217; 1500 + 0.12 n = 9000 + 0.07 n at 150000.
    assert_eq!(runs(&chosen), [(EAGER, 4096), ("read:get", 131_072), ("driver:get", 16 << 20)]);
    assert_eq!(chosen.len(), 25);
}

#[test]
fn of_ways_that_are_equal_the_first_of_the_order_is_taken() {
    let course = exact(&MACHINE);
    let mut order = order(&MACHINE);
    order.swap(1, 2);
    let chosen = choose(&course, &order, None);
    assert_eq!(runs(&chosen)[1].0, "read:put");
    // And the way of another load before that.
    let like: Vec<Chosen> =
        chosen.iter().map(|one| Chosen { way: "read:get".into(), ..one.clone() }).collect();
    assert_eq!(runs(&choose(&course, &order, Some(&like)))[1].0, "read:get");
}

#[test]
fn cells_are_for_short_messages_only() {
    let lines = [
        Line { way: EAGER, start_ns: 10.0, byte_ns: 0.01 },
        Line { way: "read:get", start_ns: 20.0, byte_ns: 0.9 },
    ];
    let chosen = choose(&exact(&lines), &order(&lines), None);
    assert_eq!(runs(&chosen), [(EAGER, EAGER_MAX_BYTES), ("read:get", 16 << 20)]);
}

#[test]
fn nothing_goes_back_to_cells() {
    let mut course = Course::new(LOAD);
    for (bytes, read, cells) in [(1, 10.0, 20.0), (2, 10.0, 20.0), (4, 30.0, 10.0), (8, 10.0, 20.0)] {
        course.add(bytes, "read:get", 0, &[read; 5]);
        course.add(bytes, EAGER, 0, &[cells; 5]);
    }
    let order = [EAGER.to_owned(), "read:get".to_owned()];
    let chosen = choose(&course, &order, None);
    let at = chosen.iter().rposition(|one| one.way == EAGER);
    assert!(at.is_none_or(|at| chosen[..at].iter().all(|one| one.way == EAGER)), "{chosen:?}");
    assert_eq!(chosen.len(), 4);
}

#[test]
fn a_class_without_times_has_no_way() {
    let mut course = Course::new(LOAD);
    course.add(1, EAGER, 0, &[5.0]);
    course.add(2, "read:get", 0, &[5.0]);
    let chosen = choose(&course, &["read:get".to_owned(), "gone:put".to_owned()], None);
    assert_eq!(chosen, [Chosen { bytes: 2, way: "read:get".into() }]);
    assert!(choose(&Course::new(LOAD), &["read:get".to_owned()], None).is_empty());
}

#[test]
fn one_class_that_is_slower_by_noise_makes_no_island() {
    let mut course = Course::new(LOAD);
    for power in 12..20u32 {
        let b = if power == 15 { 0.975 } else { 1.01 };
        for pass in 0..3 {
            course.add(1 << power, "a:get", pass, &[1000.0, 990.0, 1010.0]);
            course.add(1 << power, "b:get", pass, &[1000.0 * b, 990.0 * b, 1010.0 * b]);
        }
    }
    let chosen = choose(&course, &["a:get".to_owned(), "b:get".to_owned()], None);
    assert_eq!(runs(&chosen).len(), 1, "{chosen:?}");
}

/// How many classes two choices agree on.
fn agreement(one: &[Chosen], other: &[Chosen]) -> f64 {
    let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
    same as f64 / one.len().max(1) as f64
}

/// The acceptance of issue 4, without a machine: two runs agree on 90 % of size
/// classes, with times that scatter by 5 % and by 10 % around a time that itself
/// differs, for each way by itself, by up to 4 % from pass to pass. Over many
/// seeds, one pair of runs in twenty may be unlucky. What drifts more needs more
/// passes, which `lmt tune` makes as long as ways are open; the three passes that
/// it makes at least are enough for a drift of 2 %.
#[test]
fn two_noisy_runs_agree_on_nine_classes_of_ten() {
    let order = order(&MACHINE);
    for (deviation, drift, passes, times) in [
        (0.05, 0.0, 3, 7),
        (0.05, 0.02, 3, 7),
        (0.05, 0.03, 5, 7),
        (0.05, 0.04, 7, 7),
        (0.10, 0.02, 5, 15),
        (0.10, 0.03, 8, 15),
        (0.10, 0.04, 8, 15),
    ] {
        let scatter = Scatter { deviation, drift, passes, times };
        let choice = |seed| choose(&scattered(&MACHINE, LOAD, seed, scatter), &order, None);
        let choices: Vec<Vec<Chosen>> = (0..200).map(choice).collect();
        let agreements: Vec<f64> = choices.chunks(2).map(|two| agreement(&two[0], &two[1])).collect();
        let good = agreements.iter().filter(|agreement| **agreement >= 0.9).count();
        let mean = agreements.iter().sum::<f64>() / agreements.len() as f64;
        println!("{scatter:?}: {good} of 100, {mean:.3} on average");
        assert!(good >= 95 && mean >= 0.97, "{good} of 100, {mean} at {scatter:?}");
    }
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let ways = [EAGER, "a:get", "b:put", "c:get", "d:cooperative"];
    let line = |way| {
        (50.0..20_000.0, 0.02..1.0).prop_map(move |(start_ns, byte_ns)| Line { way, start_ns, byte_ns })
    };
    ways.map(line).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Without noise no class is more than 3 % slower than its fastest way.
    #[test]
    fn no_choice_is_far_from_the_best(lines in lines()) {
        let course = exact(&lines);
        let without_cells: Vec<Line> = lines.iter().filter(|line| line.way != EAGER).cloned().collect();
        for one in choose(&course, &order(&without_cells), None) {
            let own = lines.iter().find(|line| line.way == one.way).unwrap().ns(one.bytes);
            let best = without_cells.iter().map(|line| line.ns(one.bytes)).fold(f64::INFINITY, f64::min);
            prop_assert!(own <= best * 1.031, "{one:?}: {own} against {best}");
        }
    }

    /// With noise of 5 % the choice is still near the best by the true times: no
    /// more than 15 % in any class.
    #[test]
    fn noise_leads_to_no_bad_choice(lines in lines(), seed: u64) {
        let lines = &lines[1..];
        let course = measured(lines, LOAD, seed, 0.05, 3, 15);
        for one in choose(&course, &order(lines), None) {
            let time = |line: &Line| line.ns(one.bytes);
            let own = lines.iter().find(|line| line.way == one.way).map(time).unwrap();
            let best = lines.iter().map(time).fold(f64::INFINITY, f64::min);
            prop_assert!(own <= best * 1.15, "{one:?}: {own} against {best}");
        }
    }

    /// Two straight lines cross once, and so do their ranges, noise or not.
    #[test]
    fn two_lines_have_one_crossover(
        start in 100.0..2000.0f64,
        later in 2.0..20.0f64,
        byte in 0.1..0.5f64,
        faster in 0.3..0.8f64,
        seed: u64,
        deviation in 0.0..0.08f64,
    ) {
        let lines = [
            Line { way: "a:get", start_ns: start, byte_ns: byte },
            Line { way: "b:get", start_ns: start * later, byte_ns: byte * faster },
        ];
        let course = measured(&lines, LOAD, seed, deviation, 3, 15);
        let chosen = choose(&course, &order(&lines), None);
        prop_assert!(runs(&chosen).len() <= 2, "{:?}", runs(&chosen));
        prop_assert_eq!(runs(&chosen)[0].0, "a:get");
    }
}
