use lmt_selector::contention::{BROADWELL, Gamma, KNL, MessageCost, POWER8};

use super::*;
use crate::algorithms::is_swap_of;
use crate::choice::CACHED_BYTES;

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6 * other.abs().max(1.0)
}

/// Without T^sm, so that what remains is the paper's formulas with figures.
fn bare(parameters: &Parameters) -> Parameters {
    Parameters { line_us: 0.0, ..parameters.clone() }
}

fn paper(parameters: &Parameters, kind: Kind, algorithm: Algorithm, ranks: u32, bytes: u64) -> f64 {
    Model::new(parameters, Counting::Ranks).predict_us(kind, algorithm, ranks, bytes).unwrap()
}

/// alpha + n beta + l gamma ceil(n/s) on KNL.
fn knl(bytes: f64, gamma: f64) -> f64 {
    1.43 + bytes / 3290.0 + 0.25 * gamma * (bytes / 4096.0).ceil()
}

const MIB: u64 = 1 << 20;

#[test]
fn logarithms_are_rounded_up() {
    let of = |base, numbers: [u32; 6]| numbers.map(|number| log_ceil(base, number));
    assert_eq!(of(2, [1, 2, 3, 4, 5, 1024]), [0, 1, 2, 2, 3, 10]);
    assert_eq!(of(3, [1, 2, 3, 27, 28, u32::MAX]), [0, 1, 1, 3, 4, 21]);
}

#[test]
fn scatter_and_gather_are_as_the_paper_has_them() {
    let figures = bare(&KNL.parameters);
    let gamma = |c: f64| 0.11 * c * c + 1.6 * c;
    for (kind, parallel, sequential, throttled) in [
        (Kind::Scatter, Algorithm::ParallelRead, Algorithm::SequentialWrite, Algorithm::ThrottledRead(8)),
        (Kind::Gather, Algorithm::ParallelWrite, Algorithm::SequentialRead, Algorithm::ThrottledWrite(8)),
    ] {
        let of = |algorithm| paper(&figures, kind, algorithm, 64, MIB);
        let n = MIB as f64;
        assert!(near(of(parallel), knl(n, gamma(64.0))));
        assert!(near(of(sequential), n / 3290.0 + 64.0 * knl(n, 1.0)));
        assert!(near(of(throttled), 8.0 * knl(n, gamma(8.0))));
        // ceil(64 / 7) is 10.
        assert!(near(of(throttled.with_number(7)), 10.0 * knl(n, gamma(7.0))));
        // More at a time than there are is all at once.
        assert!(near(of(throttled.with_number(4000)), of(parallel)));
    }
}

/// Figure 12: the three broadcasts on KNL with 64 ranks.
#[test]
fn broadcasts_are_as_the_paper_has_them() {
    let figures = bare(&KNL.parameters);
    let of = |algorithm| paper(&figures, Kind::Broadcast, algorithm, 64, MIB);
    let (n, part) = (MIB as f64, MIB as f64 / 64.0);
    let gamma = 0.11 * 4096.0 + 1.6 * 64.0;
    assert!(near(of(Algorithm::DirectRead), knl(n, gamma)));
    assert!(near(of(Algorithm::DirectWrite), 64.0 * knl(n, 1.0)));
    assert!(near(of(Algorithm::ScatterAllgather), (64.0 + 63.0) * knl(part, 1.0)));
    assert!(near(of(Algorithm::Knomial(4)), 3.0 * knl(n, 0.11 * 16.0 + 6.4)));
    assert!(near(of(Algorithm::Knomial(5)), 3.0 * knl(n, 0.11 * 25.0 + 8.0)));
}

