use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, bind, connect, listen, recv, send, socket,
};

use super::test_support::*;
use crate::connect::wire::{HelloBody, Kind};
use crate::connect::{Closed, ConnectError, Connector, SendError, wire};
use crate::vocabulary::config::Config;
use crate::vocabulary::error::PeerError;
use crate::vocabulary::identity::{Address, EndpointId};

fn connected_pair() -> (Party, Party) {
    let (a, b) = two_ids();
    let (mut one, mut two) = (Party::new(a), Party::new(b));
    one.connector.connect(two.connector.address());
    until(&mut [&mut one, &mut two], |p| {
        p[0].connector.is_established(b) && p[1].connector.is_established(a)
    });
    (one, two)
}

#[test]
fn a_connector_may_move_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    let (one, mut two) = connected_pair();
    is_send(&one.connector);
    let id = id_of(&one);
    std::thread::spawn(move || drop(one)).join().unwrap();
    until(&mut [&mut two], |p| p[0].recorder.closed_how(id) == Some(Closed::Goodbye));
}

fn id_of(party: &Party) -> EndpointId {
    party.connector.address().id()
}

#[test]
fn two_parties_meet_and_report() {
    let (one, two) = connected_pair();
    for (party, peer) in [(&one, &two), (&two, &one)] {
        let Some(Happened::Established(facts, report)) =
            party.recorder.log.iter().find(|e| matches!(e, Happened::Established(..)))
        else {
            panic!("{:?}", party.recorder.log);
        };
        assert_eq!(facts.id, id_of(peer));
        assert_eq!(facts.process.pid(), Some(std::process::id() as i32));
        assert!(facts.process.pidfd().is_some() && facts.process.is_alive());
        assert_eq!(report, b"read your nonce");
    }
    assert_eq!(one.connector.next_deadline(), None);
}

#[test]
fn both_at_once_gives_one_connection_whoever_is_first() {
    // Every order of the first six steps of either side.
    for order in 0..64u32 {
        let (a, b) = two_ids();
        let (mut one, mut two) = (Party::new(a), Party::new(b));
        one.connector.connect(two.connector.address());
        two.connector.connect(one.connector.address());
        for bit in 0..6 {
            if order >> bit & 1 == 0 { one.step() } else { two.step() }
        }
        until(&mut [&mut one, &mut two], |p| {
            p[0].connector.is_established(b) && p[1].connector.is_established(a)
        });
        for _ in 0..20 {
            one.step();
            two.step();
        }
        for (party, peer) in [(&one, b), (&two, a)] {
            assert_eq!(party.recorder.established_with(peer), 1, "{order}: {:?}", party.recorder.log);
            assert_eq!(party.recorder.error_of(peer), None);
            assert_eq!(party.recorder.closed_how(peer), None);
        }
    }
}

#[test]
fn goodbye_is_told_and_one_may_come_again() {
    let (mut one, mut two) = connected_pair();
    let (a, b) = (id_of(&one), id_of(&two));
    for round in 1..=3 {
        // Goodbye and the new connection arrive together.
        two.connector.goodbye(a);
        two.connector.connect(one.connector.address());
        until(&mut [&mut one, &mut two], |p| {
            p[0].recorder.established_with(b) == round + 1 && p[1].recorder.established_with(a) == round + 1
        });
        assert_eq!(one.recorder.closed_how(b), Some(Closed::Goodbye));
    }
    drop(two);
    until(&mut [&mut one], |p| !p[0].connector.is_established(b));
    assert_eq!(one.recorder.closed_how(b), Some(Closed::Goodbye));
}

#[test]
fn a_second_incarnation_connects() {
    let (mut one, two) = connected_pair();
    let (a, b) = (id_of(&one), id_of(&two));
    drop(two);
    let mut two = Party::new(b);
    two.connector.connect(one.connector.address());
    until(&mut [&mut one, &mut two], |p| {
        p[0].recorder.established_with(b) == 2 && p[1].connector.is_established(a)
    });
    assert_eq!(one.recorder.closed_how(b), Some(Closed::Goodbye));
}

