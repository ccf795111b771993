use super::*;

#[test]
fn everybody_has_one_turn_in_each_round() {
    for number in 1..14 {
        for round in 0..40 {
            let mut all: Vec<usize> = order(number, round).collect();
            assert_eq!(all[0], round % number);
            all.sort_unstable();
            assert_eq!(all, (0..number).collect::<Vec<usize>>());
        }
    }
    assert_eq!(order(0, 3).count(), 0);
}

#[test]
fn nobody_follows_the_same_one_always() {
    let before_first = |round: usize| -> usize {
        let all: Vec<usize> = order(7, round).collect();
        let at = all.iter().position(|&one| one == 0).unwrap();
        all[(at + 6) % 7]
    };
    let mut all: Vec<usize> = (0..15).map(before_first).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, [1, 2, 3, 4, 5, 6]);
}