#[test]
fn what_goes_from_all_to_all_is_as_the_paper_has_it() {
    let figures = bare(&KNL.parameters);
    let n = 65536.0;
    let of = |kind, algorithm| paper(&figures, kind, algorithm, 64, 65536);
    assert!(near(of(Kind::Alltoall, Algorithm::Pairwise), 63.0 * knl(n, 1.0)));
    let ring = n / 3290.0 + 63.0 * knl(n, 1.0);
    for algorithm in [Algorithm::RingSourceRead, Algorithm::RingSourceWrite, Algorithm::RingNeighbor(1)] {
        assert!(near(of(Kind::Allgather, algorithm), ring), "{algorithm}");
    }
    let bytes = 63.0 * (knl(n, 1.0) - 1.43);
    assert!(near(of(Kind::Allgather, Algorithm::RecursiveDoubling), n / 3290.0 + 6.0 * 1.43 + bytes));
    assert!(near(of(Kind::Allgather, Algorithm::Bruck), 6.0 * 1.43 + bytes + 63.0 * n / 3290.0));
}

#[test]
fn what_is_small_takes_as_many_lines_as_the_ranks_have_digits() {
    let of = |kind, algorithm| paper(&KNL.parameters, kind, algorithm, 64, 0);
    assert!(near(of(Kind::Barrier, Algorithm::Slots), 0.6));
    assert!(near(of(Kind::Broadcast, Algorithm::DirectRead), 1.43 + 2.0 * 0.6));
    assert!(near(of(Kind::Scatter, Algorithm::ThrottledRead(64)), 1.43 + 0.6));
}

#[test]
fn readers_are_one_less_and_turns_cost_a_line() {
    let exact = Model::new(&KNL.parameters, Counting::Readers);
    let of = |algorithm| exact.predict_us(Kind::Scatter, algorithm, 64, MIB).unwrap();
    let gamma_7 = 0.11 * 49.0 + 11.2;
    assert!(near(of(Algorithm::ThrottledRead(7)), 0.6 + 9.0 * (knl(MIB as f64, gamma_7) + 0.1)));
    let tree = |k| exact.predict_us(Kind::Broadcast, Algorithm::Knomial(k), 64, MIB).unwrap();
    // With three readers of each, 4 hold it after a step, then 16, then 64.
    assert!(near(tree(3), 0.6 + 3.0 * (knl(MIB as f64, 0.11 * 9.0 + 4.8) + 0.1)));
    assert!(near(tree(1), 0.6 + 6.0 * (knl(MIB as f64, 1.0) + 0.1)));
}

#[test]
fn two_ranks_have_one_reader() {
    let exact = Model::new(&BROADWELL.parameters, Counting::Readers);
    let of = |algorithm| exact.predict_us(Kind::Broadcast, algorithm, 2, MIB).unwrap();
    let copy = BROADWELL.parameters.copy_us(MIB, 1);
    for algorithm in [Algorithm::DirectRead, Algorithm::DirectWrite, Algorithm::Knomial(4)] {
        assert!(near(of(algorithm), copy + 0.2), "{algorithm}: {}", of(algorithm));
    }
}

#[test]
fn more_ranks_than_cpus_take_turns_on_them() {
    let gamma = Gamma { measured: vec![1.0, 1.5].into(), fit: None };
    let here = bare(&Parameters { cpus: Some(2), gamma, ..KNL.parameters.clone() });
    let of = |algorithm, ranks| {
        Model::new(&here, Counting::Readers).predict_us(Kind::Scatter, algorithm, ranks, MIB).unwrap()
    };
    let two = knl(MIB as f64, 1.5);
    assert!(near(of(Algorithm::ParallelRead, 3), two));
    assert!(near(of(Algorithm::ParallelRead, 5), 2.0 * two));
    assert!(near(of(Algorithm::ThrottledRead(2), 5), 2.0 * two));
    assert!(near(of(Algorithm::ThrottledRead(4), 5), 2.0 * two));
}

#[test]
fn a_ring_whose_step_divides_the_ranks_is_none() {
    let model = Model::new(&KNL.parameters, Counting::Ranks);
    let of = |step, ranks| model.predict_us(Kind::Allgather, Algorithm::RingNeighbor(step), ranks, 1024);
    assert!(of(2, 8).is_none() && of(6, 9).is_none() && of(8, 8).is_none());
    assert!(of(3, 8).is_some() && of(1, 9).is_some() && of(15, 28).is_some());
}

