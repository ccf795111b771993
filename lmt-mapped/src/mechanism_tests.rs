use lmt_core::buffer::lend_mut;
use lmt_core::process::PeerProcess;

use super::*;
use crate::cookie::describe_claims;
use crate::peer::TRIED_FROM_BYTES;

const BYTES: usize = 256 << 10;
const MODELS: [Model; 3] = [Model::Get, Model::Put, Model::Both];

fn plan(model: Model, role: Role, left_alone: bool) -> Plan {
    let interval = Interval { start: 0, end: BYTES as u64 };
    Plan { left_alone, ..Plan::new(role, model, interval) }
}

fn peer() -> MappedPeer {
    MappedPeer::new(1, Arc::new(PeerProcess::new(std::process::id() as i32, None)))
}

#[test]
fn receivers_that_leave_cold_buffers_alone_have_them_filled_past_the_caches() {
    for model in MODELS {
        for (left_alone, is_cold, expected) in
            [(true, true, true), (true, false, false), (false, true, false)]
        {
            let (mut peer, plan) = (peer(), plan(model, Role::Receiver, left_alone));
            let come = || {
                let goes_past = peer.begins(&plan, || Some(is_cold));
                peer.is_over(BYTES as u64, true);
                goes_past
            };
            let last = std::iter::repeat_with(come).take(4).last();
            assert_eq!(last, Some(expected), "{plan:?}, cold: {is_cold}");
        }
    }
}

/// A sender's application is not the one that reads, and what it sends does not come.
#[test]
fn what_is_prepared_to_come_counts_until_it_is_finished() {
    let mut buffer = lmt_core::shared_buffer::alloc(BYTES).expect("there is memory");
    let (mut mapped, mut peer) = (Mapped::new(), peer());
    for model in MODELS {
        for role in [Role::Sender, Role::Receiver] {
            let plan = plan(model, role, true);
            let prepared = lend_mut(&mut buffer, |data| mapped.prepare(&mut peer, &plan, data));
            if let Ok((transfer, _)) = prepared {
                assert_eq!(transfer.coming_bytes.is_some(), role == Role::Receiver);
                mapped.finish(&mut peer, transfer);
            }
            assert_eq!(peer.coming(), 0, "{plan:?}");
        }
    }
}

/// On some machines the last cache is so far away that it is faster to store past it.
#[test]
fn long_messages_are_tried_past_the_caches() {
    let plan = |bytes| {
        let interval = Interval { start: 0, end: bytes };
        Plan { interval, ..plan(Model::Both, Role::Receiver, true) }
    };
    for (bytes, may) in [(TRIED_FROM_BYTES - 1, false), (TRIED_FROM_BYTES, true)] {
        let mut peer = peer();
        let come = || {
            let goes_past = peer.begins(&plan(bytes), || Some(false));
            std::thread::sleep(std::time::Duration::from_micros(if goes_past { 100 } else { 1000 }));
            peer.is_over(bytes, true);
            goes_past
        };
        let last = std::iter::repeat_with(come).take(40).last();
        assert_eq!(last, Some(may), "{bytes} bytes");
    }
}

/// What the receiver says in its cookie its sender does, where that copies.
#[test]
fn senders_do_as_their_receivers_say() {
    for model in [Model::Put, Model::Both] {
        for says_past in [false, true] {
            let mut buffer = lmt_core::shared_buffer::alloc(BYTES).expect("there is memory");
            let (mut mapped, mut peer, plan) = (Mapped::new(), peer(), plan(model, Role::Sender, true));
            let process = Arc::clone(peer.process());
            let (cookie, prepared) = lend_mut(&mut buffer, |data| {
                let cookie = match model {
                    Model::Put => describe(data, plan.interval, &process, says_past).expect("it is shared").0,
                    _ => describe_claims(0, data, plan.interval, &process, says_past).0,
                };
                (cookie, mapped.prepare(&mut peer, &plan, data))
            });
            let (mut transfer, _) = prepared.expect("it is shared");
            mapped.start(&mut peer, &mut transfer, &cookie, plan.interval).expect("the cookie is whole");
            assert_eq!(transfer.goes_past, says_past, "{model:?}");
            assert!(matches!(transfer.far, Far::Looking { .. }), "the arena is not mapped yet");
            mapped.finish(&mut peer, transfer);
        }
    }
}