#[test]
fn connecting_again_changes_nothing() {
    let (mut one, mut two) = connected_pair();
    let (a, b) = (id_of(&one), id_of(&two));
    for _ in 0..50 {
        one.connector.connect(two.connector.address());
        two.connector.connect(one.connector.address());
        one.step();
        two.step();
    }
    assert_eq!((one.recorder.established_with(b), two.recorder.established_with(a)), (1, 1));
}

#[test]
fn nobody_there_is_unreachable_and_a_late_one_is_reached() {
    let (a, b) = two_ids();
    let config = Config { connect_timeout_ms: 60, ..Config::default() };
    let mut one = Party::with(a, &config);
    one.connector.connect(&Address::abstract_socket(b));
    let start = Instant::now();
    until(&mut [&mut one], |p| p[0].recorder.error_of(b).is_some());
    assert!(matches!(one.recorder.error_of(b), Some(PeerError::Unreachable { waited_ms: 60.., .. })));
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(one.connector.connecting(), 0);

    let mut one = Party::new(a.member(9));
    one.connector.connect(&Address::abstract_socket(b));
    for _ in 0..5 {
        one.step();
        one.connector.wait(Some(Duration::from_millis(5)));
    }
    assert!(one.connector.has_no_listener(b));
    let mut two = Party::new(b);
    until(&mut [&mut one, &mut two], |p| p[0].connector.is_established(b));
    assert!(!one.connector.has_no_listener(b));
}

#[test]
fn who_was_not_there_and_comes_by_itself_is_there() {
    let (a, b) = two_ids();
    let mut one = Party::new(a);
    one.connector.connect(&Address::abstract_socket(b));
    // Until its next attempt is far off.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(60) {
        one.step();
        one.connector.wait(Some(Duration::from_millis(5)));
    }
    assert!(one.connector.has_no_listener(b));
    let mut two = Party::new(b);
    two.connector.connect(one.connector.address());
    until(&mut [&mut one, &mut two], |p| p[0].connector.is_established(b));
    assert!(!one.connector.has_no_listener(b));
}

#[test]
fn a_name_in_use_is_an_error() {
    let one = Party::new(random_id());
    let error = Connector::new(id_of(&one), &quick_config()).unwrap_err();
    assert!(matches!(error, ConnectError::NameInUse { .. }));
    assert!(error.to_string().contains("already has the id"));
}

#[test]
fn refusals_of_the_embedder_reach_both_sides() {
    for (hello, probe, by_first) in
        [(true, false, true), (true, false, false), (false, true, true), (false, true, false)]
    {
        let (a, b) = two_ids();
        let (mut one, mut two) = (Party::new(a), Party::new(b));
        let unwilling = if by_first { &mut one } else { &mut two };
        unwilling.recorder.refuse_hello = hello;
        unwilling.recorder.refuse_probe = probe;
        one.connector.connect(two.connector.address());
        until(&mut [&mut one, &mut two], |p| p[0].recorder.error_of(b).is_some());
        let said = |party: &Party, peer| party.recorder.error_of(peer).map(ToString::to_string);
        let sentence = said(&one, b).unwrap();
        assert!(sentence.contains("for you"), "{sentence}");
        if probe {
            until(&mut [&mut one, &mut two], |p| p[1].recorder.error_of(a).is_some());
            assert!(said(&two, a).unwrap().contains("no use for you"));
        }
        assert_eq!((one.connector.connecting(), two.connector.connecting()), (0, 0));
    }
}

