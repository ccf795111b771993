use std::ffi::OsString;

use super::super::figures::Figure;
use super::super::installation::{Installation, Kind};
use super::super::result::SizeTimes;
use super::super::result::Times;
use super::judge::judge;
use super::*;
use crate::cli::{Command, Parsed, parse};
use crate::doctor::fixture::Files;
use crate::job::PathCount;

fn asked(arguments: &[&str]) -> Result<(PeersArgs, MeasuringArgs), BenchError> {
    match parse(["lmt", "compare", "--mpi"].iter().chain(arguments).map(Into::into))? {
        Parsed::Command(Command::Compare(args)) => Ok((args.peers, args.measuring)),
        other => panic!("{other:?}"),
    }
}

fn peer(kind: Kind) -> Peer {
    let path = |name: &str| PathBuf::from("/nowhere/bin").join(name);
    let name = kind.name().to_owned();
    let mpi = Installation {
        name: name.clone(),
        kind,
        version: "1.0".into(),
        mpicc: path("mpicc"),
        mpiexec: path("mpiexec"),
    };
    Peer { name, role: Role::Peer, mpi, program: path("peer"), variables: vec![("WANTED", "1".into())] }
}

/// One size of MPICH; microseconds over lmt, shm and its own transport.
fn size(bytes: u64, times: [f64; 3]) -> SizeTimes {
    let of = |(transport, usec): (&Transport, f64)| Times {
        name: name_of("mpich", *transport),
        role: if *transport == Transport::Lmt { Role::Ours } else { Role::Peer },
        usec: vec![usec; 2],
    };
    let times = ALL.iter().zip(times).map(of).collect();
    SizeTimes { bytes, iterations: 5, times, ways: Vec::new(), verified_messages: 0 }
}

fn measured(sizes: &[SizeTimes], received: Vec<PathCount>) -> Measured {
    let (args, measuring) = asked(&["--pin", "none"]).unwrap();
    let settings = job(&args, &measuring).unwrap();
    let rows = sizes.iter().filter_map(Row::of).collect();
    Measured {
        scene: Scene { environment: Environment::record(&settings), settings, rows },
        left_out: Vec::new(),
        statistics: Statistics { endpoints: 2, received, demotions: 0 },
    }
}

fn moved(bytes: u64) -> Vec<PathCount> {
    vec![PathCount { way: "ring".into(), messages: 9, bytes }]
}

fn verdicts(figures: &[Figure]) -> Vec<Option<bool>> {
    figures.iter().map(|figure| figure.met).collect()
}

#[test]
fn what_makes_no_sense_beside_it_is_refused() {
    for stray in
        [&["--peers"][..], &["--figures"], &["--pattern", "bw"], &["-n", "4"], &["--buffers", "shared"]]
    {
        assert!(matches!(asked(stray), Err(BenchError::Usage(_))), "{stray:?}");
    }
    let provider = ["lmt", "compare", "--provider", "/x-fi.so"].iter().map(Into::into);
    assert!(matches!(parse(provider), Err(BenchError::Usage(sentence)) if sentence.contains("--mpi")));
    let sentence = nothing_chosen(|name| name == "FI_PROVIDER").unwrap_err().to_string();
    assert!(sentence.starts_with("FI_PROVIDER is set") && sentence.ends_with("unset it"), "{sentence}");
    assert!(nothing_chosen(|name| name == PROVIDER_PATH).is_ok());
}

#[test]
fn short_and_long_messages_are_measured_without_ranks_of_our_own() {
    let (args, measuring) = asked(&["--pin", "none", "--repetitions", "16"]).unwrap();
    let job = job(&args, &measuring).unwrap();
    assert_eq!((job.repetitions, job.limits, job.verify, job.sizes.len()), (16, false, false, 10));
    assert!(job.mechanisms.is_empty());
    assert_eq!(job.sizes[..2], [8, 64 << 10]);
}

#[test]
fn each_transport_is_a_contender_where_it_can_be_had() {
    let files = Files::new("contenders").with("liblmt-fi.so", "");
    let provider = Provider::find(Some(&files.root().join("liblmt-fi.so"))).unwrap();
    let (all, left_out) = contenders(&peer(Kind::Mpich), &provider, Path::new("/told"));
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert!(names == ["mpich/lmt", "mpich/shm", "mpich/default"] && left_out.is_empty(), "{names:?}");
    let has = |one: &Peer, name: &str| one.variables.iter().any(|(known, _)| *known == name);
    assert!(all.iter().all(|one| has(one, "WANTED")));
    assert!(has(&all[0], "LMT_STATS") && !has(&all[1], "LMT_STATS"));
    assert!(all[2].variables == [("WANTED", OsString::from("1"))] && all[0].role == Role::Ours);
    let (all, left_out) = contenders(&peer(Kind::OpenMpi), &provider, Path::new("/told"));
    assert_eq!((all.len(), left_out.len()), (2, 1));
    assert!(left_out[0].name == "openmpi/shm" && left_out[0].reason.contains("FI_REMOTE_COMM"));
}

#[test]
fn figures_are_met_by_the_geometric_mean_and_the_short_message() {
    let long = [size(8, [1.0, 1.0, 0.5]), size(64 << 10, [1.0, 1.0, 1.1]), size(16 << 20, [1.0, 1.7, 1.1])];
    let figures = judge("mpich", &measured(&long, moved(1 << 30)));
    assert_eq!(verdicts(&figures), [Some(true); 4]);
    assert!(figures[1].found.starts_with("1.30 times over 2 sizes"), "{figures:?}");
    assert!(figures[3].found.contains("ring 100.0 %"), "{figures:?}");
    let slow = [size(8, [1.1, 1.0, 0.5]), size(64 << 10, [1.0, 1.2, 1.0])];
    let figures = judge("mpich", &measured(&slow, Vec::new()));
    assert_eq!(verdicts(&figures), [Some(false); 4]);
    // What was not asked for is not judged.
    let figures = judge("mpich", &measured(&[size(1024, [1.0; 3])], moved(1 << 20)));
    assert_eq!(verdicts(&figures), [None, None, None, Some(true)]);
}

#[test]
fn a_transport_that_cannot_be_had_is_told_with_its_reason() {
    let mut sizes = [size(8, [1.0; 3]), size(64 << 10, [1.0, 1.0, 2.0])];
    sizes.iter_mut().for_each(|size| size.times.retain(|times| times.name != "mpich/shm"));
    let mut measured = measured(&sizes, moved(1 << 30));
    measured.left_out.push(LeftOut { name: "mpich/shm".into(), reason: "it cannot".into() });
    let figures = judge("mpich", &measured);
    assert_eq!(verdicts(&figures), [None, None, Some(true), Some(true)]);
    assert!(figures[0].found == "not measured: it cannot" && figures[1].found == figures[0].found);
    let card = PeerCard::of(&peer(Kind::Mpich));
    let text = show::table(&card, &measured, &figures, true).unwrap();
    assert!(text.starts_with("# lmt compare --mpi: mpich 1.0, pingpong, in use, on cache\n"), "{text}");
    assert!(text.contains("# mpich/shm is left out: it cannot\n"), "{text}");
    let line = text.lines().find(|line| line.trim_start().starts_with("64 KiB")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["64", "KiB", "5", "1.000", "-", "2.000", "-", "-", "0.500", "0.50..0.50"], "{text}");
    let means = text.lines().find(|line| line.starts_with("# geometric means")).unwrap();
    assert!(means.ends_with("0.500   0.50..0.50"), "{text}");
}
