use super::*;
use crate::selection::adaptive::simulation;

fn way(at: usize) -> Way {
    Way::By(simulation::candidates(4).as_slice()[at])
}

fn round(messages: u32) -> Sample {
    Sample { ns: 1, bytes: 1, messages, is_spoilt: false }
}

/// Blocks in which so many messages go and come in each round.
fn blocks(lead: &mut Lead, heard: &mut Heard, blocks: usize, sent: u32, come: u32) -> bool {
    let mut is_alone = false;
    for _ in 0..blocks {
        (0..SAMPLES).for_each(|_| lead.sample(&round(sent)));
        heard.count = heard.count.wrapping_add(SAMPLES as u32 * come);
        is_alone |= lead.end_block(heard);
    }
    is_alone
}

#[test]
fn who_comes_second_answers_by_the_way_that_has_changed() {
    let mut lead = Lead::new(false);
    let mut heard = Heard { way: Some(way(1)), count: u32::MAX - 4 };
    assert_eq!(lead.follow(&heard), None, "not in turn yet");
    blocks(&mut lead, &mut heard, 3, 1, 1);
    assert!(lead.waits());
    assert_eq!(lead.follow(&heard), None, "that may be all that the peer ever takes");
    heard.way = Some(way(2));
    assert_eq!(lead.follow(&heard), Some(way(2)));
    heard.way = Some(way(1));
    assert_eq!(lead.follow(&heard), Some(way(1)), "back from the trial");
    assert!(lead.is_led());
}

#[test]
fn who_comes_first_follows_nobody() {
    let mut lead = Lead::new(true);
    let mut heard = Heard { way: Some(way(1)), count: 0 };
    blocks(&mut lead, &mut heard, 3, 1, 1);
    heard.way = Some(way(2));
    assert_eq!(lead.follow(&heard), None);
    assert!(lead.is_in_turn() && !lead.waits());
}

#[test]
fn in_windows_and_where_nothing_comes_back_each_is_on_its_own() {
    for (sent, come) in [(64, 64), (1, 0), (1, 3)] {
        let mut lead = Lead::new(false);
        let mut heard = Heard { way: Some(way(1)), count: 0 };
        blocks(&mut lead, &mut heard, 10, sent, come);
        heard.way = Some(way(2));
        assert!(!lead.is_in_turn() && lead.follow(&heard).is_none(), "{sent} and {come}");
    }
}

#[test]
fn a_peer_that_goes_away_leaves_the_choice() {
    let mut lead = Lead::new(false);
    let mut heard = Heard { way: Some(way(1)), count: 0 };
    blocks(&mut lead, &mut heard, 3, 1, 1);
    heard.way = Some(way(2));
    lead.follow(&heard);
    assert!(!blocks(&mut lead, &mut heard, usize::from(APART) - 1, 1, 0) && lead.is_led());
    assert!(blocks(&mut lead, &mut heard, 1, 1, 0) && !lead.is_led());
    assert!(!blocks(&mut lead, &mut heard, 1, 1, 1) && lead.follow(&heard).is_none());
}
