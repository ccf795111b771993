use lmt_core::buffer::lend_mut;
use lmt_core::process::PeerProcess;

use super::*;
use crate::cookie::describe_claims;

const BYTES: usize = 256 << 10;
const MODELS: [Model; 3] = [Model::Get, Model::Put, Model::Both];

fn plan(model: Model, role: Role, left_alone: bool) -> Plan {
    let interval = Interval { start: 0, end: BYTES as u64 };
    Plan { role, model, interval, may_give_up: false, may_pass_on: false, left_alone }
}

fn peer() -> MappedPeer {
    MappedPeer::new(1, Arc::new(PeerProcess::new(std::process::id() as i32, None)))
}

#[test]
fn receivers_that_leave_cold_buffers_alone_have_them_filled_past_the_caches() {
    for model in MODELS {
        for (role, left_alone, is_cold, expected) in [
            (Role::Receiver, true, true, true),
            (Role::Receiver, true, false, false),
            (Role::Receiver, false, true, false),
            // Its application is not the one that reads.
            (Role::Sender, true, true, false),
        ] {
            let mut targets = Targets::default();
            let plan = plan(model, role, left_alone);
            let last = (0..4).map(|_| is_past(&mut targets, &plan, || Some(is_cold))).last();
            assert_eq!(last, Some(expected), "{plan:?}, cold: {is_cold}");
        }
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
