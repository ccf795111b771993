//! What goes wrong is said in one sentence, in time.

mod common;

use std::time::{Duration, Instant};

use lmt::{Config, ConfigError, Endpoint, EndpointId, OperationError, PeerError, Source, TagMatch};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;

fn is_one_sentence(text: &str) {
    assert!(!text.contains('\n') && text.len() > 20 && text.len() < 400, "{text}");
}

#[test]
fn a_peer_that_was_never_there_is_unreachable() {
    let config = |config: &mut Config| (config.connect_timeout_ms, config.close_timeout_ms) = (200, 60_000);
    let endpoint = Endpoint::builder().configure(config).build().expect("made");
    let id = EndpointId::from_bytes([9; 16]);
    let nobody = endpoint.insert_peer(&lmt::Address::abstract_socket(id)).expect("a peer");
    let started = Instant::now();
    let is_unreachable = |ended: Result<lmt::Status, OperationError>| {
        let error = ended.expect_err("nobody is there");
        assert!(
            matches!(&error, OperationError::Peer(PeerError::Unreachable { id: i, .. }) if *i == id),
            "{error:?}"
        );
        is_one_sentence(&error.to_string());
    };
    for _ in 0..2 {
        is_unreachable(endpoint.send(nobody, 1, b"short"));
        is_unreachable(endpoint.send(nobody, 1, &[0; 100_000]));
        is_unreachable(endpoint.send_synchronous(nobody, 1, b"short"));
        is_unreachable(endpoint.receive(Source::Peer(nobody), TagMatch::any(), &mut [0; 9]));
    }
    let took = started.elapsed();
    assert!(took > Duration::from_millis(1500) && took < Duration::from_secs(10), "{took:?}");
    // Nothing of it stays: dropping waits for nobody.
    let before = Instant::now();
    drop(endpoint);
    // Less than `close_timeout_ms` by far, also on a busy machine.
    assert!(before.elapsed() < Duration::from_secs(10));
}

/// An endpoint that nobody answers can be connected later.
#[test]
fn a_late_peer_is_reached_by_the_next_attempt() {
    let test = Test::new(test_name!(), 2).time_limit(common::LIMIT);
    test.run(|group| {
        if group.rank() == 0 {
            let (endpoint, peers) = common::join(group, |config| config.connect_timeout_ms = 100);
            let early = endpoint.send(peers[1], 1, b"early");
            assert!(matches!(early, Err(OperationError::Peer(PeerError::Unreachable { .. }))), "{early:?}");
            group.barrier();
            group.barrier();
            let end = Instant::now() + Duration::from_secs(20);
            while endpoint.send(peers[1], 1, b"late").is_err() {
                assert!(Instant::now() < end);
            }
            group.barrier();
        } else {
            group.barrier();
            let (endpoint, peers) = common::join_plain(group);
            group.barrier();
            let mut into = [0; 5];
            let status =
                endpoint.receive(Source::Peer(peers[0]), TagMatch::any(), &mut into).expect("received");
            assert_eq!(&into[..status.bytes as usize], b"late");
            group.barrier();
        }
    });
}

#[test]
fn variables_that_make_no_sense_are_named() {
    for (name, value, words) in [
        ("LMT_MECHANISM", "nonsense", "LMT_MECHANISM names `nonsense`, which is no mechanism"),
        ("LMT_MECHANISM", "shm,", "LMT_MECHANISM names ``"),
        ("LMT_EAGER_MAX", "abc", "LMT_EAGER_MAX"),
        ("LMT_EAGER_MAX", "99999999999", "LMT_EAGER_MAX"),
        ("LMT_CONNECT_TIMEOUT_MS", "-1", "LMT_CONNECT_TIMEOUT_MS"),
        (
            "LMT_CONFIG",
            "/no/such/file.toml",
            "/no/such/file.toml: the file that LMT_CONFIG names cannot be read",
        ),
        ("LMT_STATS", "yes", "LMT_STATS is `yes`; it must be 1"),
        ("LMT_STATS", "/no/such/file", "LMT_STATS names the file `/no/such/file`, which cannot be written"),
    ] {
        let results = Test::new(test_name!(), 1).time_limit(common::LIMIT).env(name, value).run(|group| {
            group.report(Endpoint::new().map(|_| ()).expect_err("this cannot work"));
        });
        for line in results.reports.iter().flatten() {
            assert!(line.contains(words), "{line}");
            is_one_sentence(line);
        }
    }
}

#[test]
fn numbers_that_cannot_work_are_named() {
    let changes: [fn(&mut Config); 6] = [
        |c| c.inbox_cells = 100,
        |c| c.cell_bytes = 100,
        |c| c.eager_max_bytes = 1 << 40,
        |c| c.max_peers = 0,
        |c| c.pending_max_messages = 0,
        |c| c.quota_bytes = 1,
    ];
    for change in changes {
        let error = Endpoint::builder().configure(change).build().map(|_| ()).expect_err("this cannot work");
        is_one_sentence(&error.to_string());
        assert!(error.to_string().contains("it must be"), "{error}");
    }
    assert!(matches!(
        Config { max_peers: 70_000, ..Config::default() }.check(),
        Err(ConfigError::OutOfRange { key: "max_peers", .. })
    ));
    let one = Endpoint::builder().configure(|c| c.max_peers = 1).build().expect("made");
    one.insert_peer(&one.address()).expect("there is room for one");
    let error =
        one.insert_peer(&lmt::Address::abstract_socket(EndpointId::from_bytes([1; 16]))).expect_err("full");
    assert_eq!(error, OperationError::TooManyPeers { max_peers: 1 });
    is_one_sentence(&error.to_string());
}

/// Two processes that have no mechanism in common: short messages go, and of a
/// long one both ends learn that it cannot, each by its own error.
#[test]
fn a_message_that_no_mechanism_can_move_ends_on_both_sides() {
    Test::new(test_name!(), 2).time_limit(Duration::from_secs(30)).run(|group| {
        let me = group.rank();
        let names = [["cma"], ["shm"]][me as usize];
        let endpoint = Endpoint::builder().id(group.id().member(me)).mechanisms(&names).build().unwrap();
        assert_eq!(endpoint.mechanism_names(), names, "the other is neither used nor offered");
        let peer = endpoint.insert_peer(&group.address(1 - me)).unwrap();
        let data = vec![1; 1 << 20];
        let mut into = vec![0; 1 << 20];
        endpoint.scope(|scope| {
            let receive = scope.receive(Source::Peer(peer), TagMatch::exactly(1), &mut into).unwrap();
            let send = scope.send(peer, 1, &data).unwrap();
            for result in [receive.wait(), send.wait()] {
                let no_way = matches!(&result, Err(OperationError::Peer(PeerError::NoMechanism { id, .. }))
                    if *id == group.id().member(1 - me));
                assert!(no_way, "{result:?}");
            }
        });
        endpoint.send(peer, 2, b"short").unwrap();
        let mut short = [0; 5];
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(2), &mut short).unwrap();
        group.barrier();
    });
}
