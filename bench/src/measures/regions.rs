//! What declared memory costs: knem-jpdc2013, section 3.2, for the regions of
//! this machine.

use std::time::Instant;

use super::{Case, Course, Doorbell, Measure, Sample, usec};
use crate::cache;
use crate::error::BenchError;
use crate::patterns::link::{Link, LinkError, OwnerSeconds, RegionProvider};
use crate::sizes::human;

/// Regions declared at once, beside as many as there can be.
const COUNTS: [usize; 3] = [1, 16, 256];
/// The most that are tried.
const MOST: usize = 4096;
/// Regions of one repetition, about, with all iterations.
const REGIONS_A_REPETITION: usize = 512;
/// Bytes of a repetition, about: allocated memory is zeroed.
const BYTES_A_REPETITION: usize = 128 << 20;
/// The most iterations of a repetition.
const MAX_ITERATIONS: usize = 64;
/// All regions of a case together take this part of the memory at most.
const MEMORY_PARTS: u64 = 4;
/// What the first byte of each region is.
const MARK: u8 = 0x5A;

/// What all regions of a case took together, or why the case is impossible.
type Outcome = Result<Seconds, String>;

#[derive(Clone, Copy, Debug, Default)]
struct Seconds {
    owner: OwnerSeconds,
    first: f64,
    again: f64,
}

