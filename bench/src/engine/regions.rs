//! The kinds of declared memory that can be measured: one line each in
//! [`KINDS`].

use std::io::IoSlice;
use std::time::{Duration, Instant};

use lmt::{Endpoint, OperationError, Protection, RegionError, RegionKey};

use crate::patterns::link::{LinkError, OwnerSeconds, RegionProvider, WhileRegistered};

/// A kind of declared memory.
struct Kind {
    name: &'static str,
    provider: for<'a> fn(&'a Endpoint) -> Box<dyn RegionProvider + 'a>,
}

/// Every kind, in the order of tables. What has regions of its own, beside the
/// endpoint, comes here too.
const KINDS: &[Kind] = &[
    Kind { name: "allocated", provider: |endpoint| Box::new(Allocated(endpoint)) },
    Kind { name: "declared", provider: |endpoint| Box::new(RegisteredRegion(endpoint)) },
];

/// The names of all kinds.
pub(super) fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// The provider of one kind.
pub(super) fn provider<'a>(endpoint: &'a Endpoint, name: &str) -> Option<Box<dyn RegionProvider + 'a>> {
    KINDS.iter().find(|kind| kind.name == name).map(|kind| (kind.provider)(endpoint))
}

/// Memory that the endpoint allocates and peers map.
struct Allocated<'a>(&'a Endpoint);

/// The process's own memory, lent for reading; all regions the same bytes.
struct RegisteredRegion<'a>(&'a Endpoint);

/// How many were declared when the error came. Where it was not the table that
/// was full, a quarter is left to the rest of the process.
fn most(declared: usize, error: Option<OperationError>) -> usize {
    match error {
        None | Some(OperationError::Region(RegionError::TooMany(_))) => declared,
        Some(_) => declared / 4 * 3,
    }
}

fn get_byte(endpoint: &Endpoint, name: &[u8]) -> Result<u8, LinkError> {
    let key = name.try_into().map_err(|_| LinkError::new("a region's name has another length"))?;
    let mut byte = [0];
    endpoint.get(&RegionKey::from_bytes(key), 0, &mut byte).map_err(LinkError::new)?;
    Ok(byte[0])
}

/// How long the owner waits for a peer that asks before it looks whether the
/// peers are done.
const TURN: Duration = Duration::from_millis(1);

/// Lets peers that ask for a region's memory have it: the owner waits for them
/// as an application does, spinning first, and asleep where others want its
/// core.
fn serve(endpoint: &Endpoint) -> impl FnMut() -> Result<(), LinkError> {
    || endpoint.wait_for_progress(Some(TURN)).map(|_| ()).map_err(LinkError::new)
}

impl RegionProvider for Allocated<'_> {
    fn most_regions(&mut self, bound: usize) -> usize {
        let mut regions = Vec::new();
        while regions.len() < bound {
            match self.0.allocate_region(1, Protection::READ) {
                Ok(region) => regions.push(region),
                Err(error) => return most(regions.len(), Some(error)),
            }
        }
        most(regions.len(), None)
    }

    fn name_bytes(&self) -> usize {
        RegionKey::BYTES
    }

    fn needed_bytes(&self, bytes: u64, count: u64) -> u64 {
        bytes.saturating_mul(count)
    }

    fn own(
        &mut self,
        memory: &[u8],
        count: usize,
        meanwhile: WhileRegistered<'_>,
    ) -> Result<OwnerSeconds, LinkError> {
        let mut regions = Vec::with_capacity(count);
        let start = Instant::now();
        for _ in 0..count {
            let region = self.0.allocate_region(memory.len(), Protection::READ);
            regions.push(region.map_err(LinkError::new)?);
        }
        let declare = start.elapsed().as_secs_f64();
        for region in &regions {
            region.write_at(0, &memory[..1]).map_err(LinkError::new)?;
        }
        let names: Vec<Vec<u8>> = regions.iter().map(|region| region.key().to_bytes().to_vec()).collect();
        meanwhile(&names, &mut serve(self.0))?;
        let start = Instant::now();
        drop(regions);
        Ok(OwnerSeconds { declare, destroy: start.elapsed().as_secs_f64() })
    }

    fn look_up(&mut self, name: &[u8]) -> Result<u8, LinkError> {
        get_byte(self.0, name)
    }
}

impl RegionProvider for RegisteredRegion<'_> {
    fn most_regions(&mut self, bound: usize) -> usize {
        let memory = [0; 1];
        self.0.scope(|scope| {
            for declared in 0..bound {
                if let Err(error) = scope.register_read_only(&[IoSlice::new(&memory)]) {
                    return most(declared, Some(error));
                }
            }
            bound
        })
    }

    fn name_bytes(&self) -> usize {
        RegionKey::BYTES
    }

    fn needed_bytes(&self, _: u64, _: u64) -> u64 {
        0
    }

    fn own(
        &mut self,
        memory: &[u8],
        count: usize,
        meanwhile: WhileRegistered<'_>,
    ) -> Result<OwnerSeconds, LinkError> {
        let endpoint = self.0;
        endpoint.scope(|scope| {
            let mut regions = Vec::with_capacity(count);
            let start = Instant::now();
            for _ in 0..count {
                let region = scope.register_read_only(&[IoSlice::new(memory)]);
                regions.push(region.map_err(LinkError::new)?);
            }
            let declare = start.elapsed().as_secs_f64();
            let names: Vec<Vec<u8>> = regions.iter().map(|region| region.key().to_bytes().to_vec()).collect();
            meanwhile(&names, &mut serve(endpoint))?;
            let start = Instant::now();
            // The last declared is the first found.
            for region in regions.into_iter().rev() {
                region.destroy().map_err(LinkError::new)?;
            }
            Ok(OwnerSeconds { declare, destroy: start.elapsed().as_secs_f64() })
        })
    }

    fn look_up(&mut self, name: &[u8]) -> Result<u8, LinkError> {
        get_byte(self.0, name)
    }
}
