use super::*;
use crate::abi::Errno;

#[test]
fn a_failure_stands_in_the_way_until_it_is_taken() {
    let mut queue = Queue::default();
    let (first, last) = (Entry::bare(1, 0), Entry::bare(3, 0));
    let failure = Failure { entry: Entry::bare(2, 0), cut_bytes: 0, error: Errno::TRUNC };
    queue.push(Item::Done(first));
    assert_eq!(queue.take_failure(), None, "the oldest has not failed");
    queue.push(Item::Failed(failure));
    queue.push(Item::Done(last));
    let mut read = Vec::new();
    assert_eq!(queue.read(|entry| read.push(*entry)), Read::Entry);
    assert_eq!(queue.read(|_| panic!("it has failed")), Read::Failure);
    assert_eq!(queue.read(|_| panic!("it has failed")), Read::Failure);
    assert_eq!(queue.take_failure(), Some(failure));
    assert_eq!(queue.read(|entry| read.push(*entry)), Read::Entry);
    assert_eq!(queue.read(|_| panic!("nothing is left")), Read::Nothing);
    assert_eq!(read, [first, last]);
}

#[test]
fn a_signal_wakes_one_reader() {
    let mut queue = Queue::default();
    queue.signal();
    queue.signal();
    assert!(queue.take_signal());
    assert!(!queue.take_signal());
}
