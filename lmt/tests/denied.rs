//! Groups of real processes to which the kernel denies something. Each time
//! every message arrives, and each process can say why it took the way it took.

mod common;

#[path = "denied/dumpable.rs"]
mod dumpable;
#[path = "denied/midway.rs"]
mod midway;
#[path = "denied/namespaces.rs"]
mod namespaces;
#[path = "denied/party.rs"]
mod party;
#[path = "denied/regions.rs"]
mod regions;
#[path = "denied/seccomp.rs"]
mod seccomp;
#[path = "denied/unchanged.rs"]
mod unchanged;
