use super::*;

const MESSAGE: Message = Message { source: 3, tag: 7, number: 41 };

#[test]
fn a_whole_message_passes() {
    let mut verified = Verified::default();
    for bytes in [0, 1, 7, 8, 9, 4097] {
        let mut data = vec![0; bytes];
        verified.before_send(&mut data, MESSAGE);
        verified.after_receive(&data, MESSAGE);
    }
    assert_eq!((verified.messages, verified.fault), (6, None));
}

#[test]
fn anything_else_does_not() {
    let mut good = vec![0; 100];
    Verified::default().before_send(&mut good, MESSAGE);
    let fault = |data: &[u8], message| {
        let mut verified = Verified::default();
        verified.after_receive(data, message);
        verified.fault
    };
    let mut flipped = good.clone();
    flipped[99] ^= 1;
    assert!(fault(&flipped, MESSAGE).unwrap().contains("byte 99"));
    let mut poisoned = good.clone();
    Verified::default().before_receive(&mut poisoned);
    assert!(fault(&poisoned, MESSAGE).is_some());
    let mut shifted = good.clone();
    shifted.rotate_left(8);
    assert!(fault(&shifted, MESSAGE).is_some());
    assert!(fault(&good, Message { number: 42, ..MESSAGE }).is_some());
    assert!(fault(&good, Message { source: 2, ..MESSAGE }).is_some());
    assert!(fault(&good, Message { tag: 8, ..MESSAGE }).is_some());
}
