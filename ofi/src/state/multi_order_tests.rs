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
