//! Messages of every size and shape, in every direction.

use lmt_core::config::Config;
use lmt_core::endpoint::{SendMode, Source, TagMatch};
use lmt_core::mechanism::Lmt;

use super::data::{Random, Scattered, cut};
use super::link::Link;
use super::{Under, rendezvous};

/// Sizes at, just below and just above what anything is divided into.
pub fn sizes<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        let mut sizes = vec![0, 1, 2, 7, 8, 9, 63, 64, 65];
        // 4 KiB is a cell and a page, 64 KiB the pipeline's buffer, 1 MiB the
        // quota; two of them, and what lies between, for other geometries.
        for middle in (12..=22).map(|bits| 1 << bits) {
            sizes.extend([middle - 1, middle, middle + 1]);
        }
        sizes.extend([3 << 16, (3 << 20) + 12_345, 9_000_001]);
        for bytes in sizes {
            for from in [0, 1] {
                link.deliver(from, || Scattered::contiguous(bytes), || Scattered::contiguous(bytes));
            }
        }
    });
    let quota = Config { quota_bytes: 4096, ..rendezvous() };
    under.each_model(&quota, |link| {
        for bytes in [4095, 4096, 4097, 8191, 8192, 8193, 1_000_000] {
            for from in [0, 1] {
                link.deliver(from, || Scattered::contiguous(bytes), || Scattered::contiguous(bytes));
            }
        }
    });
}

/// Every misalignment on either side, and beginnings at odd places of a page.
pub fn alignment<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        for here in 0..=16 {
            for there in 0..=16 {
                let bytes = 5000 + here + there;
                let at = |offset| Scattered::new(offset, &[bytes], || 0);
                link.deliver(((here + there) % 2) as u32, || at(here), || at(there));
            }
        }
        let odd = [1, 63, 2047, 4081, 4094, 4095];
        for here in odd {
            for there in odd {
                let at = |offset| Scattered::new(offset, &[70_001], || 0);
                link.deliver(0, || at(here), || at(there));
            }
        }
    });
}

/// Pieces on either and both sides, empty ones, and more than one system call
/// takes (IOV_MAX is 1024, see sysconf(3)).
pub fn segments<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        let mut random = Random::new(1);
        let shapes = [(1, 7), (7, 1), (5, 9), (40, 40), (1, 1025), (1023, 1024), (3000, 2), (2500, 3100)];
        for (here, there) in shapes {
            for bytes in [1_usize, 100, 66_000, 1_234_567] {
                let mut shape = |most: usize| {
                    let lengths = if most == 1 { vec![bytes] } else { cut(&mut random, bytes, most) };
                    let mut gaps = random.clone();
                    Scattered::new(3, &lengths, || 1 + gaps.below(90) as usize)
                };
                // Both ranks draw both, so that they stay in step.
                let (out, into) = (shape(here), shape(there));
                link.deliver((bytes % 2) as u32, || out, || into);
            }
        }
        // No segment, and only empty ones.
        let none = || Scattered::new(0, &[], || 0);
        link.deliver(0, none, none);
        link.deliver(1, || Scattered::new(0, &[0, 0, 0], || 8), none);
    });
}

/// Both ranks send and receive at the same moment.
pub fn both_directions<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        for round in 0..20 {
            let bytes = 100_000 * (round % 5) + 1 + round;
            ping_ping(link, &[bytes]);
        }
    });
}

/// 64 messages each way at once.
pub fn many_at_once<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    under.each_model(&rendezvous(), |link| {
        for round in 0..3 {
            let sizes: Vec<usize> = (0..64).map(|at| 1 + (at * 7_919 + round * 50_021) % 300_000).collect();
            ping_ping(link, &sizes);
        }
    });
}

