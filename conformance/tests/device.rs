//! The device layer between real processes, through the example's device.
#![allow(unsafe_code)] // Lends memory to the device layer by address.

#[allow(dead_code)] // Its `main` and what only that uses.
#[path = "../../lmt/examples/device_layer.rs"]
mod device_layer;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use device_layer::{Device, content};
use lmt::buffer::{Access, Buffer, Segment};
use lmt::device::{
    Announcement, Arrival, DeviceLayer, PACKET_MAX_BYTES, PacketTransport, TransportFull, Withdrawal,
};
use lmt::mechanism::{
    Abilities, Cookie, Description, Fault, Hello, Interval, Lmt, Model, PeerFacts, Plan, Probed, Step,
    Unavailable,
};
use lmt::{Endpoint, EndpointBuilder, OperationError, PeerError, PeerId};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::{mechanisms, test_name};

const LIMIT: Duration = Duration::from_secs(30);
/// Within a second is promised; a loaded machine gets some more.
const SOON: Duration = Duration::from_secs(3);

/// This rank's device: the ranks meet by sockets in the abstract namespace.
fn device(group: &Group, builder: EndpointBuilder) -> Device {
    let name =
        |rank| SocketAddr::from_abstract_name(format!("device-{}-{rank}", group.id())).expect("a name");
    let socket = UnixDatagram::bind_addr(&name(group.rank())).expect("a socket");
    group.barrier();
    socket.connect_addr(&name(1 - group.rank())).expect("the other rank's socket");
    let layer = builder.id(group.id().member(group.rank())).build_device_layer().expect("a layer");
    let mut device = Device::new(layer, socket, &group.address(1 - group.rank())).expect("a device");
    while !device.layer.is_connected(device.peer) {
        device.progress().expect("no fork here");
    }
    device
}

fn finish(device: &mut Device) {
    device.send(u64::MAX, Vec::new()).expect("the other lives");
    let last = device.receive(u64::MAX, 0).expect("the other lives");
    device.wait(last).expect("the other lives");
}

/// All of `count` messages both ways, received in another order.
fn storm(device: &mut Device, count: u64) {
    let bytes = |tag: u64| [100, 2000, 70_000, 1_300_000][tag as usize % 4] + tag as usize;
    let sends: Vec<_> =
        (0..count).map(|tag| device.send(tag, content(tag, bytes(tag))).expect("the other lives")).collect();
    let order = (0..count).map(|n| n * 7 % count);
    let receives: Vec<_> =
        order.map(|tag| (tag, device.receive(tag, bytes(tag)).expect("the other lives"))).collect();
    for (tag, receive) in receives {
        assert!(device.wait(receive).expect("it arrives") == content(tag, bytes(tag)), "tag {tag}");
    }
    for send in sends {
        device.wait(send).expect("it arrives");
    }
    finish(device);
}

#[test]
fn every_mechanism_moves_messages_both_ways() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut device = device(group, Endpoint::builder());
        storm(&mut device, 40);
    });
    for name in mechanisms::of_any_memory() {
        Test::new(test_name!(), 2).env("LMT_MECHANISM", name).time_limit(LIMIT).run(|group| {
            let mut device = device(group, Endpoint::builder());
            let mechanism_status = device.layer.mechanism_status(device.peer);
            let works = mechanism_status.iter().any(|(n, s)| *n == name && s.ours != Abilities::default());
            if !works {
                eprintln!("skipped: {name} does not work here: {mechanism_status:?}");
                // The other may not have seen that it is connected.
                return finish(&mut device);
            }
            storm(&mut device, 40);
        });
    }
}

