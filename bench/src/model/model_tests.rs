use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: ModelArgs,
}

fn parsed(text: &str) -> Result<ModelArgs, String> {
    let words = std::iter::once("model").chain(text.split_whitespace());
    Command::try_parse_from(words).map(|command| command.args).map_err(|error| error.to_string())
}

fn predictions(text: &str) -> Predictions {
    let args = parsed(text).unwrap();
    let Machine { name, parameters, ranks } = machine(&args).unwrap();
    let columns = columns(&args, &parameters).unwrap();
    let counting = args.counting.counting();
    let model = Model::new(&parameters, counting);
    let ranks = args.ranks.unwrap_or(ranks);
    let sizes = args.sizes.as_ref().map_or_else(|| vec![1 << 20], |sizes| sizes.0.clone());
    let rows = sizes.iter().map(|&bytes| row(&model, args.kind, ranks, bytes, &columns)).collect();
    Predictions { kind: args.kind, machine: name, parameters, ranks, counting, columns, rows }
}

#[test]
fn figure_12_stands_in_the_first_columns() {
    let table = predictions("--machine knl").table();
    let heading = table.lines().find(|line| line.contains("chosen") && line.contains("bytes")).unwrap();
    let columns: Vec<&str> = heading.split_whitespace().collect();
    assert_eq!(columns, ["bytes", "direct-read", "direct-write", "scatter-allgather", "knomial", "chosen"]);
    assert!(table.contains("64 ranks") && table.contains("gamma 0.11 c^2 + 1.6 c"), "{table}");
    assert!(
        table.lines().any(|line| line.contains("35711 ") && line.ends_with("  scatter-allgather")),
        "{table}"
    );
}

#[test]
fn throttles_are_the_best_or_those_that_were_named() {
    let shown =
        predictions("scatter --machine power8 --algorithms throttled-read,throttled-read:10 --sizes 1MiB");
    let [best, ten] = &shown.rows[0].times[..] else { panic!("{:?}", shown.rows) };
    assert_eq!(best.unwrap().0, Algorithm::ThrottledRead(32));
    assert_eq!(ten.unwrap().0, Algorithm::ThrottledRead(10));
    assert!(best.unwrap().1 < ten.unwrap().1);
    assert_eq!(shown.rows[0].choice.as_ref().unwrap().algorithm, Algorithm::ThrottledRead(32));
    assert!(
        shown.table().contains("throttled-read:10") && shown.table().contains(" (32) "),
        "{}",
        shown.table()
    );
    let csv = shown.csv();
    assert!(csv.contains("scatter,160,1048576,throttled-read:32,") && csv.contains(",true\n"), "{csv}");
}

#[test]
fn a_machine_may_be_described() {
    let described =
        "--alpha-us 1.43 --beta-gbps 3.29 --lock-us 0.25 --page-bytes 4096 --gamma 0.11,1.6 -n 64";
    let (one, other) = (predictions(described), predictions("--machine knl"));
    assert_eq!(one.rows, other.rows);
    let more = predictions("--machine knl -n 1024 --gamma 0,1");
    assert_eq!((more.ranks, more.parameters.gamma.of(1024)), (1024, 1024.0));
}

#[test]
fn what_is_no_figure_is_refused() {
    for (text, part) in [
        ("--machine knl -n 1025", "1..=1024"),
        ("--machine knl -n 0", "1..=1024"),
        ("--gamma 1", "a2,a1"),
        ("--gamma 1,-1", "a2,a1"),
        ("--beta-gbps 0", "10^9 bytes a second"),
        ("--alpha-us nan", "microseconds"),
        ("--page-bytes 0", "page-bytes"),
        ("bcst", "there are barrier, bcast"),
        ("--algorithms fastest", "is no algorithm"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    let stray = parsed("scatter --machine knl --algorithms pairwise").unwrap();
    let error = columns(&stray, &KNL.parameters).unwrap_err().to_string();
    assert!(
        error.contains("pairwise is no algorithm to scatter") && error.contains("throttled-read"),
        "{error}"
    );
}

#[test]
fn pictures_mark_where_the_choice_changes() {
    let shown = predictions("--machine broadwell --sizes 1KiB..16MiB");
    let svg = shown.svg().unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("scatter-allgather") && svg.contains("knomial"), "{svg}");
    let marks = shown.marks();
    assert_eq!(
        marks.iter().map(|mark| (mark.bytes, mark.word.as_str())).collect::<Vec<_>>(),
        [(131072, "scatter-allgather")]
    );
    let json: serde_json::Value = serde_json::from_str(&shown.json().unwrap()).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 15);
    assert_eq!(json["parameters"]["gamma_fit"][0], 0.18);
}

/// Every operation has something to show, on every machine, up to the most ranks.
#[test]
fn all_operations_are_predicted() {
    for kind in Kind::ALL {
        for ranks in [1, 2, 7, 1024] {
            let shown = predictions(&format!(
                "{kind} --machine broadwell -n {ranks} --sizes 0,1,1MiB --counting readers"
            ));
            assert!(shown.rows.iter().all(|row| row.choice.is_some()), "{kind} {ranks}");
            assert!(!shown.table().is_empty());
        }
    }
}
