use super::*;

fn choice(mechanism: u16, model: Model) -> Choice {
    Choice { mechanism: MechanismTag(mechanism.into()), model }
}

#[test]
fn streams_go_last_and_nothing_else_changes_its_place() {
    let order = [
        choice(1, Model::Stream),
        choice(1, Model::Cooperative),
        choice(2, Model::Both),
        choice(3, Model::Stream),
        choice(2, Model::Get),
    ];
    let last: Candidates = order.into_iter().collect();
    let expected = [order[1], order[2], order[4], order[0], order[3]];
    assert_eq!(last.with_streams_last().as_slice(), expected);
    let only: Candidates = [order[0], order[3]].into_iter().collect();
    assert_eq!(only.with_streams_last().as_slice(), only.as_slice());
    assert!(Candidates::NONE.with_streams_last().as_slice().is_empty());
}

#[test]
fn one_end_goes_first_only_where_both_did() {
    let order =
        [choice(2, Model::Both), choice(1, Model::Stream), choice(3, Model::Get), choice(2, Model::Get)];
    let changed: Candidates = order.into_iter().collect();
    let expected = [order[3], order[1], order[2], order[0]];
    assert_eq!(changed.with_one_end_first().as_slice(), expected);
    let just_both = [order[0], order[3], order[1]];
    for rest in [&order[1..], &order[..3], &order[..1], &just_both, &[]] {
        let other: Candidates = rest.iter().copied().collect();
        assert_eq!(other.with_one_end_first().as_slice(), rest);
    }
}