#[test]
fn a_peer_that_is_short_is_told_as_the_one() {
    let (a, b) = two_ids();
    for (short, other) in [(a, b), (b, a)] {
        let (mut one, mut two) = (Party::new(short), Party::new(other));
        (one.recorder.refuse_hello, one.recorder.refused_by) = (true, Some(Errno::EMFILE));
        two.connector.connect(one.connector.address());
        until(&mut [&mut one, &mut two], |p| p[1].recorder.error_of(short).is_some());
        let error = two.recorder.error_of(short).unwrap();
        assert!(matches!(error, PeerError::System { errno: Errno::EMFILE, .. }), "{error:?}");
        assert!(
            error.to_string().contains("in the peer's process, not in this one, no handshake"),
            "{error}"
        );
        drop((one, two));
        let (mut one, mut two) = (Party::new(short), Party::new(other));
        (one.recorder.refuse_hello, one.recorder.refused_by) = (true, Some(Errno::EMFILE));
        one.connector.connect(two.connector.address());
        until(&mut [&mut one, &mut two], |p| p[0].recorder.error_of(other).is_some());
        let error = one.recorder.error_of(other).unwrap();
        assert!(!error.to_string().contains("peer's process"), "{error}");
    }
}

#[test]
fn to_oneself_is_refused_in_words() {
    let mut one = Party::new(random_id());
    let address = one.connector.address().clone();
    one.connector.connect(&address);
    until(&mut [&mut one], |p| p[0].recorder.error_of(id_of(p[0])).is_some());
}

#[test]
fn descriptors_arrive_in_order_and_a_full_peer_does_not_block() {
    let (mut one, mut two) = connected_pair();
    let (a, b) = (id_of(&one), id_of(&two));
    let mut sent = 0u32;
    let refused = loop {
        let fds = vec![memfd_with(&format!("first {sent}")), memfd_with("second")];
        match one.connector.send_descriptors(b, &sent.to_ne_bytes(), fds) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, SendError::Full { waiting: 256, .. }) && sent > 256, "{refused} after {sent}");
    until(&mut [&mut one, &mut two], |p| {
        let count = |e: &&Happened| matches!(e, Happened::Descriptors(..));
        p[1].recorder.log.iter().filter(count).count() as u32 == sent
    });
    let got = two.recorder.log.iter().filter_map(|e| match e {
        Happened::Descriptors(id, bytes, texts) if *id == a => Some((bytes, texts)),
        _ => None,
    });
    for (number, (bytes, texts)) in (0u32..).zip(got) {
        assert_eq!((bytes.as_slice(), &texts[0]), (&number.to_ne_bytes()[..], &format!("first {number}")));
        assert_eq!(texts[1], "second");
    }
    assert_eq!(one.connector.unsent(b), 0);
    let long = one.connector.send_descriptors(b, &[0; 4097], Vec::new());
    assert!(matches!(long, Err(SendError::TooLarge { bytes: 4097, descriptors: 0 })));
    let stranger = one.connector.send_descriptors(random_id(), &[], Vec::new());
    assert!(matches!(stranger, Err(SendError::NotConnected(_))));
}

#[test]
fn the_embedders_descriptor_is_watched() {
    let mut one = Party::new(random_id());
    let doorbell = nix::sys::eventfd::EventFd::new().unwrap();
    one.connector.add_readable(doorbell.as_fd(), 7).unwrap();
    assert!(one.connector.add_readable(doorbell.as_fd(), 1 << 63).is_err());
    one.step();
    assert!(one.recorder.log.is_empty());
    doorbell.write(1).unwrap();
    let start = Instant::now();
    one.connector.wait(Some(Duration::from_secs(60)));
    assert!(start.elapsed() < Duration::from_secs(30));
    one.step();
    assert!(matches!(one.recorder.log[..], [Happened::Readable(7)]));
    one.connector.remove_readable(doorbell.as_fd()).unwrap();
    one.step();
    assert_eq!(one.recorder.log.len(), 1);
}

/// A client that speaks no protocol of its own accord.
fn raw_client(to: EndpointId) -> std::os::fd::OwnedFd {
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let name = UnixAddr::new_abstract(format!("lmt-{to}").as_bytes()).unwrap();
    connect(fd.as_raw_fd(), &name).unwrap();
    let backoff = nix::sys::time::TimeVal::new(5, 0);
    nix::sys::socket::setsockopt(&fd, nix::sys::socket::sockopt::ReceiveTimeout, &backoff).unwrap();
    fd
}

fn answer(fd: &std::os::fd::OwnedFd) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let count = recv(fd.as_raw_fd(), &mut bytes, MsgFlags::empty()).unwrap();
    bytes.truncate(count);
    bytes
}

