use super::*;

#[test]
fn the_one_alone_comes_first() {
    for access in Access::ALL {
        for most in [1, 2, 3, 64] {
            let cases = access.cases(most);
            assert_eq!(cases[0].at_once, 1, "{access:?}");
            assert!(cases.iter().any(|reach| reach.at_once == most));
            assert!(cases.iter().all(|reach| reach.at_once <= most));
            let mut names: Vec<String> = cases.iter().map(|reach| reach.name()).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), cases.len(), "{names:?}");
        }
    }
    let numbers: Vec<u32> = Access::AllToAll.cases(6)[..4].iter().map(|reach| reach.at_once).collect();
    assert_eq!(numbers, [1, 2, 4, 6]);
}

#[test]
fn writers_write_and_readers_read() {
    assert!(Access::AllToOne.cases(4).iter().all(|reach| reach.writes));
    assert!(Access::OneToAll.cases(4).iter().all(|reach| !reach.writes));
}

#[test]
fn pairs_share_nobody_and_others_share_one() {
    for at_once in 1..9 {
        let reach = |target| Reach { target, writes: false, at_once };
        let mut owners: Vec<u32> = (1..=at_once).map(|rank| reach(Target::Pairs).owner(rank)).collect();
        assert!((1..=at_once).zip(&owners).all(|(rank, owner)| rank != *owner), "{owners:?}");
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(owners.len(), at_once as usize);
        for target in [Target::Same, Target::Different] {
            assert!((1..=at_once).all(|rank| reach(target).owner(rank) == 0));
        }
        let blocks: Vec<u32> = (1..=at_once).map(|rank| reach(Target::Different).block(rank)).collect();
        assert_eq!(blocks, (0..at_once).collect::<Vec<u32>>());
    }
}