/// The state between repetitions.
#[derive(Debug, Default)]
pub(super) struct Regions {
    /// The most regions of each link and kind, once they are known.
    most: Vec<(usize, &'static str, usize)>,
    /// Links and kinds that do not go together.
    refused: Vec<(usize, &'static str)>,
}

impl Regions {
    fn most<L: Link>(
        &mut self,
        course: &mut Course<'_, L>,
        link: usize,
        kind: &'static str,
    ) -> Result<usize, BenchError> {
        if let Some((_, _, most)) = self.most.iter().find(|(of, name, _)| (*of, *name) == (link, kind)) {
            return Ok(*most);
        }
        let found = match (course.rank, course.links[link].region_provider(kind)) {
            (0, Some(mut provider)) => provider.most_regions(MOST),
            _ => 0,
        };
        let most = usize::try_from(course.agree(found as u64)?).unwrap_or(0);
        self.most.push((link, kind, most));
        Ok(most)
    }

    /// Whether so many regions fit into memory, which rank 0 decides: two looks
    /// at the memory available are never the same.
    fn fits<L: Link>(
        &self,
        course: &mut Course<'_, L>,
        case: &Case,
        regions: usize,
        bytes: usize,
    ) -> Result<bool, BenchError> {
        let provider = course.links[case.link].region_provider(case.name);
        let needed = provider.map_or(0, |provider| provider.needed_bytes(bytes as u64, regions as u64));
        let available = cache::available_memory_bytes().unwrap_or(u64::MAX);
        let fits = course.agree(u64::from(needed <= available / MEMORY_PARTS))? == 1;
        if !fits {
            course.note(format!(
                "{regions} {} regions of {} are left out: they need more than a quarter of the memory available",
                case.name,
                human(bytes as u64)
            ))?;
        }
        Ok(fits)
    }
}

/// The numbers of regions for a kind that has at most so many.
fn counts(most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = COUNTS.into_iter().filter(|&count| count < most).collect();
    counts.extend((most > 0).then_some(most));
    counts
}

impl<L: Link> Measure<L> for Regions {
    fn cases(&mut self, course: &mut Course<'_, L>, bytes: usize) -> Result<Vec<Case>, BenchError> {
        let mut cases = Vec::new();
        for link in 0..course.links.len() {
            for name in course.links[link].region_kinds() {
                for regions in counts(self.most(course, link, name)?) {
                    let case = Case { link, name, regions: Some(regions) };
                    if self.fits(course, &case, regions, bytes)? {
                        cases.push(case);
                    }
                }
            }
        }
        Ok(cases)
    }

    fn warm_up(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
    ) -> Result<Option<u64>, BenchError> {
        let kind = (case.link, case.name);
        if self.refused.contains(&kind) {
            return Ok(None);
        }
        if let Err(reason) = once(course, case, bytes)? {
            self.refused.push(kind);
            let mechanism = &course.job.mechanisms[case.link];
            course.note(format!("{mechanism}: {} regions are left out: {reason}", case.name))?;
            return Ok(None);
        }
        let regions = case.regions.unwrap_or(1).max(1);
        let by_bytes = BYTES_A_REPETITION / regions.saturating_mul(bytes).max(1);
        let fitting = (REGIONS_A_REPETITION / regions).min(by_bytes).clamp(1, MAX_ITERATIONS);
        Ok(Some(course.job.iterations.unwrap_or(fitting as u64)))
    }

    fn repetition(
        &mut self,
        course: &mut Course<'_, L>,
        case: &Case,
        bytes: usize,
        iterations: u64,
    ) -> Result<Sample, BenchError> {
        let (mut declare, mut first, mut again, mut destroy) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..iterations {
            let one = certainly(course, case, bytes)?;
            declare += one.owner.declare;
            first += one.first;
            again += one.again;
            destroy += one.owner.destroy;
        }
        let regions = iterations * case.regions.unwrap_or(1) as u64;
        Ok([declare, first, again, destroy].map(|seconds| usec(seconds, regions)).to_vec())
    }

    /// Every byte that is looked up is checked, so one more round will do.
    fn verify(&mut self, course: &mut Course<'_, L>, case: &Case, bytes: usize) -> Result<u64, BenchError> {
        certainly(course, case, bytes)?;
        Ok(2 * case.regions.unwrap_or(1) as u64)
    }
}

/// [`once`], of a case that was possible before.
fn certainly<L: Link>(course: &mut Course<'_, L>, case: &Case, bytes: usize) -> Result<Seconds, BenchError> {
    once(course, case, bytes)?
        .map_err(|reason| BenchError::Failure(format!("{}: {reason}", course.job.mechanisms[case.link])))
}

/// Rank 0 declares all regions, rank 1 looks each up twice, rank 0 destroys
/// them. Both ranks find the same outcome, rank 0 with the seconds.
fn once<L: Link>(course: &mut Course<'_, L>, case: &Case, bytes: usize) -> Result<Outcome, BenchError> {
    let count = case.regions.unwrap_or(1);
    course.with_link(case, bytes, |link, data, doorbell| {
        let rank = link.rank();
        let missing = || LinkError(format!("there are no {} regions", case.name));
        let mut provider = link.region_provider(case.name).ok_or_else(missing)?;
        if rank == 0 {
            data[0] = MARK;
            own(provider.as_mut(), data, count, doorbell)
        } else {
            let names = doorbell.hear()?;
            let outcome = look_up_all(provider.as_mut(), &names);
            doorbell.tell(&encode(&outcome))?;
            Ok(outcome)
        }
    })
}

/// Rank 0's part.
fn own(
    provider: &mut dyn RegionProvider,
    memory: &[u8],
    count: usize,
    doorbell: &mut Doorbell,
) -> Result<Outcome, LinkError> {
    let mut outcome = None;
    let owned = provider.own(memory, count, &mut |names, serve| {
        doorbell.tell(&names.concat())?;
        while !doorbell.has_rung()? {
            serve()?;
        }
        outcome = Some(decode(&doorbell.hear()?)?);
        Ok(())
    });
    match (owned, outcome) {
        (Ok(owner), Some(outcome)) => Ok(outcome.map(|seconds| Seconds { owner, ..seconds })),
        (Err(error), None) => {
            // Nothing was declared: the other rank waits for names.
            doorbell.tell(&[])?;
            doorbell.hear()?;
            Ok(Err(error.to_string()))
        }
        (Err(error), Some(_)) => Err(error),
        (Ok(_), None) => Err(LinkError::new("the regions were registered and never accessed")),
    }
}

/// Rank 1's part: each region for the first time, then each again.
fn look_up_all(provider: &mut dyn RegionProvider, names: &[u8]) -> Outcome {
    if names.is_empty() {
        return Err("the other rank could not register them".into());
    }
    let names: Vec<&[u8]> = names.chunks(provider.name_bytes()).collect();
    let mut seconds = [0.0; 2];
    for seconds in &mut seconds {
        let start = Instant::now();
        for name in &names {
            match provider.look_up(name) {
                Ok(MARK) => {}
                Ok(byte) => return Err(format!("a region's first byte was {byte:#04x}, not {MARK:#04x}")),
                Err(error) => return Err(error.to_string()),
            }
        }
        *seconds = start.elapsed().as_secs_f64();
    }
    Ok(Seconds { first: seconds[0], again: seconds[1], ..Seconds::default() })
}

/// An outcome on its way from rank 1: two times, or a sentence.
fn encode(outcome: &Outcome) -> Vec<u8> {
    match outcome {
        Ok(seconds) => [&[1][..], &seconds.first.to_le_bytes(), &seconds.again.to_le_bytes()].concat(),
        Err(reason) => [&[0][..], reason.as_bytes()].concat(),
    }
}

fn decode(bytes: &[u8]) -> Result<Outcome, LinkError> {
    let malformed = || LinkError::new("the other rank sent something unexpected");
    match bytes.split_first().ok_or_else(malformed)? {
        (1, times) => {
            let (first, again) = times.split_first_chunk().ok_or_else(malformed)?;
            let again = again.try_into().map_err(|_| malformed())?;
            let (first, again) = (f64::from_le_bytes(*first), f64::from_le_bytes(again));
            Ok(Ok(Seconds { first, again, ..Seconds::default() }))
        }
        (_, reason) => Ok(Err(String::from_utf8_lossy(reason).into_owned())),
    }
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
