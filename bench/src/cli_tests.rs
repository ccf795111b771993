use super::*;
use crate::collectives::workload::Workload;
use crate::options::{Format, Pin, SizeList};

fn fails(line: &str) -> String {
    match parse(line.split(' ').map(Into::into)) {
        Err(BenchError::Usage(sentence)) => {
            assert!(!sentence.contains('\n'), "{line}: {sentence}");
            sentence
        }
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn mistakes_are_explained_in_one_line() {
    for (line, part) in [
        ("lmt", "subcommand"),
        ("lmt benhc", "bench"),
        ("lmt bench", "PATTERN"),
        ("lmt bench pingpnog", "did you mean 'pingpong'"),
        ("lmt bench pingpong -n 0", "from 2 to 1024"),
        ("lmt bench pingpong -n many", "from 2 to 1024"),
        ("lmt bench pingpong --sizes 12XB", "units are B, KiB"),
        ("lmt bench pingpong --sizes 0..", "no end"),
        ("lmt bench pingpong --sizes 99999999999GiB", "too large"),
        ("lmt bench pingpong --iterations 0", "from 1"),
        ("lmt bench pingpong --repetitions 0", "from 1"),
        ("lmt bench pingpong --format xml", "table, csv, json"),
        ("lmt bench pingpong --pin x", "none nor a list"),
        ("lmt bench pingpong --pin 3-1", "none nor a list"),
        ("lmt bench pingpong --in-usee", "--in-use"),
        ("lmt bench pingpong --touch --unmodified", "cannot be used with"),
        ("lmt bench overlp", "did you mean 'overlap'"),
        ("lmt bench pollution --working-set 1", "4KiB at least"),
        ("lmt bench pollution --working-set 1XB", "units are B, KiB"),
    ] {
        let sentence = fails(line);
        assert!(sentence.contains(part), "{line}: {sentence}");
    }
}

#[test]
fn a_full_command_line() {
    let line = "lmt bench bw --mechanism all --sizes 1..4 -n 3 --iterations 7 --repetitions 2 --off-cache --touch \
                --verify --pin 0,2-3 --format csv --limits";
    let Ok(Parsed::Command(Command::Bench(args))) = parse(line.split(' ').map(Into::into)) else {
        panic!("{line}")
    };
    assert_eq!(
        (args.pattern, args.ranks, args.format),
        (Workload::Pattern(crate::patterns::Pattern::Bw), 3, Format::Csv)
    );
    assert_eq!(args.measuring.sizes, Some(SizeList(vec![1, 2, 4])));
    assert_eq!(args.measuring.pin, Some(Pin::Cpus(vec![0, 2, 3])));
}

#[test]
fn help_defines_every_pattern() {
    let Ok(Parsed::Text(text)) = parse(["lmt", "bench", "--help"].map(Into::into)) else { panic!("no help") };
    for definition in DEFINITIONS {
        assert!(text.contains(definition.name));
    }
    assert!(text.contains("half the round trip") || text.contains("half the"));
}

#[test]
fn messages_are_in_use_unless_it_is_said_otherwise() {
    let modes = |line: &str| match parse(line.split(' ').map(Into::into)) {
        Ok(Parsed::Command(Command::Bench(args))) => (args.measuring.is_in_use(), args.measuring.modes()),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(modes("lmt bench bw"), (true, vec![true, false]));
    assert_eq!(modes("lmt bench bw --in-use"), (true, vec![true]));
    // As it was called before.
    assert_eq!(modes("lmt bench bw --touch"), modes("lmt bench bw --in-use"));
    assert_eq!(modes("lmt bench bw --unmodified"), (false, vec![false]));
}
