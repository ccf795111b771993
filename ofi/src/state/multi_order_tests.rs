use proptest::prelude::*;

use super::*;

fn of(receive: u64, sender: u64) -> Matched {
    let sender = Some(PeerId::from_raw(sender));
    Matched { receive: RequestId::from_raw(receive), sender, is_last: false }
}

fn last(matched: Matched) -> Matched {
    Matched { is_last: true, ..matched }
}

fn all(order: &mut MultiOrder<char>) -> String {
    std::iter::from_fn(|| order.next()).map(|(_, end)| end).collect()
}

#[test]
fn a_sender_s_messages_are_told_in_the_order_in_which_they_were_matched() {
    let mut order = MultiOrder::default();
    let tickets = [of(1, 1), of(1, 2), of(2, 1)].map(|matched| order.enter(matched));
    order.end(tickets[2], 'c');
    assert_eq!(all(&mut order), "", "the same sender's, though of another buffer");
    order.end(tickets[1], 'b');
    assert_eq!(all(&mut order), "b", "another sender's");
    order.end(tickets[0], 'a');
    order.end(tickets[0], 'x');
    order.end(99, 'x');
    assert_eq!(all(&mut order), "ac");
}

#[test]
fn a_buffer_s_last_end_waits_for_its_messages_only() {
    let mut order = MultiOrder::default();
    let matched = [of(1, 1), of(2, 2), last(of(1, 3)), Matched { sender: None, ..last(of(2, 0)) }];
    let tickets = matched.map(|matched| order.enter(matched));
    order.end(tickets[2], 'c');
    order.end(tickets[3], 'd');
    assert_eq!(all(&mut order), "");
    order.end(tickets[1], 'b');
    assert_eq!(all(&mut order), "bd");
    order.end(tickets[0], 'a');
    assert_eq!(all(&mut order), "ac");
}

/// What is told next, by the definition: the first that has ended and waits for nothing
/// before it.
fn told_next(places: &[(Matched, bool)]) -> Option<usize> {
    let waits = |at: usize| places[..at].iter().any(|(before, _)| places[at].0.waits_for(before));
    (0..places.len()).find(|&at| places[at].1 && !waits(at))
}

proptest! {
    #[test]
    fn what_is_told_next_is_as_defined(
        steps in prop::collection::vec((0..3_u8, 0..4_u64, 0..4_u64, any::<usize>()), 1..200),
    ) {
        let (mut order, mut places, mut tickets) = (MultiOrder::default(), Vec::new(), Vec::new());
        for (step, receive, sender, which) in steps {
            match step {
                0 => {
                    let matched = Matched { is_last: which % 4 == 0, ..of(receive, sender) };
                    let matched = if sender == 0 { Matched { sender: None, ..matched } } else { matched };
                    tickets.push(order.enter(matched));
                    places.push((matched, false));
                }
                1 if !places.is_empty() => {
                    let at = which % places.len();
                    order.end(tickets[at], tickets[at]);
                    places[at].1 = true;
                }
                _ => {
                    let expected = told_next(&places).map(|at| (places.remove(at).0, tickets.remove(at)));
                    prop_assert_eq!(order.next(), expected);
                }
            }
        }
    }
}
