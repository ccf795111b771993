use super::*;

#[test]
fn an_emptied_queue_begins_where_it_began() {
    let mut queue = Queue::new();
    queue.push_back(0);
    let first = std::ptr::from_ref(&queue[0]);
    for number in 1..100 {
        if number % 2 == 0 {
            assert_eq!(queue.pop_front(), Some(number - 1));
        } else {
            queue.drop_front();
        }
        assert_eq!(queue.pop_front(), None);
        queue.push_back(number);
        assert_eq!(std::ptr::from_ref(&queue[0]), first);
    }
}

#[test]
fn entries_come_out_in_order() {
    let mut queue = Queue::default();
    queue.extend([1, 2, 3]);
    queue.drop_front();
    assert_eq!((queue.pop_front(), queue.pop_front(), queue.pop_front()), (Some(2), Some(3), None));
    queue.drop_front();
    assert!(queue.is_empty());
}
