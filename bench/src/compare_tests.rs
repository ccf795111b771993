use super::*;
use crate::cli::{Command, Parsed, parse};

fn known() -> Vec<Mechanism> {
    let of = |name: &str, unavailable: Option<&str>, reach| Mechanism {
        name: name.to_owned(),
        unavailable: unavailable.map(str::to_owned),
        reach,
    };
    vec![
        of("mapped", None, Reach::SharedBuffers),
        of("cma", None, Reach::AnyMemory),
        of("gone", Some("it is gone"), Reach::AnyMemory),
    ]
}

fn asked(arguments: &[&str]) -> CompareArgs {
    let words = ["lmt", "compare"].iter().chain(arguments).map(Into::into);
    match parse(words).unwrap() {
        Parsed::Command(Command::Compare(args)) => *args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_way_is_there_once_by_itself() {
    let ways = Ways::of(known(), Memory::Private);
    assert_eq!(ways.names, ["auto", "eager", "announced:mapped", "announced:cma"]);
    let left_out: Vec<&str> = ways.left_out.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(left_out, ["gone"]);
    let job = ways.job(&with_extent(&asked(&["--pin", "none"])).unwrap()).unwrap();
    let memory = job.mechanisms.iter().map(|name| job.buffers_of(name)).collect::<Vec<_>>();
    assert_eq!(memory, [Memory::Private, Memory::Private, Memory::Shared, Memory::Private]);
    assert_eq!(job.kinds_of_memory(), [Memory::Private, Memory::Shared]);
    // Cells up to their longest message, announced ones from 1 KiB up, and auto everywhere.
    let at = |bytes| job.mechanisms.iter().filter(|name| job.has_turn(name, bytes)).count();
    assert_eq!([1, 512, 1024, 1 << 20, 2 << 20].map(at), [2, 2, 4, 4, 3]);
    assert!(job.verify && job.in_use);
}

#[test]
fn sizes_and_repetitions_depend_on_the_time_there_is() {
    let extent = |arguments: &[&str]| {
        let measuring = with_extent(&asked(arguments)).unwrap();
        (measuring.sizes.unwrap().0, measuring.repetitions.unwrap())
    };
    let (sizes, repetitions) = extent(&[]);
    let powers: Vec<u64> = (0..=22).map(|power| 1 << power).chain([16 << 20]).collect();
    assert!(sizes == powers && repetitions >= 5, "{sizes:?}, {repetitions}");
    let (more, times) = extent(&["--thorough"]);
    assert!(more.len() > sizes.len() && times > repetitions, "{more:?}, {times}");
    assert_eq!(extent(&["--sizes", "8", "--repetitions", "2"]), (vec![8], 2));
}

#[test]
fn what_failed_once_is_not_tried_in_the_other_mode() {
    let mut ways = Ways::of(known(), Memory::Private);
    ways.leave_out(vec![LeftOut { name: "announced:cma".into(), reason: "it failed".into() }]);
    assert_eq!(ways.names, ["auto", "eager", "announced:mapped"]);
    assert_eq!(ways.left_out[1], LeftOut { name: "cma".into(), reason: "it failed".into() });
}
