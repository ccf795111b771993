use lmt_core::buffer::{lend, lend_mut};

use super::*;

const BYTES: u64 = 100_000;

fn hello(bytes: &[u8]) -> Hello {
    Hello { bytes: bytes.to_vec(), descriptors: Vec::new() }
}

#[test]
fn both_ends_take_the_lesser_figure() {
    let said = |times: f32| hello(&times.to_le_bytes());
    assert_eq!(agreed(Some(2.0), &said(4.0)), Some(2.0));
    assert_eq!(agreed(Some(4.0), &said(2.0)), Some(2.0));
    assert_eq!(agreed(None, &said(2.0)), Some(2.0));
}

#[test]
fn what_a_peer_says_amiss_does_not_count() {
    for bytes in [
        &[][..],
        &[1, 2, 3],
        &[0; 5],
        &f32::NAN.to_le_bytes(),
        &f32::NEG_INFINITY.to_le_bytes(),
        &0.0_f32.to_le_bytes(),
        &(-1.0_f32).to_le_bytes(),
        &0.2_f32.to_le_bytes(),
        &f32::MAX.to_le_bytes(),
    ] {
        assert_eq!(agreed(Some(2.0), &hello(bytes)), Some(2.0), "{bytes:?}");
        assert_eq!(agreed(None, &hello(bytes)), None, "{bytes:?}");
        assert_eq!(agreed(Some(0.1), &hello(bytes)), None, "{bytes:?}");
    }
}

/// A message of [`BYTES`] in the general way, whose sender does not come.
fn brings_in_alone(cma: &mut Cma, peer: &mut CmaPeer) {
    let claims = &mut cma.claims;
    claims.introduce(&mut peer.claims);
    let mut reception = claims.receive(&mut peer.claims, Interval { start: 0, end: BYTES });
    while let Some(part) = claims.next_part(&mut reception, BYTES).expect("honest") {
        reception.copied(part.bytes());
    }
    claims.end(&mut peer.claims, &mut reception);
    claims.finish(&peer.claims, reception);
}

#[test]
fn who_expects_no_help_copies_by_itself_and_asks_again_now_and_then() {
    let mut cma = Cma::default();
    let mut peer = CmaPeer::new(PeerClaims::new(Arc::new(PeerProcess::this())), true);
    let sent: Vec<u8> = (0..BYTES).map(|at| (at * 7 % 251) as u8).collect();
    let cookie = lend(&sent, |data| describe(data, Interval { start: 0, end: BYTES })).expect("contiguous").0;
    let get = |cma: &mut Cma, peer: &mut CmaPeer, cookie: &Cookie| {
        let mut got = vec![0; BYTES as usize];
        let is_here = cma.expects_nobody(peer, BYTES)
            && lend_mut(&mut got, |data| cma.get_at_once(peer, cookie, data, BYTES));
        assert_eq!(is_here, got == sent, "all or nothing");
        is_here
    };
    assert!(!get(&mut cma, &mut peer, &cookie), "whoever is not known may help");
    brings_in_alone(&mut cma, &mut peer);
    assert!(get(&mut cma, &mut peer, &cookie));
    assert!(get(&mut cma, &mut peer, &cookie));
    assert!(!get(&mut cma, &mut peer, &cookie), "it is asked again");
    brings_in_alone(&mut cma, &mut peer);
    // What is announced for its receiver alone counts as well.
    for _ in 0..4 {
        let mut got = vec![0; BYTES as usize];
        assert!(lend_mut(&mut got, |data| cma.get_at_once(&mut peer, &cookie, data, BYTES)));
    }
    assert!(!get(&mut cma, &mut peer, &cookie));
}