#[test]
fn another_version_is_refused_in_words() {
    let mut one = Party::new(random_id());
    let client = raw_client(id_of(&one));
    let mut hello = wire::encode(random_id(), Kind::Hello, 0, Some(&HelloBody::default()), b"");
    hello[4..6].copy_from_slice(&9u16.to_ne_bytes());
    send(client.as_raw_fd(), &hello, MsgFlags::empty()).unwrap();
    one.step();
    let bytes = answer(&client);
    let refusal = wire::parse(&bytes, 0).unwrap();
    assert_eq!(refusal.kind, Kind::Refuse);
    let ours = format!("version {} ", crate::connect::wire::PROTOCOL_VERSION);
    assert!(refusal.reason().contains(&ours) && refusal.reason().contains("version 9"));
    assert!(answer(&client).is_empty(), "the connection is closed");
    assert!(one.recorder.log.is_empty(), "{:?}", one.recorder.log);
}

#[test]
fn garbage_ends_only_its_own_connection() {
    let (mut one, mut two) = connected_pair();
    let (a, b) = (id_of(&one), id_of(&two));
    let good = wire::encode(random_id(), Kind::Hello, 0, Some(&HelloBody::default()), b"");
    let long = vec![1; wire::MAX_DATAGRAM_BYTES + 1000];
    let report = wire::encode(random_id(), Kind::Report, 0, None, b"");
    let own = wire::encode(a, Kind::Hello, 0, Some(&HelloBody::default()), b"");
    let too_long = [&good[..], &long].concat();
    for bytes in [&b"x"[..], &good[..40], &long, &report, &own, &too_long] {
        let client = raw_client(a);
        send(client.as_raw_fd(), bytes, MsgFlags::empty()).unwrap();
        one.step();
        let reply = answer(&client);
        assert_eq!(wire::parse(&reply, 0).unwrap().kind, Kind::Refuse);
    }
    // Garbage after a good HELLO: refused, and the embedder is told.
    let id = random_id();
    let client = raw_client(a);
    let greeting = wire::encode(id, Kind::Hello, 1, Some(&HelloBody::default()), b"hi");
    assert_eq!(
        crate::connect::socket::send(client.as_fd(), &greeting, &[memfd_with("hi")]),
        crate::connect::socket::Sent::Yes
    );
    send(client.as_raw_fd(), b"garbage", MsgFlags::empty()).unwrap();
    until(&mut [&mut one], |p| p[0].recorder.error_of(id).is_some());
    let reply = answer(&client);
    assert_eq!(wire::parse(&reply, usize::from(reply[7])).unwrap().kind, Kind::Hello);
    assert_eq!(wire::parse(&answer(&client), 0).unwrap().kind, Kind::Report);
    assert_eq!(wire::parse(&answer(&client), 0).unwrap().kind, Kind::Refuse);
    one.connector.send_descriptors(b, b"still there", Vec::new()).unwrap();
    until(&mut [&mut one, &mut two], |p| {
        p[1].recorder.log.iter().any(|e| matches!(e, Happened::Descriptors(..)))
    });
    assert_eq!(one.recorder.closed_how(b), None);
}

#[test]
fn silent_strangers_are_dropped_after_a_while_and_bounded_in_number() {
    let config = Config { connect_timeout_ms: 200, ..Config::default() };
    let mut one = Party::with(random_id(), &config);
    let clients: Vec<_> = (0..1200).map(|_| raw_client(id_of(&one))).collect();
    for _ in 0..10 {
        one.step();
    }
    let has_ended = |fd: &&std::os::fd::OwnedFd| {
        let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
    };
    assert_eq!(clients.iter().filter(has_ended).count(), 1200 - 1024);
    assert!(answer(&clients[0]).is_empty(), "the oldest was dropped");
    assert!(one.connector.next_deadline().is_some());
    std::thread::sleep(Duration::from_millis(250));
    one.step();
    let last = answer(&clients[1199]);
    assert_eq!(wire::parse(&last, 0).unwrap().kind, Kind::Refuse);
    assert_eq!(clients.iter().filter(has_ended).count(), 1200);
    assert_eq!(one.connector.next_deadline(), None);
}

