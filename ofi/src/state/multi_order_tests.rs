use super::*;

const BUFFERS: [usize; 2] = [1, 2];

fn peer(number: u64) -> PeerId {
    PeerId::from_raw(number)
}

fn all(order: &mut MultiOrder<char>) -> String {
    std::iter::from_fn(|| order.next()).collect()
}

#[test]
fn messages_wait_for_receives_from_anybody_before_them() {
    let mut order = MultiOrder::default();
    let tickets: Vec<u64> = (0..3).map(|_| order.enter(BUFFERS[0], Source::Any)).collect();
    order.end(tickets[2], Some(peer(1)), 'c');
    order.end(tickets[1], Some(peer(2)), 'b');
    assert_eq!(all(&mut order), "");
    order.end(tickets[0], Some(peer(1)), 'a');
    order.end(tickets[0], Some(peer(1)), 'x');
    order.end(99, Some(peer(1)), 'x');
    assert_eq!(all(&mut order), "abc");
}

#[test]
fn messages_do_not_wait_for_receives_from_others() {
    let mut order = MultiOrder::default();
    let of_one = order.enter(BUFFERS[0], Source::Peer(peer(1)));
    let of_two = order.enter(BUFFERS[1], Source::Peer(peer(2)));
    let of_any = [0; 2].map(|_| order.enter(BUFFERS[1], Source::Any));
    order.end(of_any[1], Some(peer(3)), 'd');
    order.end(of_any[0], Some(peer(1)), 'c');
    order.end(of_two, Some(peer(2)), 'b');
    assert_eq!(all(&mut order), "b", "of one buffer in order, and of one sender");
    order.end(of_one, Some(peer(1)), 'a');
    assert_eq!(all(&mut order), "acd");
}

#[test]
fn a_buffer_s_last_end_waits_for_its_messages_only() {
    let mut order = MultiOrder::default();
    let first = order.enter(BUFFERS[0], Source::Any);
    let message = order.enter(BUFFERS[1], Source::Any);
    order.end(message, Some(peer(1)), 'b');
    let last = order.enter(BUFFERS[1], Source::Any);
    order.end(last, None, 'c');
    let other = order.enter(3, Source::Any);
    order.end(other, None, 'd');
    assert_eq!(all(&mut order), "d");
    order.end(first, Some(peer(2)), 'a');
    assert_eq!(all(&mut order), "abc");
}