#[test]
fn truncation_is_reported_and_matched_messages_are_not_taken_back() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut device = device(group, Endpoint::builder());
        if group.rank() == 0 {
            let send = device.send(5, content(5, 300_000)).expect("the other lives");
            device.wait(send).expect("it arrives");
            // The other has matched it when its short message is here.
            let send = device.send(6, content(6, 3_000_000)).expect("the other lives");
            let told = device.receive(7, 8).expect("the other lives");
            device.wait(told).expect("the other lives");
            device.cancel(send).expect("no fork here");
            device.wait(send).expect("it was matched");
        } else {
            let receive = device.receive(5, 200_000).expect("the other lives");
            let result = device.wait(receive);
            let (message_bytes, received_bytes) = (300_000, 200_000);
            let peer = device.peer;
            assert_eq!(
                result,
                Err(OperationError::Truncated {
                    peer,
                    tag: 0,
                    message_bytes,
                    received_bytes,
                    immediate: None
                })
            );
            let receive = device.receive(6, 3_000_000).expect("the other lives");
            assert!(device.wait(receive).expect("it arrives") == content(6, 3_000_000));
            device.send(7, Vec::new()).expect("the other lives");
        }
        finish(&mut device);
    });
}

/// A mechanism that promises all and fails when it should copy.
struct Broken;

impl Lmt for Broken {
    type Peer = ();
    type Transfer = ();

    fn description(&self) -> Description {
        Description::new("broken", &[Model::Get, Model::Put])
    }

    fn probe(&mut self, _facts: &PeerFacts, _hello: Hello) -> Result<Probed<()>, Unavailable> {
        Ok(Probed::new((), Abilities { read: true, write: true, cooperate: false }))
    }

    fn prepare(&mut self, _peer: &mut (), _plan: &Plan, _data: &Buffer) -> Result<((), Cookie), Fault> {
        Ok(((), Cookie::empty()))
    }

    fn start(&mut self, _: &mut (), _: &mut (), _: &Cookie, _: Interval) -> Result<(), Fault> {
        Ok(())
    }

    fn step(&mut self, _: &mut (), _: &mut (), _: &mut Buffer, _: u64) -> Result<Step, Fault> {
        Err(Fault::Demote { errno: 1, for_good: true, sentence: "it is broken on purpose".into() })
    }

    fn finish(&mut self, _peer: &mut (), _transfer: ()) {}
}

#[test]
fn a_mechanism_that_fails_gives_way_to_the_next() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut device = device(group, Endpoint::builder().register(Broken));
        storm(&mut device, 12);
        let mechanism_status = device.layer.mechanism_status(device.peer);
        let (name, broken) = &mechanism_status[0];
        assert_eq!(*name, "broken");
        assert!(broken.reason.is_some(), "its failure is remembered: {mechanism_status:?}");
        // What is known of a peer is forgotten when it leaves.
        group.barrier();
    });
}

#[test]
fn without_any_mechanism_that_works_the_error_names_the_peer() {
    Test::new(test_name!(), 2).time_limit(LIMIT).run(|group| {
        let mut device = device(group, Endpoint::builder().without_default_mechanisms().register(Broken));
        let send = device.send(1, content(1, 100_000)).expect("the other lives");
        let receive = device.receive(1, 100_000).expect("the other lives");
        let peer = group.id().member(1 - group.rank());
        for operation in [receive, send] {
            match device.wait(operation) {
                Err(OperationError::Peer(PeerError::NoMechanism { id, .. })) => assert_eq!(id, peer),
                other => panic!("{other:?}"),
            }
        }
        finish(&mut device);
    });
}

