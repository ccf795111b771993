use super::*;
use crate::selection::Alternatives;
use crate::selection::adaptive::simulation;
use crate::selection::adaptive::ways::Ways;

/// The first four of five ways.
fn arms() -> Arms {
    let candidates = simulation::candidates(5);
    let alternatives: Alternatives = (0..4).collect();
    Arms::new(&Ways { candidates: &candidates, alternatives, has_cells: false })
}

fn way(at: usize) -> Way {
    Way::By(simulation::candidates(5).as_slice()[at])
}

fn round(messages: u32) -> Sample {
    Sample { ns: 1, bytes: 1, messages, is_spoilt: false }
}

/// Blocks in which so many messages go and come in each round.
fn blocks(lead: &mut Lead, heard: &mut Heard, blocks: usize, sent: u32, come: u32) -> bool {
    let mut is_alone = false;
    for _ in 0..blocks {
        (0..SAMPLES).for_each(|_| lead.sample(&round(sent), heard));
        heard.count = heard.count.wrapping_add(SAMPLES as u32 * come);
        is_alone |= lead.end_block(heard);
    }
    is_alone
}

/// An answer to a message that has just come by this way.
fn answer(lead: &mut Lead, heard: &mut Heard, at: usize) -> Option<u8> {
    *heard = Heard { way: Some(way(at)), count: heard.count.wrapping_add(1) };
    lead.follow(heard, &arms())
}

/// One message by each way, to and fro. Returns whether this end was left alone.
fn exchange(lead: &mut Lead, heard: &mut Heard, ways: impl IntoIterator<Item = usize>) -> bool {
    let mut is_alone = false;
    for (at, number) in ways.into_iter().zip(1_usize..) {
        lead.sample(&round(1), heard);
        if number.is_multiple_of(SAMPLES) {
            is_alone |= lead.end_block(heard);
        }
        answer(lead, heard, at);
    }
    is_alone
}

fn in_turn() -> (Lead, Heard) {
    let mut lead = Lead::new(false);
    let mut heard = Heard { way: Some(way(1)), count: 0 };
    blocks(&mut lead, &mut heard, 3, 1, 1);
    (lead, heard)
}

#[test]
fn who_comes_second_answers_by_the_way_that_has_changed() {
    let mut lead = Lead::new(false);
    let mut heard = Heard { way: Some(way(1)), count: u32::MAX - 4 };
    assert_eq!(lead.follow(&heard, &arms()), None, "not in turn yet");
    blocks(&mut lead, &mut heard, 3, 1, 1);
    assert!(lead.waits());
    assert_eq!(answer(&mut lead, &mut heard, 1), None, "that may be all that the peer ever takes");
    assert_eq!(answer(&mut lead, &mut heard, 2), Some(2));
    assert_eq!(answer(&mut lead, &mut heard, 1), Some(1), "back from the trial");
    assert!(lead.is_led());
}

#[test]
fn who_comes_first_follows_nobody() {
    let mut lead = Lead::new(true);
    let mut heard = Heard { way: Some(way(1)), count: 0 };
    blocks(&mut lead, &mut heard, 3, 1, 1);
    assert_eq!(answer(&mut lead, &mut heard, 2), None);
    assert!(lead.is_in_turn() && !lead.waits());
}

#[test]
fn in_windows_and_where_nothing_comes_back_each_is_on_its_own() {
    for (sent, come) in [(64, 64), (1, 0), (1, 3)] {
        let mut lead = Lead::new(false);
        let mut heard = Heard { way: Some(way(1)), count: 0 };
        blocks(&mut lead, &mut heard, 10, sent, come);
        let answer = answer(&mut lead, &mut heard, 2);
        assert!(!lead.is_in_turn() && answer.is_none(), "{sent} and {come}");
    }
}

#[test]
fn a_peer_that_goes_away_leaves_the_choice() {
    let (mut lead, mut heard) = in_turn();
    exchange(&mut lead, &mut heard, [2, 1, 1]);
    assert!(!blocks(&mut lead, &mut heard, usize::from(APART) - 1, 1, 0) && lead.is_led());
    assert!(blocks(&mut lead, &mut heard, 1, 1, 0) && !lead.is_led());
    assert!(!blocks(&mut lead, &mut heard, 1, 1, 1) && lead.follow(&heard, &arms()).is_none());
}

#[test]
fn a_way_that_this_end_does_not_have_leads_nowhere() {
    let (mut lead, mut heard) = in_turn();
    assert_eq!(answer(&mut lead, &mut heard, 4), None);
    heard.way = Some(Way::Cells);
    assert!(lead.follow(&heard, &arms()).is_none() && !lead.is_led());
    assert_eq!(answer(&mut lead, &mut heard, 2), Some(2));
    assert_eq!(answer(&mut lead, &mut heard, 4), Some(0), "what is chosen here");
}

#[test]
fn a_trial_in_which_nothing_more_comes_is_followed_no_longer() {
    let (mut lead, mut heard) = in_turn();
    assert_eq!(answer(&mut lead, &mut heard, 2), Some(2));
    assert_eq!(lead.follow(&heard, &arms()), Some(0));
    assert_eq!(answer(&mut lead, &mut heard, 2), Some(2));
}

#[test]
fn a_change_for_good_without_a_trial_before_it_is_no_lead() {
    let (mut lead, mut heard) = in_turn();
    assert!(exchange(&mut lead, &mut heard, [2; 4 * SAMPLES]));
    assert!(!lead.is_led() && !lead.keeps(u8::MAX));
    assert_eq!(answer(&mut lead, &mut heard, 2), None, "it is the usual way now");
}

#[test]
fn what_is_kept_after_a_trial_is_chosen_here_too() {
    let (mut lead, mut heard) = in_turn();
    let trial = [2, 2, 2, 1, 1, 1];
    assert!(!exchange(&mut lead, &mut heard, trial.into_iter().chain([2; 10 * SAMPLES])));
    assert!(lead.is_led() && lead.keeps(LONGEST_TRIAL + 1) && !lead.keeps(LONGEST_TRIAL));
}

#[test]
fn one_trial_alone_leads_for_a_while_only() {
    let (mut lead, mut heard) = in_turn();
    let rounds = usize::from(STILL) * SAMPLES;
    assert!(!exchange(&mut lead, &mut heard, [2, 1, 1].into_iter().chain(vec![1; rounds - 9])));
    assert!(exchange(&mut lead, &mut heard, [1; 12]) && !lead.is_led());
    assert_eq!(answer(&mut lead, &mut heard, 2), Some(2), "another trial is followed again");
}

/// As by a program that sends shared and private buffers in turn.
#[test]
fn a_peer_that_changes_its_way_all_the_time_is_not_followed_for_long() {
    for period in [2, 4, 16, 40] {
        let (mut lead, mut heard) = in_turn();
        let rounds = 9 * STRAYS as usize;
        exchange(&mut lead, &mut heard, (0..rounds).map(|at| 1 + usize::from(at % period < period / 2)));
        assert!(!lead.is_led() || period == 40, "{period}");
        assert_eq!(answer(&mut lead, &mut heard, 3), None, "{period}");
        assert!(lead.is_in_turn() && !lead.waits(), "{period}");
    }
}

/// Trials as of one that has settled.
#[test]
fn a_peer_that_tries_now_and_then_is_followed_for_good() {
    let (mut lead, mut heard) = in_turn();
    for _ in 0..1_000 {
        let trial = [2, 2, 2].into_iter().chain([1; 99 * SAMPLES]);
        assert!(!exchange(&mut lead, &mut heard, trial));
    }
    assert!(lead.is_led());
}
