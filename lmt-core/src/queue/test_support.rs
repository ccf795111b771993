//! What tests of the inbox and of fast boxes have in common.

use zerocopy::IntoBytes;

use crate::memory::buffer::{Access, Buffer, Segment};
use crate::queue::{Envelope, InboxReceiver, InboxSender, Payload};

/// Bytes of a message, which tell its length and their place.
pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 + bytes) as u8).collect()
}

/// Sends a message of so many bytes by every way there is, from the sender with
/// this number, and receives each by every way.
pub(super) fn pass_by_every_way(
    sender: &mut InboxSender,
    receiver: &mut InboxReceiver,
    number: u16,
    bytes: usize,
) {
    let data = pattern(bytes);
    let cut = bytes / 3;
    let halves = [Segment::of(&data[..cut]), Segment::of(&data[cut..])];
    // SAFETY: `data` outlives both buffers and is not written.
    #[allow(unsafe_code)]
    let [whole, split] =
        [&[Segment::of(&data)][..], &halves[..]].map(|s| unsafe { Buffer::new(s, Access::Read) }.unwrap());
    let all = 0..bytes as u64;
    let mut words: Vec<u64> = vec![0; bytes.div_ceil(8)];
    words.as_mut_bytes()[..bytes].copy_from_slice(&data);
    let ways = [
        Payload::Bytes(&data),
        Payload::Words(&words, bytes),
        Payload::Two(&data[..cut], &data[cut..]),
        Payload::Part(&whole, all.clone()),
        Payload::Part(&split, all),
    ];
    for (kind, payload) in ways.into_iter().enumerate() {
        let envelope = Envelope { kind: kind as u8, aux: bytes as u32 + 5, tag: u64::MAX - bytes as u64 };
        let _ = sender.send(envelope, payload).unwrap();
        let message = receiver.poll().expect("what was sent");
        assert_eq!((message.sender(), message.bytes()), (number, bytes));
        assert_eq!(
            (message.kind(), message.aux(), message.tag()),
            (envelope.kind, envelope.aux, envelope.tag)
        );
        let mut got = vec![0xAA; bytes + 4];
        assert_eq!(message.copy_to(&mut got), bytes);
        assert_eq!(&got[..bytes], data);
        assert_eq!(got[bytes..], [0xAA; 4], "written past the message");
        let mut in_words = vec![0_u64; bytes.div_ceil(8)];
        assert_eq!(message.copy_to_words(&mut in_words), bytes);
        assert_eq!(&in_words.as_bytes()[..bytes], data);
        let mut short = [0; 5];
        assert_eq!(message.copy_to(&mut short), bytes.min(5));
        let mut target = vec![0xAA; bytes + 4];
        let segments = [Segment::of_mut(&mut target)];
        // SAFETY: `target` is read again only after the buffer's last use.
        #[allow(unsafe_code)]
        let mut buffer = unsafe { Buffer::new(&segments, Access::Write) }.unwrap();
        assert_eq!(message.copy_to_buffer(&mut buffer, 2), bytes);
        assert_eq!(&target[2..2 + bytes], data);
        assert_eq!((target[1], target[bytes + 2]), (0xAA, 0xAA));
    }
    assert!(receiver.poll().is_none());
}