fn killed_peer(test: Test, mechanism: &str) {
    // Where the one does not work, shared memory does.
    let mechanisms = if mechanism == "shm" { "shm".to_owned() } else { format!("{mechanism},shm") };
    let drive = |parent: &mut lmt_conformance::group::Parent| {
        parent.next_report(1).expect("rank 1 goes on");
        std::thread::sleep(Duration::from_millis(20));
        parent.kill(1, 9);
    };
    test.may_die(1).env("LMT_MECHANISM", &mechanisms).time_limit(LIMIT).run_with(drive, |group| {
        let mut device = device(group, Endpoint::builder());
        let mut rounds = 0;
        // Rank 0 notes how long the operation took that failed.
        let mut begun = Instant::now();
        let result = loop {
            let send = device.send(1, vec![1; 4 << 20]);
            let receive = device.receive(1, 4 << 20);
            let both = [receive, send].map(|begun| begun.and_then(|handle| device.wait(handle)));
            match both.into_iter().find_map(Result::err) {
                // The device layer refuses a packet that the dead peer left in the
                // device's socket, and the device passes that on.
                Some(OperationError::System(_)) if device.layer.peer_error(device.peer).is_some() => continue,
                Some(error) => break (error, begun.elapsed()),
                None => begun = Instant::now(),
            }
            rounds += 1;
            if rounds == 3 && group.rank() == 1 {
                group.report("in flight");
            }
        };
        let peer = group.id().member(1 - group.rank());
        assert_eq!(result.0, OperationError::Peer(PeerError::Dead { id: peer }));
        assert!(result.1 < SOON, "{:?}", result.1);
        let error = device.send(2, vec![1; 4 << 20]).expect_err("the peer is dead");
        assert_eq!(error, result.0);
    });
}

#[test]
fn a_killed_peer_ends_what_is_under_way() {
    for name in mechanisms::of_any_memory() {
        killed_peer(Test::new(test_name!(), 2), name);
    }
}

/// A port that keeps what it is given, as much as it has room for.
#[derive(Default)]
struct Pigeonhole {
    packets: Vec<Vec<u8>>,
    room: usize,
    refused: usize,
}

impl PacketTransport for Pigeonhole {
    fn send_packet(&mut self, _to: PeerId, packet: &[u8]) -> Result<(), TransportFull> {
        assert!(packet.len() <= PACKET_MAX_BYTES);
        if self.room == 0 {
            self.refused += 1;
            return Err(TransportFull);
        }
        self.room -= 1;
        self.packets.push(packet.to_vec());
        Ok(())
    }
}

/// Two device layers of one process that know each other.
fn two_layers() -> ([DeviceLayer; 2], [PeerId; 2]) {
    two_layers_of(Endpoint::builder)
}

fn two_layers_of(builder: impl Fn() -> EndpointBuilder) -> ([DeviceLayer; 2], [PeerId; 2]) {
    let [mut a, mut b] = [(); 2].map(|()| builder().build_device_layer().expect("a layer"));
    let peers = connect(&mut a, &mut b);
    ([a, b], peers)
}

fn connect(a: &mut DeviceLayer, b: &mut DeviceLayer) -> [PeerId; 2] {
    let peers = [a.insert_peer(&b.address().clone()), b.insert_peer(&a.address().clone())];
    let peers = peers.map(|peer| peer.expect("room for a peer"));
    let begun = Instant::now();
    while !(a.is_connected(peers[0]) && b.is_connected(peers[1])) {
        a.progress(&mut Pigeonhole::default()).expect("no fork here");
        b.progress(&mut Pigeonhole::default()).expect("no fork here");
        assert!(begun.elapsed() < LIMIT);
    }
    peers
}

/// The packets that a device layer has to send now.
fn packets_of(layer: &mut DeviceLayer) -> Vec<Vec<u8>> {
    let mut port = Pigeonhole { room: usize::MAX, ..Pigeonhole::default() };
    layer.progress(&mut port).expect("no fork here");
    port.packets
}

/// Sends from one device layer and announces at the other.
fn announce(
    from: &mut DeviceLayer,
    to: PeerId,
    source: &mut [u8],
    at: &mut DeviceLayer,
    peer: PeerId,
) -> Announcement {
    let _send = from.send(to, b"envelope", lend(source, Access::Read)).expect("a send");
    let packets = packets_of(from);
    match at.on_packet(peer, &packets[0]).expect("its own packet") {
        Arrival::Announced(announcement) => announcement,
        other => panic!("{other:?}"),
    }
}