#[test]
fn a_full_backlog_is_retried() {
    let (a, b) = two_ids();
    // A listener with room for one, which is taken.
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(fd.as_raw_fd(), &UnixAddr::new_abstract(format!("lmt-{b}").as_bytes()).unwrap()).unwrap();
    listen(&fd, Backlog::new(0).unwrap()).unwrap();
    let blocking = raw_client(b);
    assert_eq!(
        crate::connect::socket::try_connect(&Address::abstract_socket(b)).unwrap_err(),
        crate::connect::socket::ConnectFailure::Full
    );
    let mut one = Party::new(a);
    one.connector.connect(&Address::abstract_socket(b));
    for _ in 0..20 {
        one.step();
        one.connector.wait(Some(Duration::from_millis(1)));
    }
    assert!(one.recorder.log.is_empty(), "{:?}", one.recorder.log);
    let answer_by = |one: &Party| one.connector.peers[&b].answer_by;
    let before = answer_by(&one);
    assert!(before.is_some(), "it is there");
    // Longer than the longest pause between two attempts.
    std::thread::sleep(Duration::from_millis(60));
    one.step();
    assert_eq!(answer_by(&one), before, "it is not waited for without end");
    assert!(one.connector.connects_since(Duration::from_secs(60)));
    assert!(!one.connector.connects_since(Duration::from_millis(1)));
    let first = crate::connect::sys::accept(fd.as_fd()).unwrap();
    until(&mut [&mut one], |p| matches!(p[0].recorder.log[..], [Happened::Hello]));
    let second = crate::connect::sys::accept(fd.as_fd()).unwrap();
    let mut buffer = [0; 8192];
    let datagram = crate::connect::sys::receive(second.as_fd(), &mut buffer).unwrap();
    assert_eq!(datagram.descriptors.len(), 1);
    assert_eq!(wire::parse(&buffer[..datagram.bytes], 1).unwrap().id, a);
    drop((first, blocking));
}

#[test]
fn a_folder_socket_is_removed_and_a_stale_one_replaced() {
    let folder = std::env::temp_dir().join(format!("lmt-test-{}", random_id()));
    std::fs::create_dir(&folder).unwrap();
    let config = Config { socket_dir: Some(folder.clone()), ..quick_config() };
    let (a, b) = two_ids();
    let files = || std::fs::read_dir(&folder).unwrap().count();
    // What a killed endpoint leaves: a file on which nobody listens.
    let stale = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(stale.as_raw_fd(), &UnixAddr::new(&folder.join(format!("lmt-{a}"))).unwrap()).unwrap();
    drop(stale);
    let (mut one, mut two) = (Party::with(a, &config), Party::with(b, &config));
    assert_eq!(files(), 2);
    assert!(matches!(Connector::new(a, &config), Err(ConnectError::NameInUse { .. })));
    one.connector.connect(two.connector.address());
    until(&mut [&mut one, &mut two], |p| p[0].connector.is_established(b));
    drop((one, two));
    assert_eq!(files(), 0);
    std::fs::remove_dir(&folder).unwrap();
    let error = Connector::new(a, &config).unwrap_err();
    assert!(matches!(error, ConnectError::Folder { errno: libc::ENOENT, .. }), "{error}");
}

#[test]
fn the_process_is_found_without_peer_pidfd_too() {
    let listener = Party::new(random_id());
    let client = raw_client(id_of(&listener));
    let credentials = crate::connect::socket::credentials(&client).unwrap();
    let process = crate::connect::socket::process_by_pid(&client, &credentials).unwrap().unwrap();
    assert_eq!(process.pid(), Some(std::process::id() as i32));
    assert!(process.pidfd().is_some() && process.is_alive());
    drop(listener);
    // Another test's child may hold the listening socket until its exec.
    let end = Instant::now() + Duration::from_secs(5);
    while crate::connect::socket::process_by_pid(&client, &credentials).unwrap().is_some() {
        assert!(Instant::now() < end, "the connection has not hung up");
    }
}