/// Each of two ranks sends messages of these lengths and receives the other's.
pub(super) fn ping_ping(link: &Link<'_>, sizes: &[usize]) {
    let base = link.next_seed() << 32;
    let seed = |rank: u32, at: usize| base + ((at as u64) << 1) + u64::from(rank);
    let (me, other) = (link.rank(), 1 - link.rank());
    let out: Vec<Scattered> = sizes
        .iter()
        .enumerate()
        .map(|(at, bytes)| Scattered::contiguous(*bytes).fill(seed(me, at)))
        .collect();
    let mut into: Vec<Scattered> = sizes.iter().map(|bytes| Scattered::contiguous(*bytes)).collect();
    link.endpoint.scope(|scope| {
        let mut requests = Vec::new();
        // Of the receives, every second one is posted before the sends.
        let (early, late): (Vec<_>, Vec<_>) = into.iter_mut().enumerate().partition(|(at, _)| at % 2 == 0);
        let source = Source::Peer(link.other());
        for (at, into) in early {
            let tags = TagMatch::exactly(seed(other, at));
            requests.push(scope.receive_segments(source, tags, &mut into.slices_mut()).expect("posts"));
        }
        for (at, out) in out.iter().enumerate() {
            let sent = scope.send_segments(link.other(), seed(me, at), &out.slices(), SendMode::Standard);
            requests.push(sent.expect("sends"));
        }
        for (at, into) in late {
            let tags = TagMatch::exactly(seed(other, at));
            requests.push(scope.receive_segments(source, tags, &mut into.slices_mut()).expect("posts"));
        }
        for result in scope.wait_all(requests) {
            result.expect("every message arrives");
        }
    });
    for (at, into) in into.iter().enumerate() {
        into.check(seed(other, at), sizes[at]);
    }
    link.carries(2 * sizes.len() as u64);
}

/// Messages under one tag arrive in the order in which they were sent, whether
/// they were expected or not.
pub fn order<M: Lmt, F: Fn() -> M>(under: &Under<F>) {
    // The shorter ones are eager here: they must not overtake either.
    let config = Config { eager_max_bytes: 4096, ..Config::default() };
    under.each_model(&config, |link| {
        for expected in [true, false] {
            let base = link.next_seed() << 32;
            let sizes: Vec<usize> = (0..40).map(|at| 1 + (at * 48_271) % 200_000).collect();
            if link.rank() == 0 {
                send_in_order(link, &sizes, base, expected);
            } else {
                receive_in_order(link, &sizes, base, expected);
            }
            link.carries(sizes.iter().filter(|bytes| **bytes > 4096).count() as u64);
        }
    });
}

fn send_in_order(link: &Link<'_>, sizes: &[usize], base: u64, expected: bool) {
    let fill = |(at, bytes): (usize, &usize)| Scattered::contiguous(*bytes).fill(base + at as u64);
    let out: Vec<Scattered> = sizes.iter().enumerate().map(fill).collect();
    if expected {
        link.meet();
    }
    link.endpoint.scope(|scope| {
        let begin = |out: &Vec<_>| scope.send_segments(link.other(), 5, out, SendMode::Standard);
        let slices: Vec<_> = out.iter().map(Scattered::slices).collect();
        let requests: Vec<_> = slices.iter().map(|out| begin(out).expect("sends")).collect();
        if !expected {
            // Comes behind all the others.
            link.meet();
        }
        for result in scope.wait_all(requests) {
            result.expect("arrives");
        }
    });
}

fn receive_in_order(link: &Link<'_>, sizes: &[usize], base: u64, expected: bool) {
    let mut into: Vec<Scattered> = sizes.iter().map(|bytes| Scattered::contiguous(*bytes)).collect();
    if !expected {
        link.meet();
    }
    link.endpoint.scope(|scope| {
        let source = Source::Peer(link.other());
        let mut requests = Vec::new();
        for into in &mut into {
            let receive = scope.receive_segments(source, TagMatch::exactly(5), &mut into.slices_mut());
            requests.push(receive.expect("posts"));
        }
        if expected {
            link.meet();
        }
        for result in scope.wait_all(requests) {
            result.expect("arrives");
        }
    });
    for (at, into) in into.iter().enumerate() {
        into.check(base + at as u64, sizes[at]);
    }
}
