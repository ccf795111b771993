use super::*;

fn found(description: &str, allowed: &[usize]) -> Settings {
    settings(Some(&Machine::synthetic(description).unwrap()), allowed, 100)
}

fn of(settings: &Settings) -> Vec<(Place, usize)> {
    settings.settings.iter().map(|setting| (setting.place, setting.pairs.len())).collect()
}

#[test]
fn every_place_that_can_be_reached_is_measured_once_and_with_many_pairs() {
    // The E5345 of the papers: two packages, an L2 for each two cores.
    let settings = found("package:2 l2:2(size=4194304) core:2 pu:1", &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(
        of(&settings),
        [
            (Place::SharedL2, 1),
            (Place::SharedL2, 4),
            (Place::SameNuma, 1),
            (Place::SameNuma, 4),
            (Place::Other, 1),
            (Place::Other, 4),
        ]
    );
    for Setting { pairs, .. } in &settings.settings {
        let mut cpus: Vec<usize> = pairs.iter().flatten().copied().collect();
        cpus.sort_unstable();
        assert!(cpus.is_sorted_by(|one, next| one < next), "each CPU once: {pairs:?}");
    }
    assert_eq!(settings.skipped.len(), 1, "{:?}", settings.skipped);
    assert!(settings.skipped[0].starts_with("the same core"));
}

#[test]
fn hardware_threads_are_the_same_core() {
    let settings = found("package:1 l3:1 core:1 pu:2", &[0, 1]);
    assert_eq!(of(&settings), [(Place::SameCore, 1)]);
    assert!(settings.skipped[0].starts_with("many pairs"), "{:?}", settings.skipped);
}

#[test]
fn only_cpus_that_may_be_used_take_part() {
    let settings = found("package:2 l2:2(size=4194304) core:2 pu:1", &[1, 6]);
    assert_eq!(of(&settings), [(Place::Other, 1)]);
    assert_eq!(settings.settings[0].pairs, [[1, 6]]);
    assert_eq!(settings.skipped.len(), 2);
}

#[test]
fn one_cpu_is_all_there_is() {
    let settings = found("package:1 core:2 pu:1", &[1]);
    assert_eq!(settings.settings, [Setting { place: Place::SameCore, pairs: vec![[1, 1]] }]);
    assert!(settings.skipped[0].contains("CPU 1 only"));
}

#[test]
fn without_a_machine_nothing_is_known_of_places() {
    let settings = settings(None, &[0, 1, 2, 3], 100);
    assert_eq!(of(&settings), [(Place::Other, 1), (Place::Other, 2)]);
}

#[test]
fn memory_bounds_the_pairs() {
    for (most, expected) in [(0, 1), (1, 1), (3, 3), (4, 4)] {
        let found = settings(None, &[0, 1, 2, 3, 4, 5, 6, 7], most);
        assert_eq!(found.settings.last().unwrap().pairs.len(), expected);
        assert_eq!(found.skipped.iter().any(|sentence| sentence.contains("there is memory")), most < 4);
    }
}
