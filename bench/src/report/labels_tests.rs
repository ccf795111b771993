use super::*;

/// Whether none of these lies on another.
fn are_apart(wanted: &[(f64, f64)], places: &[f64]) -> bool {
    let mut spans: Vec<(f64, f64)> =
        wanted.iter().zip(places).map(|(&(_, extent), &at)| (at - extent / 2.0, at + extent / 2.0)).collect();
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    spans.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1e-9)
}

#[test]
fn what_has_room_stays_where_it_is() {
    assert_eq!(apart(&[(50.0, 15.0), (10.0, 15.0), (90.0, 15.0)], &(0.0..100.0)), [50.0, 10.0, 90.0]);
    assert!(apart(&[], &(0.0..1.0)).is_empty());
}

#[test]
fn what_is_at_the_same_place_moves_apart_evenly() {
    assert_eq!(apart(&[(50.0, 10.0), (50.0, 10.0)], &(0.0..100.0)), [45.0, 55.0]);
    assert_eq!(
        apart(&[(50.0, 10.0), (50.0, 10.0), (58.0, 10.0)], &(0.0..100.0)),
        [42.666_666_666_666_664, 52.666_666_666_666_664, 62.666_666_666_666_664]
    );
}

#[test]
fn labels_stay_within_bounds_as_long_as_they_fit() {
    let at_an_end = apart(&[(99.0, 10.0), (98.0, 10.0), (60.0, 10.0)], &(0.0..100.0));
    assert_eq!(at_an_end, [95.0, 85.0, 60.0]);
    assert_eq!(apart(&[(0.0, 10.0), (1.0, 10.0)], &(0.0..100.0)), [5.0, 15.0]);
    // What was pushed back by an end pushes others.
    let pushed = apart(&[(99.0, 10.0), (98.0, 10.0), (82.0, 10.0)], &(0.0..100.0));
    assert_eq!(pushed, [95.0, 85.0, 75.0]);
}

#[test]
fn none_ever_lies_on_another() {
    // Numbers that follow no order, from a multiplication.
    let mut state = 1_u64;
    let mut next = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) % most) as f64
    };
    for _ in 0..500 {
        let number = next(14) as usize;
        let wanted: Vec<(f64, f64)> = (0..number).map(|_| (next(400), 1.0 + next(40))).collect();
        let places = apart(&wanted, &(0.0..400.0));
        assert!(are_apart(&wanted, &places), "{wanted:?}: {places:?}");
        if wanted.iter().map(|(_, extent)| extent).sum::<f64>() <= 400.0 {
            let inside = wanted
                .iter()
                .zip(&places)
                .all(|(&(_, extent), &at)| at - extent / 2.0 >= -1e-9 && at + extent / 2.0 <= 400.0 + 1e-9);
            assert!(inside, "{wanted:?}: {places:?}");
        }
    }
}

const BOUNDS: Area = Area { left: 0.0, top: 0.0, width: 300.0, height: 200.0 };

#[test]
fn a_label_stands_beside_its_point_on_nothing_else() {
    let place = beside((100.0, 100.0), (40.0, 14.0), &[], &[(100.0, 100.0)], BOUNDS);
    assert!(!place.has((100.0, 100.0)) && (place.left - 100.0).abs() < 60.0, "{place:?}");
    // A line goes on to the right: the label is above it.
    let line: Vec<(f64, f64)> = (0..200).map(|x| (f64::from(x), 100.0)).collect();
    let above = beside((100.0, 100.0), (40.0, 14.0), &[], &line, BOUNDS);
    assert!(line.iter().all(|&point| !above.has(point)), "{above:?}");
    // Another label is there already.
    let other = beside((100.0, 100.0), (40.0, 14.0), &[above], &line, BOUNDS);
    assert!(!other.meets(above) && line.iter().all(|&point| !other.has(point)), "{other:?}");
}

#[test]
fn a_label_at_the_edge_stays_inside() {
    let place = beside((299.0, 1.0), (40.0, 14.0), &[], &[], BOUNDS);
    assert!(place.left + place.width <= 300.0 && place.top >= 0.0, "{place:?}");
}