/// Takes a send back and hands the question to the other device layer.
fn withdraw(
    from: &mut DeviceLayer,
    to: PeerId,
    source: &mut [u8],
    at: &mut DeviceLayer,
    peer: PeerId,
) -> Withdrawal {
    let send = from.send(to, b"", lend(source, Access::Read)).expect("a send");
    from.cancel(send).expect("no fork here");
    let packets = packets_of(from);
    match at.on_packet(peer, packets.last().expect("the question")).expect("its own packet") {
        Arrival::Withdrawn(withdrawal) => withdrawal,
        other => panic!("{other:?}"),
    }
}

/// Two sides exchange packets until a condition holds.
fn exchange(
    a: &mut DeviceLayer,
    to_b: PeerId,
    b: &mut DeviceLayer,
    to_a: PeerId,
    mut done: impl FnMut(&mut DeviceLayer, &mut DeviceLayer) -> bool,
) {
    let begun = Instant::now();
    while !done(a, b) {
        for packet in packets_of(a) {
            b.on_packet(to_a, &packet).expect("a's own packet");
        }
        for packet in packets_of(b) {
            a.on_packet(to_b, &packet).expect("b's own packet");
        }
        assert!(begun.elapsed() < LIMIT);
    }
}

fn wait_until_gone(layer: &mut DeviceLayer, peer: PeerId) {
    let begun = Instant::now();
    while layer.peer_error(peer).is_none() {
        let _none = packets_of(layer);
        assert!(begun.elapsed() < LIMIT);
    }
}

fn lend(memory: &mut [u8], access: Access) -> Buffer {
    // SAFETY: the tests keep the memory longer than the device layers, and look at it
    // only when the requests have ended.
    unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.expect("a slice")
}

#[test]
fn a_full_port_is_tried_again_and_nothing_overtakes() {
    let mut sources: Vec<Vec<u8>> = (0..20).map(|tag| content(tag, 50_000)).collect();
    let mut targets = vec![vec![0; 50_000]; 20];
    // Streams need no answer.
    let by_answers = || Endpoint::builder().mechanisms(&["cma:put", "shm"]);
    let ([mut a, mut b], [to_b, to_a]) = two_layers_of(by_answers);
    let mut ports = [Pigeonhole::default(), Pigeonhole::default()];
    let sends: Vec<_> = sources
        .iter_mut()
        .enumerate()
        .map(|(tag, source)| a.send(to_b, &[tag as u8], lend(source, Access::Read)).expect("a send"))
        .collect();
    assert_eq!(a.unsent(to_b), 20);
    let (mut receives, mut turns) = (Vec::new(), 0);
    let mut open: Vec<_> = sends;
    // Both ways: what a has written itself (Put), b hears of by its last word.
    while !open.is_empty() || receives.len() < 20 || a.unsent(to_b) > 0 || b.unsent(to_a) > 0 {
        turns += 1;
        assert!(turns < 1_000_000, "{} sends are open", open.len());
        // Room for one packet every third turn.
        for port in &mut ports {
            port.room = usize::from(turns % 3 == 0);
        }
        a.progress(&mut ports[0]).expect("no fork here");
        b.progress(&mut ports[1]).expect("no fork here");
        for packet in ports[0].packets.drain(..) {
            if let Arrival::Announced(found) = b.on_packet(to_a, &packet).expect("a's own packet") {
                let tag = usize::from(found.envelope()[0]);
                assert_eq!(tag, receives.len(), "announcements stay in order");
                let buffer = lend(&mut targets[tag], Access::Write);
                receives.push(b.matched(found, buffer).expect("a lives"));
            }
        }
        for packet in ports[1].packets.drain(..) {
            a.on_packet(to_b, &packet).expect("b's own packet");
        }
        open.retain(|send| match a.test(*send) {
            Some(result) => result.expect("it arrives").bytes != 50_000,
            None => true,
        });
    }
    for receive in receives {
        assert_eq!(b.test(receive).expect("it has ended").expect("it arrived").bytes, 50_000);
    }
    assert!(ports[0].refused > 0 && ports[1].refused > 0);
    drop((a, b));
    assert_eq!(sources, targets);
}

