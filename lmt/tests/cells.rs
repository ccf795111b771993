//! Messages that are short enough for cells, of which there are too few.

mod common;

use common::{check, join_plain, pattern};
use lmt::{Source, TagMatch};
use lmt_conformance::group::Test;
use lmt_conformance::test_name;

/// More of them than the cells hold that two processes hand each other.
const MESSAGES: u64 = 40;
const BYTES: usize = 64 << 10;

/// All are sent before any is received: those that find cells go in them, the others are
/// announced, and none overtakes another.
#[test]
fn what_finds_no_cells_is_announced_in_order() {
    let test = Test::new(test_name!(), 2).time_limit(common::LIMIT);
    common::configured_by(&common::folder(test_name!()), test).run(|group| {
        let (endpoint, peers) = join_plain(group);
        let peer = peers[1 - group.rank() as usize];
        // Connected, so that each is decided when it is sent.
        endpoint.send(peer, 0, &[]).expect("it is there");
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(0), &mut []).expect("it is there");
        if group.rank() == 0 {
            let data: Vec<Vec<u8>> = (0..MESSAGES).map(|number| pattern(number, BYTES)).collect();
            endpoint.scope(|scope| {
                let sends: Vec<_> =
                    data.iter().map(|data| scope.send(peer, 1, data).expect("begun")).collect();
                group.barrier();
                sends.into_iter().for_each(|send| {
                    send.wait().expect("it is received");
                });
            });
            let announced: u64 = endpoint.counters(peer).iter().map(|(_, known)| known.sent.messages).sum();
            let in_cells = endpoint.eager_counters(peer).sent.messages - 1;
            assert_eq!(announced + in_cells, MESSAGES);
            assert!(announced > 0 && in_cells > 0, "{announced} were announced, {in_cells} went in cells");
        } else {
            group.barrier();
            let mut into = vec![0; BYTES];
            for number in 0..MESSAGES {
                let tags = TagMatch::exactly(1);
                let status = endpoint.receive(Source::Peer(peer), tags, &mut into).expect("it is sent");
                assert_eq!(status.bytes, BYTES as u64);
                check(number, &into);
            }
        }
    });
}
