//! No way is chosen by times or by what the application does with its buffers: all messages of a
//! length go one way.

mod common;

use std::hint::black_box;

use common::{LIMIT, join_plain, pattern};
use lmt::selection::Taken;
use lmt::{Endpoint, PeerId, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

const TAG: u64 = 3;
/// In cells, and by single copies.
const SIZES: [usize; 5] = [16 << 10, 64 << 10, 256 << 10, 512 << 10, 2 << 20];
const MESSAGES: u64 = 40;
const LINE_BYTES: usize = 64;

/// How many went to the peer by each way.
fn sent(endpoint: &Endpoint, peer: PeerId) -> Vec<(&'static str, u64)> {
    let mut all: Vec<_> =
        endpoint.counters(peer).into_iter().map(|(name, counters)| (name, counters.sent.messages)).collect();
    all.push(("eager", endpoint.eager_counters(peer).sent.messages));
    all
}

fn touch(data: &mut [u8]) {
    data.iter_mut().step_by(LINE_BYTES).for_each(|byte| *byte = byte.wrapping_add(1));
}

/// Messages to and fro, touched or not, which is nowhere to be seen but by times.
fn phase(endpoint: &Endpoint, group: &Group, peer: PeerId, bytes: usize, is_touched: bool) {
    let (mut data, mut into) = (pattern(group.rank().into(), bytes), vec![0; bytes]);
    for message in 0..2 * MESSAGES {
        if message % 2 == u64::from(group.rank()) {
            if is_touched {
                touch(&mut data);
            }
            endpoint.send(peer, TAG, &data).expect("the peer is there");
        } else {
            let status = endpoint.receive(Source::Peer(peer), TagMatch::exactly(TAG), &mut into);
            assert_eq!(status.expect("the peer is there").bytes, bytes as u64);
            if is_touched {
                black_box(into.iter().step_by(LINE_BYTES).fold(0_u64, |sum, byte| sum + u64::from(*byte)));
            }
        }
    }
    let mut expected = pattern(1 - u64::from(group.rank()), bytes);
    (0..if is_touched { MESSAGES } else { 0 }).for_each(|_| touch(&mut expected));
    assert!(into == expected, "{bytes} bytes");
}

/// The way that the policy's order has first, whatever the machine did meanwhile.
#[test]
fn all_messages_of_a_length_go_one_way() {
    for single_copy in ["fast", "slow"] {
        let test = Test::new(test_name!(), 2).time_limit(LIMIT);
        let test = common::configured_by(&common::folder(test_name!()), test);
        let test = test.env("LMT_SINGLE_COPY", single_copy);
        test.run(|group| {
            let (endpoint, peers) = join_plain(group);
            let peer = peers[1 - group.rank() as usize];
            for bytes in SIZES {
                // What is in place of a way that does not work here is known then.
                phase(&endpoint, group, peer, bytes, false);
                let explanation = endpoint.explain(peer, bytes as u64).expect("the peer is known");
                let way = match &explanation.taken {
                    Taken::By { mechanism, .. } => mechanism.clone(),
                    _ => "eager".to_owned(),
                };
                let before = sent(&endpoint, peer);
                for is_touched in [true, false, true] {
                    phase(&endpoint, group, peer, bytes, is_touched);
                }
                for ((name, before), (_, after)) in before.into_iter().zip(sent(&endpoint, peer)) {
                    let expected = if name == way { 3 * MESSAGES } else { 0 };
                    assert_eq!(after - before, expected, "{bytes} bytes by {name}, {way} is first");
                }
            }
        });
    }
}
