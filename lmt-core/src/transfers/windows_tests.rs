use super::*;
use crate::mechanism::Model;
use crate::rendezvous::{Choice, MechanismTag};

/// The models to be tried where both ends or a stream come first.
fn models(in_flight: u32, crowded: bool, order: [(u32, Model); 3]) -> Option<[Model; 3]> {
    let choice = |(tag, model)| Choice { mechanism: MechanismTag(tag), model };
    let ways: Candidates = order.into_iter().map(choice).collect();
    let window = Window { in_flight };
    let models = window.ways(&ways, crowded)?;
    Some(std::array::from_fn(|at| models.as_slice()[at].model))
}

#[test]
fn many_messages_are_copied_by_their_receiver_alone() {
    let order = [(1, Model::Both), (2, Model::Stream), (1, Model::Get)];
    assert_eq!(models(MANY - 1, false, order), None);
    assert_eq!(models(MANY, false, order), Some([Model::Get, Model::Stream, Model::Both]));
    assert_eq!(models(0, true, order), Some([Model::Get, Model::Stream, Model::Both]));
    assert_eq!(models(MANY, true, order), Some([Model::Get, Model::Both, Model::Stream]));
}

#[test]
fn streams_stay_first_where_there_are_cores_for_them() {
    let order = [(2, Model::Stream), (1, Model::Both), (1, Model::Get)];
    assert_eq!(models(64, false, order), Some([Model::Stream, Model::Both, Model::Get]));
    assert_eq!(models(0, true, order), Some([Model::Stream, Model::Both, Model::Get]));
    assert_eq!(models(64, true, order), Some([Model::Both, Model::Get, Model::Stream]));
}
