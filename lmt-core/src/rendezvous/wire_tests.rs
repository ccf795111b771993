use super::*;
use proptest::prelude::*;

fn model() -> impl Strategy<Value = Model> {
    prop::sample::select(&[Model::Get, Model::Put, Model::Cooperative, Model::Both, Model::Stream][..])
}

fn cookie() -> impl Strategy<Value = Cookie> {
    prop::collection::vec(any::<u8>(), 0..=Cookie::MAX_BYTES).prop_map(|b| Cookie::new(&b).unwrap())
}

fn key() -> impl Strategy<Value = TransferKey> {
    any::<(bool, u64)>().prop_map(|(receive, id)| match receive {
        true => TransferKey::Receive(ReceiveId(id)),
        false => TransferKey::Send(SendId(id)),
    })
}

prop_compose! {
    fn offers()(retry: bool, id: u64, attempt: u8, tag: u32, model in model(), start: u64, end: u64,
                cookie in cookie()) -> Packet {
        let mechanism = MechanismTag(tag);
        if retry {
            let interval = Interval { start, end };
            Packet::Retry(Retry { receive_id: ReceiveId(id), attempt, mechanism, model, interval, cookie })
        } else {
            Packet::Rts(Rts { send_id: SendId(id), total_bytes: end, attempt, mechanism, model, cookie })
        }
    }
}

prop_compose! {
    fn replies()(demote: bool, whole: bool, s: u64, r: u64, attempt: u8, start: u64, end: u64, errno: i32,
                 for_good: bool, shared: bool, cookie in cookie()) -> Packet {
        let (send_id, receive_id, interval) = (SendId(s), ReceiveId(r), Interval { start, end });
        if demote {
            Packet::Demote(Demote { send_id, receive_id, attempt, remaining: interval, errno, for_good, shared })
        } else {
            let interval = (!whole).then_some(interval);
            Packet::Cts(Cts { send_id, receive_id, attempt, interval, shared, cookie })
        }
    }
}

prop_compose! {
    fn shorts()(kind in 0..5, id: u64, to in key(), attempt: u8, front: u64, errno: i32, flag: bool) -> Packet {
        match kind {
            0 => Packet::Done(Done { to, attempt, shared: flag }),
            1 => Packet::Fail(Fail { receive_id: ReceiveId(id), attempt, front, errno, for_good: flag }),
            2 => Packet::GiveUp(GiveUp { to, errno }),
            3 => Packet::Cancel { send_id: SendId(id) },
            _ => Packet::CancelReply { send_id: SendId(id), cancelled: flag },
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(packet in prop_oneof![offers(), replies(), shorts()]) {
        let mut bytes = [0xee; Packet::MAX_BYTES];
        let used = packet.encode(&mut bytes);
        prop_assert_eq!(Packet::decode(&bytes[..used]), Ok(packet));
        // Neither a byte less nor a byte more is a packet.
        prop_assert!(Packet::decode(&bytes[..used - 1]).is_err());
        let longer = [&bytes[..used], &[0]].concat();
        prop_assert!(Packet::decode(&longer).is_err());
    }

    #[test]
    fn a_damaged_packet_never_panics(packet in prop_oneof![offers(), replies(), shorts()],
                                     at: prop::sample::Index, to: u8) {
        let mut bytes = [0; Packet::MAX_BYTES];
        let used = packet.encode(&mut bytes);
        bytes[at.index(used)] = to;
        if let Ok(read) = Packet::decode(&bytes[..used]) {
            let mut again = [0; Packet::MAX_BYTES];
            prop_assert_eq!(read.encode(&mut again), used);
            prop_assert_eq!(Packet::decode(&again[..used]), Ok(read));
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        head in (0u8..12, any::<u8>(), 0u8..8, 0..=Cookie::MAX_BYTES as u8 + 1),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let _ = Packet::decode(&rest);
        let (kind, attempt, flag, cookie_bytes) = head;
        let bytes = [&[kind, attempt, flag, cookie_bytes][..], &rest].concat();
        // One of these lengths is that of the kind, with a cookie of any length.
        for used in 0..bytes.len() {
            if let Ok(packet) = Packet::decode(&bytes[..used]) {
                let mut again = [0; Packet::MAX_BYTES];
                prop_assert_eq!(packet.encode(&mut again), used);
                prop_assert_eq!(Packet::decode(&again[..used]), Ok(packet));
            }
        }
    }

    #[test]
    fn what_stands_behind_a_packet_is_not_read(
        packet in prop_oneof![offers(), replies(), shorts()],
        garbage in any::<u8>(),
    ) {
        let mut words = PacketWords::empty();
        words.fill(|words| {
            words.as_mut_bytes().fill(garbage);
            packet.encode(words.as_mut_bytes())
        });
        prop_assert_eq!(words.decode(), Ok(packet));
    }
}

#[cfg(not(loom))] // For which there are no lines with bytes.
#[test]
fn the_announcement_of_contiguous_memory_and_its_answer_fit_a_line() {
    let cookie = Cookie::new(&[7; 16]).unwrap();
    let (send_id, receive_id, mechanism) = (SendId(1), ReceiveId(2), MechanismTag(3));
    let rts = Rts { send_id, total_bytes: 9, attempt: 0, mechanism, model: Model::Both, cookie };
    let cts = Cts { send_id, receive_id, attempt: 0, interval: None, shared: true, cookie };
    for packet in [Packet::Rts(rts), Packet::Cts(cts)] {
        assert_eq!(packet.encode(&mut [0; Packet::MAX_BYTES]), crate::queue::INLINE_BYTES);
    }
}
