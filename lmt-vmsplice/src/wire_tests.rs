use super::*;

#[test]
fn names_travel_and_pipes_go_round() {
    for (messages, pipes) in [(1, 1), (u64::MAX, 3), (1 << 40, 1 << 24), (7, (1 << 24) - 1)] {
        let name = Name::of(messages, pipes);
        assert_eq!(Name::parse(&name.cookie()), Some(name));
        assert!(name.cookie().as_bytes().len() == 8);
        assert!(!name.awaits_later_than(pipes) && !name.awaits_later_than(pipes + 1));
        assert!(name.awaits_later_than(pipes - 1));
    }
    assert_eq!(Name::parse(&Cookie::empty()), None);
}
