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
        let lines = cma
            .expects_nobody(peer, BYTES)
            .then(|| lend_mut(&mut got, |data| cma.get_at_once(peer, cookie, data, BYTES)));
        let lines = lines.flatten();
        assert_eq!(lines.is_some(), got == sent, "all or nothing");
        lines.is_some()
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
        assert!(lend_mut(&mut got, |data| cma.get_at_once(&mut peer, &cookie, data, BYTES)).is_some());
    }
    assert!(!get(&mut cma, &mut peer, &cookie));
}

const SEVERAL: usize = 4;

/// Calls `copy` with the messages that these cookies name, each for one of the buffers.
fn lend_several(
    cookies: &[Cookie],
    buffers: &mut [Vec<u8>],
    messages: &mut Vec<Gathered>,
    copy: &mut dyn FnMut(&mut [Gathered]),
) {
    let (Some((cookie, cookies)), Some((first, buffers))) =
        (cookies.split_first(), buffers.split_first_mut())
    else {
        return copy(messages);
    };
    lend_mut(first, |buffer| {
        let data = std::mem::replace(buffer, Buffer::empty(lmt_core::buffer::Access::Write));
        let at = messages.len();
        messages.push(Gathered { remote: *cookie, bytes: data.total_bytes(), data });
        lend_several(cookies, buffers, messages, copy);
        *buffer = messages.remove(at).data;
    });
}

/// Messages of [`BYTES`] out of this process's own memory, each received by a buffer of so many
/// bytes, in one call: how many that says are whole. They are.
fn get_several(
    is_reachable: bool,
    lengths: [usize; SEVERAL],
    change: impl FnOnce(&mut [Cookie; SEVERAL]),
) -> usize {
    let message = |seed: u64| (0..BYTES).map(|at| ((at * 7 + seed) % 251) as u8).collect::<Vec<u8>>();
    let sent: [Vec<u8>; SEVERAL] = std::array::from_fn(|at| message(at as u64));
    let mut cookies =
        std::array::from_fn(|at| lend(&sent[at], crate::segments::describe_contiguous).expect("contiguous"));
    change(&mut cookies);
    let mut got = lengths.map(|bytes| vec![0; bytes]);
    let mut cma = Cma::default();
    let mut peer = CmaPeer::new(PeerClaims::new(Arc::new(PeerProcess::this())), is_reachable);
    let mut whole = 0;
    lend_several(&cookies, &mut got, &mut Vec::new(), &mut |messages| {
        whole = cma.get_several(&mut peer, messages);
    });
    for (got, sent) in got.iter().zip(&sent).take(whole) {
        assert!(got[..] == sent[..got.len()]);
    }
    whole
}

const ALL: [usize; SEVERAL] = [BYTES as usize; SEVERAL];

#[test]
fn one_call_copies_several_messages_each_into_its_own_buffer() {
    assert_eq!(get_several(true, ALL, |_| ()), SEVERAL);
    assert_eq!(get_several(true, [ALL[0], 1, ALL[0] / 2, ALL[0]], |_| ()), SEVERAL);
}

#[test]
fn only_those_before_one_that_cannot_be_copied_count() {
    let nowhere = Cookie::new(&8_u64.to_ne_bytes()).expect("short");
    for bad in [nowhere, Cookie::empty()] {
        assert_eq!(get_several(true, ALL, |cookies| cookies[2] = bad), 2);
        assert_eq!(get_several(true, ALL, |cookies| cookies[0] = bad), 0);
    }
}

#[test]
fn who_cannot_be_reached_is_not_read() {
    assert_eq!(get_several(false, ALL, |_| ()), 0);
}

#[test]
fn what_is_in_one_piece_on_both_sides_is_read_with_others() {
    let cma = Cma::default();
    let mut bytes = [0; 8];
    let cookie = lend(&[1; 8], crate::segments::describe_contiguous).expect("contiguous");
    lend_mut(&mut bytes, |data| {
        assert!(cma.gets_several(&cookie, data));
        assert!(!cma.gets_several(&Cookie::empty(), data));
    });
}
