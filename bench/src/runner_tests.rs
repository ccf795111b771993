//! Patterns over sockets between threads: every rank runs what a process would.

use std::thread;

use super::*;
use crate::engine::socket::{SocketLink, group};
use crate::memory::Memory;
use crate::patterns::DEFINITIONS;
use crate::patterns::link::{Incoming, Outgoing};

/// A link that flips one bit of every message of some length.
struct Corrupting {
    inner: SocketLink,
    corrupted_bytes: usize,
    at: usize,
}

impl Link for Corrupting {
    fn rank(&self) -> u32 {
        self.inner.rank()
    }
    fn ranks(&self) -> u32 {
        self.inner.ranks()
    }
    fn send(&mut self, to: u32, tag: u64, data: &[u8]) -> Result<(), LinkError> {
        self.inner.send(to, tag, data)
    }
    fn receive(&mut self, from: u32, tag: u64, data: &mut [u8]) -> Result<(), LinkError> {
        self.transfer(&[], &mut [Incoming { from, tag, data }])
    }
    fn transfer(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), LinkError> {
        self.inner.transfer(sends, receives)?;
        for receive in receives {
            if receive.data.len() == self.corrupted_bytes {
                receive.data[self.at] ^= 1;
            }
        }
        Ok(())
    }
}

fn job(pattern: Pattern, ranks: u32) -> Job {
    Job {
        pattern,
        mechanisms: vec!["test".into()],
        sizes: vec![0, 1, 100, 4097, 70_000],
        ranks,
        iterations: Some(3),
        repetitions: 2,
        in_use: false,
        rotation_bytes: None,
        buffers: Memory::Private,
        verify: true,
        cpus: Vec::new(),
        limits: false,
        working_set_bytes: None,
        particulars: Vec::new(),
    }
}

/// Runs the job with a thread for each rank; what rank 0 told, and how each
/// rank ended.
fn run<L: Link + Send>(job: &Job, links: Vec<L>) -> (Vec<Row>, Vec<Result<(), BenchError>>) {
    let mut rows = Vec::new();
    let ends = thread::scope(|scope| {
        let rows = &mut rows;
        let mut tell_rows = Some(move |event: Event| {
            if let Event::Rows(more) = event {
                rows.extend(more);
            }
            Ok(())
        });
        let ranks: Vec<_> = links
            .into_iter()
            .map(|link| {
                let told = if link.rank() == 0 { tell_rows.take() } else { None };
                scope.spawn(move || {
                    let rank = link.rank();
                    let mut links = [link];
                    match told {
                        Some(mut tell) => Runner::new(job, rank, &mut links, None, &mut tell)?.run(),
                        None => Runner::new(job, rank, &mut links, None, &mut |_| Ok(()))?.run(),
                    }
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    (rows, ends)
}

fn patterns() -> impl Iterator<Item = Pattern> {
    let all = DEFINITIONS.iter().map(|definition| definition.pattern);
    all.filter(|&pattern| pattern != Pattern::Limits && pattern.figures().is_empty())
}

#[test]
fn every_pattern_delivers_every_byte() {
    for pattern in patterns() {
        for ranks in [2, 3] {
            let job = job(pattern, ranks);
            let (rows, ends) = run(&job, group(ranks as usize));
            assert!(ends.iter().all(Result::is_ok), "{pattern:?}: {ends:?}");
            assert_eq!(rows.len(), job.sizes.len(), "{pattern:?}");
            for (row, &bytes) in rows.iter().zip(&job.sizes) {
                assert_eq!((row.bytes, row.iterations, row.repetitions), (bytes, 3, 2));
                assert!(row.verified_messages > 0, "{pattern:?}: nothing was verified");
                assert!(0.0 < row.usec_min && row.usec_min <= row.usec_median);
                assert!(row.usec_median <= row.usec_max);
            }
        }
    }
}

#[test]
fn a_flipped_bit_fails_verification_in_every_pattern() {
    for pattern in patterns() {
        for (ranks, at) in [(2, 0), (3, 99)] {
            let job = job(pattern, ranks);
            let links = group(ranks as usize);
            let links =
                links.into_iter().map(|inner| Corrupting { inner, corrupted_bytes: 100, at }).collect();
            let (rows, ends) = run(&job, links);
            let faults: Vec<String> =
                ends.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
            let wrong = format!("byte {at} is");
            assert!(faults.iter().any(|fault| fault.contains(&wrong)), "{pattern:?}: {faults:?}");
            assert!(rows.len() <= 2, "{pattern:?}: rows went on after the fault");
        }
    }
}

#[test]
fn touching_and_rotating_change_nothing_about_the_messages() {
    for pattern in patterns() {
        let job = Job { in_use: true, rotation_bytes: Some(1 << 20), ..job(pattern, 2) };
        let (rows, ends) = run(&job, group(2));
        assert!(ends.iter().all(Result::is_ok), "{pattern:?}: {ends:?}");
        assert_eq!(rows.len(), job.sizes.len());
    }
}

#[test]
fn without_a_number_of_iterations_all_ranks_find_the_same() {
    let job = Job { iterations: None, verify: false, sizes: vec![8, 1 << 20], ..job(Pattern::Pingpong, 2) };
    let (rows, ends) = run(&job, group(2));
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    // How many is for the tests of `warm_up`, whose clock nothing disturbs.
    assert!(rows.len() == 2 && rows.iter().all(|row| row.iterations >= 2), "{rows:?}");
}
