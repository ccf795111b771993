//! One Open MPI job over two hosts, by libfabric's provider lnx: within each host
//! through lmt, between them over tcp.

use std::path::Path;
use std::process::Command;

use lmt_conformance::require;

use crate::host::{Host, INTERFACE};
use crate::installation::{Kind, Mpi, Transport, output, text_of};
use crate::scratch::library;
use crate::statistics;

/// Two on each host.
const RANKS: u32 = 4;
/// No program takes longer, in seconds.
const LIMIT_S: u32 = 120;
/// What libfabric 2.5 cannot do there, whoever is linked (docs/libfabric.md); our
/// programs leave it out when told so.
const LEFT_OUT: [&str; 3] = ["SKIP_CANCEL", "SKIP_THREADS", "SKIP_TRUNCATION"];
/// What the ranks on the other host need, too.
const HANDED_ON: [&str; 3] = ["FI_PROVIDER_PATH", "FI_LNX_PROV_LINKS", "LMT_STATS"];

fn launcher(mpi: &Mpi, hosts: &[Host; 2], library: &Path) -> Command {
    let network = format!("tcp:{INTERFACE}");
    let mut command = mpi.launcher(Transport::Linked(library, &network), RANKS, LIMIT_S);
    command.envs(LEFT_OUT.map(|part| (part, "1")));
    command.env("PRTE_MCA_plm_ssh_agent", hosts[1].agent(library));
    command.args([
        "--map-by",
        "ppr:2:node",
        "--host",
        &format!("{}:2,{}:2", hosts[0].address, hosts[1].address),
    ]);
    for variable in HANDED_ON.iter().chain(&LEFT_OUT) {
        command.args(["-x", variable]);
    }
    command
}

/// Runs a program; what it said, and how many bytes each rank has received through
/// lmt.
fn run(mpi: &Mpi, hosts: &[Host; 2], library: &Path, program: &str) -> (String, Vec<u64>) {
    let binary = mpi.build(program, library);
    let mut command = launcher(mpi, hosts, library);
    let ended = output(&mut hosts[0].enter(command.arg(binary)));
    let told = text_of(&ended);
    assert!(ended.status.success(), "{program} on two hosts ended with {}:\n{told}", ended.status);
    let parts: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert!(!parts.is_empty(), "{program} says what it has done:\n{told}");
    let received: Vec<u64> = statistics::received_bytes(&told).into_values().collect();
    assert_eq!(received.len(), RANKS as usize, "{program}: bytes come to every rank through lmt:\n{told}");
    println!("{program} on two hosts: {}; received through lmt: {received:?} bytes", parts.join(", "));
    (told, received)
}

/// Of what every rank sends to each other one, lmt carries what stays on a host and
/// the cable what does not.
fn everybody_to_everybody(mpi: &Mpi, hosts: &[Host; 2], library: &Path) {
    let before = hosts.each_ref().map(Host::traffic);
    let (told, received) = run(mpi, hosts, library, "hosts");
    let bytes = told.lines().find_map(|line| line.strip_prefix("bytes ")?.trim().parse::<u64>().ok());
    let bytes = bytes.unwrap_or_else(|| panic!("how many bytes go from one rank to another:\n{told}"));
    // One rank is on the same host, two are on the other.
    assert!(
        received.iter().all(|through_lmt| (bytes..2 * bytes).contains(through_lmt)),
        "of {bytes} bytes from each of three ranks those of one came through lmt: {received:?}"
    );
    for (host, before) in hosts.iter().zip(before) {
        let [came, went] = [0, 1].map(|at| host.traffic()[at] - before[at]);
        println!("{}: {came} bytes came from the other host, {went} went there", host.address);
        assert!(came.min(went) >= 4 * bytes, "two ranks receive {bytes} bytes from each of two");
    }
}

#[test]
fn one_job_runs_on_two_hosts() {
    let Some(mpis) = Mpi::all() else {
        return require::skipped("mpi", "MPI_FOLDERS names no MPIs");
    };
    let Some(mpi) = mpis.iter().find(|mpi| mpi.kind == Kind::OpenMpi) else {
        return require::skipped("hosts", "MPI_FOLDERS names no Open MPI, whose libfabric has lnx");
    };
    let hosts = match Host::pair() {
        Ok(hosts) => hosts,
        Err(why) => return require::skipped("hosts", &why),
    };
    let library = library("hosts");
    everybody_to_everybody(mpi, &hosts, &library.0);
    for program in ["point", "group"] {
        run(mpi, &hosts, &library.0, program);
    }
}
