//! Over sockets and pretended links between threads: both ranks do what a
//! process would.

use crate::memory::Memory;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::*;
use crate::engine::socket::SocketLink;
use crate::patterns::link::{Help, Incoming, Outgoing, OwnerSeconds, RegionProvider, Step, WhileRegistered};

/// How long a pretended message takes.
const MESSAGE: Duration = Duration::from_millis(2);
/// So many measurements at quiet moments, all of them wrong, are no accident.
const ATTEMPTS: usize = 10;
/// For so long a quiet moment is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a pretended link moves its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As the socket below does.
    Plain,
    /// While the caller does something else, without the other rank.
    Background,
    /// After that.
    Foreground,
    /// With the last byte wrong.
    Corrupting,
}

/// A socket for the bytes, and a pretence of when they move.
struct Pretended {
    inner: SocketLink,
    way: Way,
    refused: bool,
}

impl Link for Pretended {
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
        self.inner.receive(from, tag, data)?;
        if let (Way::Corrupting, Some(last)) = (self.way, data.last_mut()) {
            *last ^= 1;
        }
        Ok(())
    }
    fn transfer(&mut self, sends: &[Outgoing<'_>], receives: &mut [Incoming<'_>]) -> Result<(), LinkError> {
        self.inner.transfer(sends, receives)
    }
    fn send_during(
        &mut self,
        to: u32,
        tag: u64,
        data: &[u8],
        during: Step<'_>,
        help: Help<'_>,
    ) -> Result<(), LinkError> {
        // The bytes are on their way before the sender falls asleep.
        self.inner.send(to, tag, data)?;
        during()?;
        while !help()? {}
        Ok(())
    }
    fn receive_during(
        &mut self,
        from: u32,
        tag: u64,
        data: &mut [u8],
        during: Step<'_>,
        help: Help<'_>,
    ) -> Result<(), LinkError> {
        let begun = Instant::now();
        during()?;
        match self.way {
            Way::Background => side::pause(MESSAGE.saturating_sub(begun.elapsed())),
            Way::Foreground => side::pause(MESSAGE),
            Way::Plain | Way::Corrupting => while !help()? {},
        }
        self.receive(from, tag, data)
    }
    fn region_kinds(&self) -> Vec<&'static str> {
        vec!["pretended"]
    }
    fn region_provider(&mut self, _: &str) -> Option<Box<dyn RegionProvider + '_>> {
        Some(Box::new(Numbered { refused: self.refused, most: 20 }))
    }
}

/// Regions that are numbers.
struct Numbered {
    refused: bool,
    most: usize,
}

impl RegionProvider for Numbered {
    fn most_regions(&mut self, bound: usize) -> usize {
        self.most.min(bound)
    }
    fn name_bytes(&self) -> usize {
        1
    }
    fn needed_bytes(&self, bytes: u64, count: u64) -> u64 {
        bytes * count
    }
    fn own(
        &mut self,
        memory: &[u8],
        count: usize,
        meanwhile: WhileRegistered<'_>,
    ) -> Result<OwnerSeconds, LinkError> {
        if self.refused {
            return Err(LinkError::new("there is no room"));
        }
        assert!(count <= self.most);
        meanwhile(&vec![vec![memory[0]]; count], &mut || Ok(()))?;
        Ok(OwnerSeconds { declare: 2e-6 * count as f64, destroy: 1e-6 * count as f64 })
    }
    fn look_up(&mut self, name: &[u8]) -> Result<u8, LinkError> {
        Ok(name[0])
    }
}

fn job(pattern: Pattern) -> Job {
    Job {
        pattern,
        mechanisms: vec!["test".into()],
        sizes: vec![1, 70_000],
        ranks: 2,
        iterations: Some(2),
        repetitions: 3,
        in_use: false,
        buffers: Memory::Private,
        rotation_bytes: None,
        verify: true,
        cpus: Vec::new(),
        limits: false,
        particulars: Vec::new(),
        working_set_bytes: (pattern == Pattern::Pollution).then_some(1 << 16),
    }
}

/// What both ranks ended with, and what rank 0 told.
struct Told {
    ends: [Result<(), BenchError>; 2],
    rows: Vec<Row>,
    notes: Vec<String>,
}

fn run_ranks(job: &Job, way: Way, refused: bool) -> Told {
    let (one, other) = UnixStream::pair().unwrap();
    let mut doorbell = Doorbell::new().unwrap();
    let other_bell = doorbell.take_other().unwrap();
    let link = |rank, streams| Pretended { inner: SocketLink::new(rank, streams).unwrap(), way, refused };
    let (first, second) = (link(0, vec![None, Some(one)]), link(1, vec![Some(other), None]));
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let mut tell = |event: Event| {
        match event {
            Event::Rows(more) => rows.extend(more),
            Event::Note(note) => notes.push(note),
            _ => {}
        }
        Ok(())
    };
    let ends = std::thread::scope(|scope| {
        // Each rank's link and bell end with it: so the other one notices.
        let second = scope.spawn(move || run(job, 1, &mut [second], other_bell, &mut |_| Ok(())));
        let first = run(job, 0, &mut [first], doorbell, &mut tell);
        [first, second.join().unwrap()]
    });
    Told { ends, rows, notes }
}

fn figure(row: &Row, name: &str) -> Option<f64> {
    let figures = &row.details.as_ref().unwrap().figures;
    figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no {name}")).median
}

fn case(row: &Row) -> &str {
    &row.details.as_ref().unwrap().case
}

