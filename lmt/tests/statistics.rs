//! What endpoints and device layers tell at their end of what they have moved.

mod common;

use std::process::Command;
use std::time::Instant;

use common::folder;
use lmt::buffer::{Access, Buffer, Segment};
use lmt::device::{Arrival, PacketTransport, TransportFull};
use lmt::{Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::test_name;

const MIB: usize = 1 << 20;

/// With `LMT_STATS=1` each endpoint tells at its end what it has moved.
#[test]
fn statistics_at_the_end() {
    const ROLE: &str = "LMT_TEST_OF_STATISTICS";
    if std::env::var_os(ROLE).is_some() {
        tell_statistics();
        tell_statistics_of_layers();
        return;
    }
    let nothing = folder(test_name!());
    let run = |wanted: &str| {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child
            .args(["--exact", "statistics_at_the_end", "--nocapture"])
            .env(ROLE, "1")
            .env("XDG_CONFIG_HOME", &nothing)
            .envs(common::OF_THE_USER.map(|variable| (variable, "")))
            .env("LMT_STATS", wanted);
        let output = child.output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let lines = errors.lines().filter_map(|line| line.strip_prefix("lmt stats "));
        lines.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect::<Vec<Vec<String>>>()
    };
    assert!(run("0").is_empty());
    // Into a file, behind what another has written.
    let file = nothing.join("stats");
    let path = file.to_str().expect("a plain path");
    let _none = std::fs::remove_file(path);
    assert!(run(path).is_empty() && run(path).is_empty());
    let written = std::fs::read_to_string(&file).expect("written");
    assert_eq!(written.lines().filter(|line| line.contains(" endpoint=")).count(), 6, "{written}");
    let mut lines = run("1");
    let layers = lines.split_off(8);
    let tables: Vec<&[Vec<String>]> = lines.chunks(4).collect();
    assert_eq!(tables.len(), 2, "one of each endpoint: {lines:?}");
    for table in tables {
        assert!(table[0][0].starts_with("pid=") && table[0][2].starts_with("endpoint="), "{table:?}");
        assert_eq!(
            table[1][1..],
            ["path", "sent", "sent_bytes", "received", "received_bytes", "demotions", "by_sender_bytes"]
        );
        assert_eq!(table[2][1], "eager");
        assert_eq!(table[3][1], "shm");
    }
    let of_sender = lines.chunks(4).find(|table| table[3][2] == "1").expect("one has sent");
    assert_eq!(of_sender[2][2..], ["1", "5", "0", "0", "0", "0"]);
    assert_eq!(of_sender[3][2..], ["1", "1048576", "0", "0", "0", "0"]);

    // Of the device layers one was told to be silent; the other has no cells.
    assert_eq!(layers.len(), 3, "{layers:?}");
    assert!(layers[0][0].starts_with("pid=") && layers[1][1] == "path", "{layers:?}");
    assert_eq!(layers[2][1..], ["shm", "1", "1048576", "0", "0", "0", "0"]);
}

/// What a device layer wants carried.
#[derive(Default)]
struct Packets(Vec<Vec<u8>>);

impl PacketTransport for Packets {
    fn send_packet(&mut self, _to: PeerId, packet: &[u8]) -> Result<(), TransportFull> {
        self.0.push(packet.to_vec());
        Ok(())
    }
}

/// Two device layers of one process, of which the one that receives is silent.
fn tell_statistics_of_layers() {
    let builder = || Endpoint::builder().mechanisms(&["shm"]);
    let (mut data, mut into) = (common::pattern(1, MIB), vec![0; MIB]);
    let mut one = builder().build_device_layer().expect("made");
    let mut other = builder().statistics(false).build_device_layer().expect("made");
    let to_other = one.insert_peer(other.address()).expect("a peer");
    let to_one = other.insert_peer(one.address()).expect("a peer");
    let lend = |memory: &mut [u8], access| {
        #[allow(unsafe_code)]
        // SAFETY: neither vector is touched before both requests are finished.
        unsafe { Buffer::new(&[Segment::of_mut(memory)], access) }.expect("plain memory")
    };
    let send = one.send(to_other, &[], lend(&mut data, Access::Read)).expect("begun");
    let (mut from_one, mut from_other) = (Packets::default(), Packets::default());
    let (mut receive, mut sent, mut received) = (None, None, None);
    let end = Instant::now() + common::LIMIT;
    while sent.is_none() || received.is_none() {
        assert!(Instant::now() < end, "the message does not arrive");
        one.progress(&mut from_one).expect("no fork here");
        other.progress(&mut from_other).expect("no fork here");
        for packet in from_one.0.drain(..) {
            if let Arrival::Announced(message) = other.on_packet(to_one, &packet).expect("understood") {
                receive = Some(other.matched(message, lend(&mut into, Access::Write)).expect("begun"));
            }
        }
        for packet in from_other.0.drain(..) {
            let _handled = one.on_packet(to_other, &packet).expect("understood");
        }
        sent = sent.or_else(|| one.test(send));
        received = received.or_else(|| other.test(receive?));
    }
    assert!(matches!((sent, received), (Some(Ok(_)), Some(Ok(_)))));
    common::check(1, &into);
}

/// Two endpoints of one process.
fn tell_statistics() {
    let build = || Endpoint::builder().mechanisms(&["shm"]).build().expect("made");
    let (one, other) = (build(), build());
    let peer = one.insert_peer(&other.address()).expect("a peer");
    other.insert_peer(&one.address()).expect("a peer");
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let mut into = vec![0; MIB];
            other.receive(Source::Any, TagMatch::exactly(1), &mut into).expect("received");
            other.receive(Source::Any, TagMatch::exactly(2), &mut into).expect("received");
            other.close().expect("closed");
        });
        one.send(peer, 1, b"short").expect("sent");
        one.send(peer, 2, &vec![1; MIB]).expect("sent");
    });
    drop(one);
}