#[test]
fn garbage_packets_are_refused_or_ignored() {
    // By a way whose sender hears of its message by packets alone: what looks like
    // the announcement of a stream makes a receiver take it in earnest.
    let by_packets = || Endpoint::builder().mechanisms(&["cma:get", "shm"]);
    let ([mut a, mut b], [to_b, to_a]) = two_layers_of(by_packets);
    let mut source = content(1, 100_000);
    let mut port = Pigeonhole { room: usize::MAX, ..Pigeonhole::default() };
    let send = a.send(to_b, b"envelope", lend(&mut source, Access::Read)).expect("a send");
    a.progress(&mut port).expect("no fork here");
    let rts = port.packets.pop().expect("the announcement");

    assert!(b.on_packet(to_a, &[]).is_err());
    let error = b.on_packet(to_a, &[200, 1, 2]).expect_err("the envelope is longer than the packet");
    assert!(error.to_string().contains("envelope"), "{error}");
    for bytes in 0..rts.len() {
        assert!(b.on_packet(to_a, &rts[..bytes]).is_err(), "the first {bytes} bytes");
    }
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut targets = vec![vec![0; 1000]; 50];
    let mut matched = 0;
    for round in 0..20_000 {
        let mut packet = rts.clone();
        if round % 2 == 0 {
            packet = (0..random() % (PACKET_MAX_BYTES + 10)).map(|_| random() as u8).collect();
        } else {
            for _ in 0..1 + random() % 4 {
                let at = random() % packet.len();
                packet[at] = random() as u8;
            }
        }
        // Whatever it is taken for, no panic, and the device layer goes on.
        match b.on_packet(to_a, &packet) {
            Ok(Arrival::Announced(found)) if matched < targets.len() => {
                let buffer = lend(&mut targets[matched], Access::Write);
                let _request = b.matched(found, buffer).expect("a lives");
                matched += 1;
            }
            Ok(Arrival::Withdrawn(withdrawal)) => b.withdrawn(withdrawal, random() % 2 == 0),
            Ok(_) | Err(_) => {}
        }
        if round % 100 == 0 {
            b.progress(&mut Pigeonhole { room: usize::MAX, ..Pigeonhole::default() }).expect("no fork here");
        }
    }
    // The same for the sender's side.
    for _ in 0..20_000 {
        let packet: Vec<u8> = (0..random() % PACKET_MAX_BYTES).map(|_| random() as u8).collect();
        let _outcome = a.on_packet(to_b, &packet);
    }
    a.progress(&mut port).expect("no fork here");
    a.cancel(send).expect("no fork here");
    // Unmatched, and nobody answers: the send is still there, and harmless.
    assert_eq!(a.unsent(to_b), 1);
    drop((a, b));
}

#[test]
fn envelopes_have_a_bound_and_unconnected_sends_can_be_taken_back() {
    let mut layer = Endpoint::builder().build_device_layer().expect("a layer");
    let nobody = Endpoint::builder().build_device_layer().expect("a layer").address().clone();
    let peer = layer.insert_peer(&nobody).expect("room for a peer");
    let mut source = content(1, 100_000);
    let error = layer.send(peer, &[0; 65], lend(&mut source, Access::Read)).expect_err("too long");
    assert!(error.to_string().contains("64"), "{error}");
    let send = layer.send(peer, &[0; 64], lend(&mut source, Access::Read)).expect("it waits");
    assert_eq!((layer.test(send), layer.unsent(peer)), (None, 1));
    layer.cancel(send).expect("no fork here");
    assert_eq!((layer.test(send), layer.unsent(peer)), (Some(Err(OperationError::Cancelled)), 0));
    drop(layer);
}

