use super::*;
use crate::selection::Alternatives;
use crate::selection::adaptive::simulation;

fn ask(adaptive: &mut Adaptive, peer: PeerKey, bytes: u64, now_ns: u64, versions: (u32, u32)) -> Option<Way> {
    let candidates = simulation::candidates(2);
    let alternatives: Alternatives = (0..2).collect();
    let ways = Ways { candidates: &candidates, alternatives, has_cells: false };
    let message = Message::of_bytes(bytes);
    let send = Send { now_ns, bytes, events: now_ns, under_way: 0 };
    adaptive.way(&Question { peer, message, range: 0, ways, versions, is_first: true, send })
}

#[test]
fn each_peer_and_each_class_of_sizes_is_a_stream() {
    let mut adaptive = Adaptive::new(true);
    for (peer, bytes) in [(0, 65_536), (0, 131_071), (0, 131_072), (1, 65_536)] {
        assert!(ask(&mut adaptive, peer, bytes, 1, (0, 0)).is_some());
    }
    assert_eq!(adaptive.streams.len(), 3);
    adaptive.forget(0);
    assert_eq!(adaptive.streams.len(), 1);
}

#[test]
fn many_streams_take_a_bounded_place() {
    let mut adaptive = Adaptive::new(true);
    for peer in 0..MOST_STREAMS as u32 {
        assert!(ask(&mut adaptive, peer, 65_536, u64::from(peer), (0, 0)).is_some());
    }
    assert!(ask(&mut adaptive, 5_000, 65_536, 2_000, (0, 0)).is_none(), "all are in use");
    assert!(ask(&mut adaptive, 7, 65_536, 2_000, (0, 0)).is_some());
    let later = IDLE_NS + LOOK_NS + 2_000;
    assert!(ask(&mut adaptive, 5_000, 65_536, later, (0, 0)).is_some(), "one was idle");
    assert_eq!(adaptive.streams.len(), MOST_STREAMS);
    assert!(std::mem::size_of::<(Key, Kept)>() < 1024);
}

#[test]
fn what_works_otherwise_is_timed_anew() {
    let mut adaptive = Adaptive::new(true);
    let sent = |adaptive: &Adaptive| adaptive.reports(|_| String::new())[0].1.total_ns;
    for now_ns in 1..50 {
        ask(&mut adaptive, 0, 65_536, now_ns * 1_000, (0, 0));
    }
    assert!(sent(&adaptive) > 0);
    ask(&mut adaptive, 0, 65_536, 60_000, (1, 0));
    assert_eq!(sent(&adaptive), 0);
}

#[test]
fn a_settled_stream_need_not_be_asked_for_some_messages() {
    const BYTES: u64 = 65_536;
    let mut adaptive = Adaptive::new(true);
    let message = Message::of_bytes(BYTES);
    let mut now_ns = 0;
    let mut settle = |adaptive: &mut Adaptive| {
        for _ in 0..2_000 {
            now_ns += 1_000;
            let way = ask(adaptive, 3, BYTES, now_ns, (0, 0));
            if adaptive.known.get(3).is_some_and(Option::is_some) {
                return way;
            }
        }
        panic!("it never settles");
    };
    let way = settle(&mut adaptive);
    assert_eq!(adaptive.known_way(3, &Message::of_bytes(BYTES + 1), (0, 0)), None, "another length");
    let known = (0..100).take_while(|_| adaptive.known_way(3, &message, (0, 0)) == way).count();
    assert_eq!(known, 9);
    settle(&mut adaptive);
    assert_eq!(adaptive.known_way(3, &message, (1, 0)), None, "what works has changed");
    settle(&mut adaptive);
    adaptive.hear(3, BYTES, Way::Cells);
    assert_eq!(adaptive.known_way(3, &message, (0, 0)), None, "the peer's way has");
    settle(&mut adaptive);
    adaptive.forget(3);
    assert_eq!(adaptive.known_way(3, &message, (0, 0)), None);
}
