//! Two endpoints of one process.

use lmt::Endpoint;
use lmt_core::config::Config;
use lmt_core::endpoint::{Engine, Source, TagMatch};
use lmt_core::identity::{Address, EndpointId};
use lmt_core::mechanism::{Lmt, Mechanisms, Model};

use super::data::Scattered;
use super::wrapper::Wrapper;
use super::{Under, rendezvous};
use crate::require;

const SIZES: [usize; 5] = [1, 4097, 65_537, 1_000_001, 3_000_000];

/// Two threads with an endpoint each, in one process, are two peers like others.
pub fn two_endpoints_in_one_process<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    for &model in under.models() {
        let (name, mine, theirs) = (under.name(), open(under, model), open(under, model));
        let (my_address, their_address) = (mine.address(), theirs.address());
        // Each endpoint lives until both have ended, also where nothing is to be moved.
        let answer = std::thread::spawn(move || (talk(&theirs, &my_address, name, false), theirs));
        let reason = talk(&mine, &their_address, name, true);
        let (their_reason, _theirs) = answer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Some(why) = reason.or(their_reason) {
            require::skipped(name, &why);
        }
    }
}

fn open<M: Lmt, F: Fn() -> M>(under: &Under<F>, model: Model) -> Endpoint {
    let mut mechanisms = Mechanisms::new();
    mechanisms.register(Wrapper::only((under.make)(), model));
    let id: EndpointId = lmt::random_id().expect("the kernel gives random bytes");
    let config: Config = rendezvous();
    Endpoint::from_engine(Engine::new(id, config, mechanisms).expect("an endpoint can be made"))
}

/// One of the two. Returns why the mechanism did not move anything.
fn talk(endpoint: &Endpoint, other: &Address, name: &str, first: bool) -> Option<String> {
    let peer = endpoint.insert_peer(other).expect("there is room");
    let source = Source::Peer(peer);
    endpoint.send(peer, 1, &[]).expect("the other is there");
    endpoint.receive(source, TagMatch::exactly(1), &mut []).expect("the other is there");
    let standing = endpoint.mechanism_status(peer).into_iter().next().expect("it was probed").1;
    if let Some(reason) = standing.reason {
        return Some(reason.to_string());
    }
    for bytes in SIZES {
        for sends in [first, !first] {
            if sends {
                let out = Scattered::contiguous(bytes).fill(9);
                endpoint.send_segments(peer, 2, &out.slices()).expect("arrives");
            } else {
                let mut into = Scattered::contiguous(bytes);
                let status = endpoint.receive_segments(source, TagMatch::exactly(2), &mut into.slices_mut());
                into.check(9, status.expect("arrives").bytes as usize);
            }
        }
    }
    // Neither may close before the other has all.
    endpoint.send(peer, 3, &[]).expect("the other is there");
    endpoint.receive(source, TagMatch::exactly(3), &mut []).expect("the other is there");
    let carried: u64 =
        endpoint.counters(peer).iter().filter(|(of, _)| *of == name).map(|(_, c)| c.messages).sum();
    assert_eq!(carried, 2 * SIZES.len() as u64);
    None
}
