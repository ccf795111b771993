use crate::algorithm::{Algorithm, Kind};
use crate::call::Domain;
use crate::model::{Counting, Hierarchy, Model};
use lmt_selector::contention::{BROADWELL, KNL, Parameters};

const BYTES: u64 = 1 << 20;

fn predicted(model: Model<'_>, algorithm: Algorithm) -> Option<f64> {
    model.predict_us(Kind::Broadcast, algorithm, 28, BYTES)
}

fn model(parameters: &Parameters, [nodes, caches, members]: [u32; 3]) -> Model<'_> {
    Model::new(parameters, Counting::Readers).with_hierarchy(Hierarchy { nodes, caches, members })
}

#[test]
fn the_formula_s_value() {
    let parameters = &BROADWELL.parameters;
    let (line, lines) = (parameters.line_us, 5.0 * parameters.line_us);
    // 16 pieces: by two nodes and then by caches of two, each of seven ranks.
    let of = |readers| parameters.copy_us(64 << 10, readers) + line;
    let wanted = 2.0 * lines + of(8) + of(7) + of(6) + 15.0 * of(8);
    let found = predicted(model(parameters, [2, 2, 7]), Algorithm::Hierarchical(64)).unwrap();
    assert!((found - wanted).abs() < 1e-6 * wanted, "{found} {wanted}");
    // Of one level that is told apart, two stages.
    let wanted = 2.0 * lines + of(14) + of(13) + 15.0 * of(14);
    let found = predicted(model(parameters, [2, 1, 14]), Algorithm::Hierarchical(64)).unwrap();
    assert!((found - wanted).abs() < 1e-6 * wanted, "{found} {wanted}");
}

#[test]
fn one_domain_takes_what_a_direct_read_takes_and_an_unknown_one_is_not_predicted() {
    for counting in [Counting::Ranks, Counting::Readers] {
        let bare = Model::new(&BROADWELL.parameters, counting);
        assert_eq!(predicted(bare, Algorithm::Hierarchical(64)), None);
        let one = bare.with_hierarchy(Hierarchy { nodes: 1, caches: 1, members: 28 });
        assert_eq!(predicted(one, Algorithm::Hierarchical(64)), predicted(one, Algorithm::DirectRead));
    }
}

#[test]
fn it_is_chosen_where_few_read_from_each_and_its_best_piece_is_found() {
    let (parameters, bytes) = (&KNL.parameters, 64 << 10);
    let candidates: Vec<Algorithm> =
        Algorithm::of(Kind::Broadcast).filter(|one| *one != Algorithm::Slots).collect();
    let chosen = |hierarchy| {
        let choice = model(parameters, hierarchy).choose(Kind::Broadcast, 12, bytes, &candidates);
        choice.expect("a way")
    };
    let hierarchical = chosen([2, 2, 3]);
    assert!(matches!(hierarchical.algorithm, Algorithm::Hierarchical(_)), "{hierarchical:?}");
    let others = (2..=12).map(|power| Algorithm::Hierarchical(1 << power));
    let least = others
        .filter_map(|one| model(parameters, [2, 2, 3]).predict_us(Kind::Broadcast, one, 12, bytes))
        .fold(f64::MAX, f64::min);
    assert!((hierarchical.predicted_us - least).abs() < 1e-9, "{hierarchical:?} {least}");
    assert!(!matches!(chosen([1, 1, 12]).algorithm, Algorithm::Hierarchical(_)));
}

#[test]
fn the_widest_part_of_each_level_counts() {
    let domain = |(node, cache)| Domain { node, cache };
    let domains: Vec<Domain> =
        [(0, 0), (0, 1), (2, 2), (2, 2), (0, 1), (2, 2), (0, 6)].into_iter().map(domain).collect();
    assert_eq!(Hierarchy::of(&domains), Hierarchy { nodes: 2, caches: 3, members: 3 });
    assert_eq!(Hierarchy::of(&[]), Hierarchy { nodes: 1, caches: 1, members: 1 });
}

#[test]
fn no_length_and_no_number_of_ranks_is_too_much_to_count() {
    let model = model(&BROADWELL.parameters, [u32::MAX; 3]);
    let time = model.predict_us(Kind::Broadcast, Algorithm::Hierarchical(u32::MAX), u32::MAX, u64::MAX);
    assert!(time.is_some_and(|time| time > 1.0 && time.is_finite()));
}
