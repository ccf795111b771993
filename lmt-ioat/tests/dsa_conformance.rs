//! What every mechanism must keep, kept by the pipeline over the DSA engine
//! over a software work queue.
#![cfg(not(loom))]

mod software_queue;

use lmt_ioat::dsa::queue::Limits;
use lmt_ioat::dsa::{Config, DsaEngine};
use lmt_ioat::pipeline::{EngineCopier, engine_config};
use lmt_shm::Shm;
use software_queue::{Faults, SoftwareQueue};

fn make(open: fn() -> SoftwareQueue) -> Shm<EngineCopier<DsaEngine<SoftwareQueue>>> {
    let engine = DsaEngine::over(Box::new(move || Ok(open())), Config::default());
    Shm::with_copier(engine_config(), EngineCopier::new("ioat-dsa", engine)).expect("the defaults work")
}

fn faulty() -> SoftwareQueue {
    let limits =
        Limits { max_transfer_bytes: 50_000, max_batch: 8, max_in_flight: 6, can_block_on_fault: false };
    let faults =
        Faults { seed: 7, page_fault: 100, full: 100, odd_status: 20, idle: 200, ..Faults::default() };
    SoftwareQueue::new(limits, faults)
}

lmt_conformance::suite!(dsa_software_queue, super::make(super::SoftwareQueue::sound));
lmt_conformance::suite!(dsa_faulty_queue, super::make(super::faulty));
