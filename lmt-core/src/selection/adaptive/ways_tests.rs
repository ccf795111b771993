use super::*;
use crate::mechanism::Model;
use crate::rendezvous::MechanismTag;

fn choice(number: u32, model: Model) -> Choice {
    Choice { mechanism: MechanismTag(number), model }
}

#[test]
fn each_mechanism_comes_before_the_second_models() {
    let (a, b, c) = (choice(1, Model::Get), choice(1, Model::Put), choice(2, Model::Get));
    let candidates: Candidates = [a, b, c].into_iter().collect();
    let alternatives = (0..3).collect();
    let ways = Ways { candidates: &candidates, alternatives, has_cells: true };
    assert!(ways.are_several());
    let order: Vec<Way> = ways.iter().collect();
    assert_eq!(order, [Way::By(a), Way::Cells, Way::By(c), Way::By(b)]);
}

#[test]
fn only_what_is_open_is_tried() {
    let candidates: Candidates = [choice(1, Model::Get), choice(2, Model::Get)].into_iter().collect();
    let ways = |open: &[usize], has_cells| Ways {
        candidates: &candidates,
        alternatives: open.iter().copied().collect(),
        has_cells,
    };
    assert!(ways(&[0, 1], false).are_several() && ways(&[0], true).are_several());
    assert!(!ways(&[0], false).are_several() && !ways(&[], true).are_several());
    assert!(!ways(&[1], true).are_several(), "what the policy takes first is kept");
    assert_eq!(ways(&[0], false).iter().collect::<Vec<_>>(), [Way::By(choice(1, Model::Get))]);
}