#[test]
fn what_another_layer_announced_is_refused_without_harm() {
    let (mut source, mut target) = (content(1, 100_000), vec![0; 100_000]);
    let ([mut a, mut b], [to_b, to_a]) = two_layers();
    let found = announce(&mut a, to_b, &mut source, &mut b, to_a);
    let taken_back = withdraw(&mut a, to_b, &mut source, &mut b, to_a);
    // One that knows no peer at all, so the peer's number is out of range, ...
    let mut stranger = Endpoint::builder().build_device_layer().expect("a layer");
    let error = stranger.matched(found, lend(&mut target, Access::Write)).expect_err("not its own");
    assert_eq!(error, OperationError::ForeignMessage);
    stranger.withdrawn(taken_back, true);
    assert!(packets_of(&mut stranger).is_empty());
    // ... and one that knows another under the same number.
    let found = announce(&mut a, to_b, &mut source, &mut b, to_a);
    let taken_back = withdraw(&mut a, to_b, &mut source, &mut b, to_a);
    let error = a.matched(found, lend(&mut target, Access::Write)).expect_err("not its own");
    assert_eq!(error, OperationError::ForeignMessage);
    a.withdrawn(taken_back, true);
    assert_eq!(a.unsent(to_b), 0);
    drop((a, b));
    assert!(target.iter().all(|byte| *byte == 0));
}

#[test]
fn what_a_peer_announced_before_it_came_again_is_not_answered() {
    let (mut source, mut target) = (content(1, 100_000), vec![0; 100_000]);
    let ([mut a, mut b], [to_b, to_a]) = two_layers();
    let first = announce(&mut a, to_b, &mut source, &mut b, to_a);
    let old = announce(&mut a, to_b, &mut source, &mut b, to_a);
    let (first_back, old_back) = [(); 2]
        .map(|()| withdraw(&mut a, to_b, &mut source, &mut b, to_a))
        .into_iter()
        .fold((None, None), |(_, last), next| (last, Some(next)));
    let _send = a.send(to_b, b"late", lend(&mut source, Access::Read)).expect("a send");
    let late = packets_of(&mut a).pop().expect("an announcement");
    let address = a.address().clone();
    a.close().expect("no fork here");
    drop(a);
    wait_until_gone(&mut b, to_a);

    let dead = OperationError::Peer(PeerError::Dead { id: address.id() });
    let error = b.matched(first, lend(&mut target, Access::Write)).expect_err("the peer is gone");
    assert_eq!(error, dead);
    b.withdrawn(first_back.expect("the first of two"), true);
    let error = b.on_packet(to_a, &late).expect_err("the peer is gone");
    assert!(error.to_string().contains("died"), "{error}");
    assert_eq!(b.unsent(to_a), 0);

    // Another comes to the same address, with a send under the same number.
    let mut a = Endpoint::builder().id(address.id()).build_device_layer().expect("the name is free again");
    let [to_b, again] = connect(&mut a, &mut b);
    assert_eq!(again, to_a);
    let found = announce(&mut a, to_b, &mut source, &mut b, to_a);
    let error = b.matched(old, lend(&mut target, Access::Write)).expect_err("an earlier connection's");
    assert_eq!(error, dead);
    b.withdrawn(old_back.expect("the second of two"), true);
    assert_eq!(b.unsent(to_a), 0);
    let receive = b.matched(found, lend(&mut target, Access::Write)).expect("the new one's");
    exchange(&mut a, to_b, &mut b, to_a, |_, b| {
        b.test(receive).is_some_and(|result| result.expect("it arrives").bytes == 100_000)
    });
    drop((a, b));
    assert_eq!(source, target);
}