#[test]
fn what_was_not_measured_is_not_predicted() {
    let model = Model::new(&KNL.parameters, Counting::Ranks);
    assert!(model.predict_us(Kind::Alltoall, Algorithm::PairwiseMessages, 8, 64).is_none());
    assert!(model.predict_us(Kind::Broadcast, Algorithm::Hierarchical(256), 8, 64).is_none());
    assert!(model.predict_us(Kind::Broadcast, Algorithm::Bruck, 8, 64).is_none());
    let message = Some(MessageCost { start_us: 0.2, byte_ns: 0.1 });
    let here = Parameters { message, ..KNL.parameters.clone() };
    let of =
        |kind| Model::new(&here, Counting::Ranks).predict_us(kind, Algorithm::Messages, 8, 1000).unwrap();
    assert!(near(of(Kind::Barrier), 0.6) && near(of(Kind::Broadcast), 0.9) && near(of(Kind::Alltoall), 2.1));
    assert!(near(of(Kind::Scatter), 0.6 + 0.7));
}

/// The ranks beyond the largest power of two come late to everything.
#[test]
fn doubling_serves_powers_of_two() {
    let model = Model::new(&KNL.parameters, Counting::Readers);
    let of = |algorithm, ranks| model.predict_us(Kind::Allgather, algorithm, ranks, 65536).unwrap();
    assert!(of(Algorithm::RecursiveDoubling, 16) < of(Algorithm::RingSourceRead, 16));
    assert!(of(Algorithm::RecursiveDoubling, 17) > of(Algorithm::RingSourceRead, 17));
}

/// Lengths that no memory has are refused elsewhere; here they only take long.
#[test]
fn no_length_is_too_long_to_count() {
    let message = Some(MessageCost { start_us: 0.2, byte_ns: 0.1 });
    let parameters = Parameters { message, ..KNL.parameters.clone() };
    let model = Model::new(&parameters, Counting::Readers);
    for kind in Kind::ALL {
        for algorithm in Algorithm::of(kind) {
            if let Some(time) = model.predict_us(kind, algorithm, u32::MAX, u64::MAX) {
                assert!(time > 1.0, "{kind} {algorithm}");
            }
        }
    }
}

/// Nothing is predicted to take no time, less time with more bytes, or no number.
#[test]
fn all_times_are_sane() {
    let message = Some(MessageCost { start_us: 0.2, byte_ns: 0.1 });
    for parameters in [&KNL.parameters, &BROADWELL.parameters, &POWER8.parameters] {
        let parameters = Parameters { message, cpus: Some(6), ..parameters.clone() };
        for counting in [Counting::Ranks, Counting::Readers] {
            let model = Model::new(&parameters, counting);
            for (kind, ranks) in
                Kind::ALL.into_iter().flat_map(|kind| (1..=33).map(move |ranks| (kind, ranks)))
            {
                for algorithm in Algorithm::of(kind) {
                    let of = |bytes| model.predict_us(kind, algorithm, ranks, bytes);
                    let Some(mut before) = of(0) else { continue };
                    assert!(
                        before.is_finite() && (before > 0.0) == (ranks > 1),
                        "{kind} {algorithm} {ranks}"
                    );
                    for bytes in [1, 64, 4096, 100_000, 1 << 20, 1 << 30] {
                        let time = match (algorithm, of(bytes)) {
                            // Of what caches hold only.
                            (Algorithm::Pipelined(_), None) if bytes > CACHED_BYTES => break,
                            (Algorithm::Swap, None) if !is_swap_of(kind, ranks, bytes) => break,
                            (_, time) => time.unwrap(),
                        };
                        assert!(time.is_finite() && time >= before, "{kind} {algorithm} {ranks} {bytes}");
                        before = time;
                    }
                }
            }
        }
    }
}