#[test]
fn both_sides_of_every_size_are_measured_and_verified() {
    for pattern in [Pattern::Overlap, Pattern::Pollution] {
        let told = run_ranks(&job(pattern), Way::Plain, false);
        assert!(told.ends.iter().all(Result::is_ok), "{pattern:?}: {:?}", told.ends);
        let cases: Vec<(u64, &str)> = told.rows.iter().map(|row| (row.bytes, case(row))).collect();
        assert_eq!(cases, [(1, "receive"), (1, "send"), (70_000, "receive"), (70_000, "send")]);
        for row in &told.rows {
            assert_eq!((row.iterations, row.repetitions), (2, 3));
            assert!(row.verified_messages > 0 && 0.0 < row.usec_min, "{row:?}");
            assert!(row.usec_min <= row.usec_median && row.usec_median <= row.usec_max, "{row:?}");
            let details = row.details.as_ref().unwrap();
            assert_eq!(details.figures.len(), pattern.figures().len());
            assert_eq!(details.figures[0].median, Some(row.usec_median));
            assert!(details.placement.contains("rank 0 on CPU"), "{details:?}");
            assert!(details.placement.contains("rank 1 on CPU"), "{details:?}");
        }
        assert_eq!(told.rows[0].mb_per_s.is_some(), pattern == Pattern::Overlap);
    }
}

#[test]
fn a_wrong_byte_fails_verification() {
    for pattern in [Pattern::Overlap, Pattern::Pollution] {
        let told = run_ranks(&job(pattern), Way::Corrupting, false);
        let faults: Vec<String> =
            told.ends.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        assert!(faults.iter().any(|fault| fault.contains("arrived wrong: byte 0 is")), "{faults:?}");
        assert!(told.rows.is_empty(), "rows went on after the fault");
    }
}

/// The overlap of what rank 0 receives, by a link that does it this way.
fn overlap_of(way: Way) -> f64 {
    let job =
        Job { sizes: vec![1], iterations: Some(3), repetitions: 5, verify: false, ..job(Pattern::Overlap) };
    let told = run_ranks(&job, way, false);
    assert!(told.ends.iter().all(Result::is_ok), "{:?}", told.ends);
    figure(&told.rows[0], "overlap").unwrap()
}

/// Other programs can spoil any of these measurements, so one that holds is enough.
#[test]
fn what_moves_in_the_background_overlaps_and_what_does_not_does_not() {
    let near = |way, range: std::ops::RangeInclusive<f64>| {
        lmt_conformance::quiet::holds(ATTEMPTS, PATIENCE, || {
            let overlap = overlap_of(way);
            if range.contains(&overlap) { Ok(()) } else { Err(format!("{way:?}: {overlap}")) }
        });
    };
    near(Way::Background, 0.7..=1.3);
    near(Way::Foreground, -0.3..=0.3);
}

#[test]
fn overlap_is_of_the_shorter_one() {
    assert_eq!(overlap::overlap(4.0, 4.0, 4.0), Some(1.0));
    assert_eq!(overlap::overlap(4.0, 4.0, 8.0), Some(0.0));
    assert_eq!(overlap::overlap(4.0, 2.0, 5.0), Some(0.5));
    assert_eq!(overlap::overlap(2.0, 4.0, 8.0), Some(-1.0));
    assert_eq!(overlap::overlap(0.0, 4.0, 8.0), None);
}

#[test]
fn regions_are_counted_up_to_the_most() {
    let told = run_ranks(&job(Pattern::Regions), Way::Plain, false);
    assert!(told.ends.iter().all(Result::is_ok), "{:?}", told.ends);
    let counts: Vec<Option<u64>> =
        told.rows.iter().map(|row| row.details.as_ref().unwrap().regions).collect();
    assert_eq!(counts, [Some(1), Some(16), Some(20), Some(1), Some(16), Some(20)]);
    for row in &told.rows {
        assert_eq!(case(row), "pretended");
        // What one of them takes, however many there are.
        assert!((row.usec_median - 2.0).abs() < 1e-6, "{row:?}");
        assert!((figure(row, "destroy_usec").unwrap() - 1.0).abs() < 1e-6, "{row:?}");
        assert!(figure(row, "first_lookup_usec").is_some() && figure(row, "lookup_usec").is_some());
        assert_eq!(Some(row.verified_messages), row.details.as_ref().unwrap().regions.map(|count| 2 * count));
    }
}

#[test]
fn regions_that_cannot_be_are_left_out_with_one_line() {
    let told = run_ranks(&job(Pattern::Regions), Way::Plain, true);
    assert!(told.ends.iter().all(Result::is_ok), "{:?}", told.ends);
    assert!(told.rows.is_empty());
    assert_eq!(told.notes, ["test: pretended regions are left out: there is no room"]);
}

#[test]
fn the_bell_carries_words_and_notices_the_end() {
    let mut one = Doorbell::new().unwrap();
    let card = one.card().unwrap();
    let mut other = Doorbell::open(&card).unwrap();
    assert!(!one.has_rung().unwrap());
    other.tell(b"words").unwrap();
    assert!(one.has_rung().unwrap());
    assert_eq!(one.hear().unwrap(), b"words");
    assert_eq!(one.card(), None);
    one.share(0, 41).unwrap();
    assert_eq!(other.share(1, 0).unwrap(), 41);
    assert!(other.tell(&vec![0; (1 << 20) + 1]).is_err());
    drop(other);
    assert_eq!(one.wait().unwrap_err().to_string(), "the other rank has ended");
    assert!(one.ring().is_err());
}