#[test]
fn as_much_waits_as_the_configuration_allows() {
    let mut source = content(1, 100_000);
    let builder = || Endpoint::builder().configure(|config| config.pending_max_messages = 3);
    let fill = |layer: &mut DeviceLayer, peer, id, source: &mut [u8]| {
        for _ in 0..3 {
            let _send = layer.send(peer, b"", lend(source, Access::Read)).expect("there is room");
        }
        let error = layer.send(peer, b"", lend(source, Access::Read)).expect_err("there is no room");
        assert_eq!(error, OperationError::WouldBlock { id, pending: 3 });
        assert_eq!(layer.unsent(peer), 3);
    };
    // Without a connection, ...
    let nobody = Endpoint::builder().build_device_layer().expect("a layer").address().clone();
    let mut layer = builder().build_device_layer().expect("a layer");
    let peer = layer.insert_peer(&nobody).expect("room for a peer");
    fill(&mut layer, peer, nobody.id(), &mut source);
    // ... and while the port is full.
    let ([mut a, b], [to_b, _]) = two_layers_of(builder);
    fill(&mut a, to_b, b.address().id(), &mut source);
    a.progress(&mut Pigeonhole::default()).expect("no fork here");
    a.send(to_b, b"", lend(&mut source, Access::Read)).expect_err("there is no room");
    assert_eq!(packets_of(&mut a).len(), 3);
    let _send = a.send(to_b, b"", lend(&mut source, Access::Read)).expect("there is room again");
    drop((layer, a, b));
}

#[test]
fn a_layer_that_is_polled_seldom_notices_an_end_soon() {
    let ([mut a, b], [to_b, _]) = two_layers();
    // So that the next look is a long way off by the number of calls.
    for _ in 0..300 {
        let _none = packets_of(&mut a);
    }
    drop(b);
    let mut calls = 0;
    while a.peer_error(to_b).is_none() {
        std::thread::sleep(Duration::from_millis(10));
        let _none = packets_of(&mut a);
        calls += 1;
        assert!(calls <= 8, "{calls} calls");
    }
}

#[test]
fn closing_ends_what_is_under_way() {
    for name in mechanisms::of_any_memory() {
        let builder = move || Endpoint::builder().mechanisms(&[name]).configure(|c| c.quota_bytes = 4096);
        let (mut source, mut target) = (content(1, 4 << 20), vec![0; 4 << 20]);
        let ([mut a, mut b], [to_b, to_a]) = two_layers_of(builder);
        let works = b.mechanism_status(to_a).iter().any(|(_, s)| s.ours != Abilities::default());
        if !works {
            eprintln!("skipped: {name} does not work here");
            continue;
        }
        let found = announce(&mut a, to_b, &mut source, &mut b, to_a);
        let receive = b.matched(found, lend(&mut target, Access::Write)).expect("a lives");
        let queued = b.send(to_a, b"", lend(&mut [1; 9], Access::Read)).expect("a lives");
        for _ in 0..4 {
            packets_of(&mut b).iter().for_each(|packet| drop(a.on_packet(to_b, packet)));
            packets_of(&mut a).iter().for_each(|packet| drop(b.on_packet(to_a, packet)));
        }
        assert_eq!(b.test(receive), None, "it takes many steps");

        b.close().expect("no fork here");
        let removed = PeerError::Removed { id: a.address().id() };
        for request in [receive, queued] {
            assert_eq!(b.test(request), Some(Err(OperationError::Peer(removed.clone()))), "{name}");
        }
        assert_eq!(b.peer_error(to_a), Some(&removed));
        assert_eq!((b.unsent(to_a), b.sleep_limit() > Duration::ZERO), (0, true));
        let before = target.clone();
        // Past the sockets, too.
        for _ in 0..600 {
            assert_eq!(b.progress(&mut Pigeonhole::default()), Ok(false), "{name}");
        }
        assert!(target == before, "{name}: nothing is copied after the goodbye");
        // The peer hears it, and both can meet again.
        wait_until_gone(&mut a, to_b);
        let [to_b, to_a] = connect(&mut a, &mut b);
        let found = announce(&mut a, to_b, &mut source, &mut b, to_a);
        let receive = b.matched(found, lend(&mut target, Access::Write)).expect("a lives");
        exchange(&mut a, to_b, &mut b, to_a, |_, b| {
            b.test(receive).is_some_and(|result| result.expect("it arrives").bytes == 4 << 20)
        });
        drop((a, b));
        assert!(source == target, "{name}");
    }
}
