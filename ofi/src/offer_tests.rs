use super::*;

fn refusal(hints: &Hints) -> String {
    offer(hints).err().expect("nothing is to be offered")
}

fn hints_for(change: impl FnOnce(&mut Hints)) -> Hints {
    let mut hints = Hints::default();
    change(&mut hints);
    hints
}

#[test]
fn without_hints_everything_is_offered_but_atomic_operations() {
    let offer = offer(&Hints::default()).unwrap();
    assert_eq!(offer.caps, CAPABILITIES & !flags::ATOMIC);
    assert_eq!((offer.ep.ep_type, offer.ep.max_msg_size), (fabric::EP_RDM, usize::MAX));
    assert_eq!((offer.domain.cq_data_size, offer.tx.inject_size), (DATA_BYTES, 4096));
}

#[test]
fn capabilities_are_those_asked_for_in_both_directions_unless_one_is_named() {
    let both = offer(&hints_for(|h| h.caps = flags::TAGGED)).unwrap().caps;
    assert_eq!(both & (flags::SEND | flags::RECV | flags::MSG), flags::SEND | flags::RECV);
    let one = offer(&hints_for(|h| h.caps = flags::TAGGED | flags::SEND)).unwrap().caps;
    assert_eq!(one & (flags::SEND | flags::RECV), flags::SEND);
}

#[test]
fn what_is_offered_can_be_asked_for() {
    let first = offer(&Hints::default()).unwrap();
    let again = Hints {
        caps: first.caps,
        addr_format: ADDRESS_FORMAT,
        tx: Some(first.tx),
        rx: Some(first.rx),
        ep: Some(first.ep),
        domain: Some(first.domain),
        domain_name: Some(PLACE.to_owned()),
        fabric_name: Some(PLACE.to_owned()),
        ..Hints::default()
    };
    let second = offer(&again).unwrap();
    assert_eq!((second.caps, second.domain.threading), (first.caps, first.domain.threading));
}

/// Whatever was asked for, without any capability too.
#[test]
fn what_is_offered_can_be_opened() {
    let all = offer(&Hints::default()).unwrap();
    let mut opened = 0;
    let modes = [0, flags::MR_BASIC, flags::MR_SCALABLE, flags::MR_PROV_KEY];
    for caps in
        [0, flags::MSG, flags::TAGGED | flags::RMA, flags::MSG | flags::ATOMIC, flags::PEER | flags::MSG]
    {
        for mr_mode in modes {
            let asked = hints_for(|h| {
                h.caps = caps;
                h.domain = Some(DomainAttr { mr_mode, caps: 0, ..all.domain });
            });
            let Ok(offer) = offer(&asked) else { continue };
            assert_eq!(check_domain(&offer.domain, offer.caps), Ok(()), "{caps:#x} {mr_mode:#x}");
            let chosen = Chosen {
                caps: offer.caps,
                tx: Some(offer.tx),
                rx: Some(offer.rx),
                ep: Some(offer.ep),
                source: None,
            };
            assert_eq!(check_endpoint(&chosen), Ok(()), "{caps:#x} {mr_mode:#x}");
            opened += 1;
        }
    }
    // All modes without memory regions or any capability, and the provider's keys with them.
    assert_eq!(opened, 3 * 4 + 2);
}

#[test]
fn threading_and_vectors_are_as_asked() {
    let mut domain = offer(&Hints::default()).unwrap().domain;
    (domain.threading, domain.av_type) = (3, fabric::AV_MAP);
    let offered = offer(&hints_for(|h| h.domain = Some(domain))).unwrap().domain;
    assert_eq!((offered.threading, offered.av_type), (3, fabric::AV_MAP));
}

#[test]
fn what_cannot_be_is_refused_with_what_could() {
    let all = offer(&Hints::default()).unwrap();
    assert!(refusal(&hints_for(|h| h.caps = 1 << 5)).contains("capabilities 0x20"));
    let (mut ep, mut tx, mut domain) = (all.ep, all.tx, all.domain);
    ep.ep_type = 1;
    assert!(refusal(&hints_for(|h| h.ep = Some(ep))).contains("FI_EP_RDM"));
    tx.inject_size = 1 << 20;
    assert!(refusal(&hints_for(|h| h.tx = Some(tx))).contains("at most 4096"));
    domain.data_progress = 1;
    assert!(refusal(&hints_for(|h| h.domain = Some(domain))).contains("manual"));
    assert!(refusal(&hints_for(|h| h.addr_format = 2)).contains("format 2"));
    assert!(refusal(&hints_for(|h| h.fabric_name = Some("shm".to_owned()))).contains("`shm`"));
    assert!(refusal(&hints_for(|h| h.destination = Some(vec![1; 64]))).contains("destination"));
    assert!(refusal(&hints_for(|h| h.source = Some(Vec::new()))).contains("source"));
}

#[test]
fn atomic_operations_are_offered_to_who_asks_for_them() {
    let asked = hints_for(|h| h.caps = flags::MSG | flags::ATOMIC);
    let offer = offer(&asked).unwrap();
    assert_eq!(offer.caps & (flags::ATOMIC | flags::REMOTE_WRITE), flags::ATOMIC | flags::REMOTE_WRITE);
    assert_eq!(offer.tx.msg_order, flags::ORDER_SAS | flags::ORDER_ATOMIC);
    assert_eq!((offer.rx.msg_order, offer.ep.max_order_waw_size), (offer.tx.msg_order, MAX_BYTES));
}
