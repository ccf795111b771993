//! Sends 64 MiB from one process to another.
//!
//! `cargo run --release --example two_processes` starts the second process
//! itself; both run this file.

use lmt::launch::{Group, Launcher};
use lmt::{Endpoint, Source, TagMatch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    lmt::launch::hook(); // The launcher runs this program again to supervise.
    let Some(group) = Group::from_env()? else {
        let outcome = Launcher::new(2).command(std::env::current_exe()?, [""; 0]).spawn()?.wait();
        std::process::exit(i32::from(!outcome.success()));
    };
    let endpoint = Endpoint::builder().id(group.id.member(group.rank)).build()?;
    let other = endpoint.insert_peer(&group.address(1 - group.rank))?;
    if group.rank == 0 {
        endpoint.send(other, 1, &vec![42; 64 << 20])?;
    } else {
        let mut data = vec![0; 64 << 20];
        let status = endpoint.receive(Source::Peer(other), TagMatch::exactly(1), &mut data)?;
        assert!(data.iter().all(|byte| *byte == 42));
        println!("{} bytes arrived", status.bytes);
    }
    Ok(())
}