#[test]
fn a_connection_given_up_before_its_hello_is_read_raises_no_alarm() {
    let (a, b) = two_ids();
    let (mut one, mut two) = (Party::new(a), Party::new(b));
    two.connector.connect(one.connector.address());
    two.step();
    two.connector.goodbye(a);
    one.step();
    one.step();
    assert!(one.recorder.log.is_empty(), "{:?}", one.recorder.log);
}

#[test]
fn a_forked_child_touches_nothing() {
    let folder = std::env::temp_dir().join(format!("lmt-test-{}", random_id()));
    std::fs::create_dir(&folder).unwrap();
    let config = Config { socket_dir: Some(folder.clone()), ..quick_config() };
    let (a, b) = two_ids();
    let (mut one, mut two) = (Party::with(a, &config), Party::new(b));
    two.connector.connect(one.connector.address());
    until(&mut [&mut one, &mut two], |p| p[0].connector.is_established(b));
    until(&mut [&mut one, &mut two], |p| p[1].connector.is_established(a));
    let doorbell = nix::sys::eventfd::EventFd::new().unwrap();
    one.connector.add_readable(doorbell.as_fd(), 5).unwrap();
    let mut both = Some((one, two));
    // Once the child only lives on, once it tries everything.
    for round in 0..2 {
        let parties = &mut both;
        let status = crate::connect::sys::in_forked_child(|| {
            let Some((mut one, mut two)) = parties.take() else { return 1 };
            if round == 1 {
                one.connector.goodbye_all();
                two.connector.goodbye(a);
                two.connector.connect(&Address::abstract_socket(a.member(7)));
                let _ = one.connector.remove_readable(doorbell.as_fd());
                let refused = one.connector.send_descriptors(b, b"child", Vec::new()).is_err();
                one.step();
                two.step();
                if !refused {
                    return 2;
                }
            }
            drop((one, two));
            0
        });
        assert_eq!(status, 0, "round {round}");
    }
    let (mut one, mut two) = both.unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "the socket's file stands");
    doorbell.write(1).unwrap();
    one.connector.send_descriptors(b, b"parent", Vec::new()).unwrap();
    until(&mut [&mut one, &mut two], |p| {
        p[1].recorder
            .log
            .iter()
            .any(|e| matches!(e, Happened::Descriptors(_, bytes, _) if bytes == b"parent"))
            && p[0].recorder.log.iter().any(|e| matches!(e, Happened::Readable(5)))
    });
    assert_eq!((one.recorder.closed_how(b), two.recorder.closed_how(a)), (None, None));
    drop(one);
    std::fs::remove_dir(&folder).unwrap();
}

/// However often it is rung, once progress has read it the peer sleeps again.
#[test]
fn a_ring_wakes_the_peer_and_says_nothing() {
    let (mut one, mut two) = connected_pair();
    let b = id_of(&two);
    for _ in 0..20 {
        one.step();
        two.step();
    }
    let told = two.recorder.log.len();
    let (_, waker) = one.recorder.wakers.iter().find(|(peer, _)| *peer == b).expect("they are connected");
    let sleeps = |party: &Party, at_most: Duration| {
        let start = Instant::now();
        party.connector.wait(Some(at_most));
        start.elapsed()
    };
    for rings in [1, 3, 50] {
        (0..rings).for_each(|_| waker.wake());
        assert!(sleeps(&two, Duration::from_secs(60)) < Duration::from_secs(30), "it is not woken");
        two.step();
        let pause = Duration::from_millis(50);
        assert!(sleeps(&two, pause) >= pause, "it is woken for what was read");
    }
    // A peer that reads nothing is not waited for, however often it is rung.
    (0..10_000).for_each(|_| waker.wake());
    for _ in 0..1000 {
        two.step();
    }
    assert_eq!(two.recorder.log.len(), told, "{:?}", two.recorder.log);
    // Nor one that is gone.
    let waker = waker.clone();
    drop(two);
    waker.wake();
}
