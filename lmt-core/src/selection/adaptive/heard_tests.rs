use super::*;
use crate::selection::adaptive::simulation;

#[test]
fn the_last_way_of_each_peer_and_class_is_known_until_the_peer_is_forgotten() {
    let way = |at: usize| Way::By(simulation::candidates(3).as_slice()[at]);
    let mut all = AllHeard::default();
    all.note(2, 65_536, way(1));
    all.note(2, 70_000, Way::Cells);
    all.note(2, 1 << 20, way(2));
    assert_eq!(all.of(2, 131_071), Heard { way: Some(Way::Cells), count: 2 });
    assert_eq!(all.of(2, 1 << 20), Heard { way: Some(way(2)), count: 1 });
    assert_eq!((all.of(1, 65_536), all.of(7, 0)), (Heard::default(), Heard::default()));
    all.forget(2);
    all.forget(9);
    assert_eq!(all.of(2, 65_536), Heard::default());
}
