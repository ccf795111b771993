use super::*;
use crate::engine::LeftOut;
use crate::job::{Details, Figure, Ratio};
use crate::memory::Memory;
use crate::patterns::Pattern;

pub(crate) fn job() -> Job {
    Job {
        pattern: Pattern::Pingpong,
        mechanisms: vec!["shm".into(), "cma".into()],
        sizes: vec![8],
        ranks: 2,
        iterations: None,
        repetitions: 3,
        in_use: true,
        buffers: Memory::Private,
        rotation_bytes: None,
        verify: true,
        cpus: vec![0, 1],
        limits: true,
        working_set_bytes: None,
        particulars: Vec::new(),
    }
}

fn row(pattern: &str, mechanism: &str, usec: f64, mb_per_s: Option<f64>) -> Row {
    Row {
        pattern: pattern.into(),
        mechanism: mechanism.into(),
        ranks: 2,
        bytes: 8,
        iterations: 100,
        usec_median: usec,
        usec_min: usec / 2.0,
        usec_max: usec * 2.0,
        mb_per_s,
        repetitions: 3,
        verified_messages: 4,
        sender_percent: None,
        sender_bytes: None,
        receiver_bytes: None,
        usec_quartiles: None,
        paths: Vec::new(),
        ratios: vec![Ratio { method: "hop".into(), percent: 50.0 }],
        details: None,
    }
}

fn written(results: &mut dyn Results) -> String {
    let mut out = Vec::new();
    let rows = [
        row("pingpong", "shm", 0.25, Some(32.0)),
        row("pingpong", "cma", 0.5, Some(16.0)),
        row("limits", "hop", 0.125, None),
    ];
    results.begin(&mut out, &Environment::record(&job()), &job()).unwrap();
    results.rows(&mut out, &rows).unwrap();
    results.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn csv_begins_with_the_promised_columns() {
    let text = written(&mut Csv::default());
    let mut lines = text.lines();
    let columns = "pattern,mechanism,ranks,bytes,iterations,usec_median,usec_min,usec_max,mb_per_s";
    let header = lines.next().unwrap();
    assert!(header.starts_with(columns));
    assert_eq!(lines.next(), Some("pingpong,shm,2,8,100,0.2500,0.1250,0.5000,32.000,3,true,false,4,,,"));
    for line in text.lines() {
        assert_eq!(line.split(',').count(), header.split(',').count(), "{line}");
    }
    assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
}

#[test]
fn both_ends_bytes_stand_in_csv_and_json() {
    let both = Row {
        sender_percent: Some(37.5),
        sender_bytes: Some(300),
        receiver_bytes: Some(500),
        ..row("pingpong", "cma:both", 1.0, Some(8.0))
    };
    let written = |results: &mut dyn Results| {
        let mut out = Vec::new();
        results.begin(&mut out, &Environment::record(&job()), &job()).unwrap();
        results.rows(&mut out, std::slice::from_ref(&both)).unwrap();
        results.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let csv = written(&mut Csv::default());
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with(",sender_percent,sender_bytes,receiver_bytes"), "{csv}");
    assert!(lines[1].ends_with(",37.5,300,500"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&written(&mut Json::default())).unwrap();
    let found = &json["rows"][0];
    assert_eq!((&found["sender_bytes"], &found["receiver_bytes"]), (&300.into(), &500.into()));
}

#[test]
fn json_can_be_read_back() {
    let text = written(&mut Json::default());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["rows"].as_array().unwrap().len(), 3);
    assert_eq!(value["rows"][0]["mechanism"], "shm");
    assert!(value["environment"]["kernel"].as_str().unwrap().contains("Linux"));
    assert_eq!(value["rows"][2]["mb_per_s"], serde_json::Value::Null);
}

#[test]
fn tables_say_where_and_show_limits_beside() {
    let text = written(&mut Table::default());
    for part in ["# kernel: Linux", "# pinning: rank 0 on CPU 0", "page size: ", "0.125 (50%)", "pipe-16x8k"]
    {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let left_out = LeftOut { name: "absent".into(), reason: "there is no device".into() };
    let compare = written(&mut CompareTable::new(vec![left_out]));
    assert!(compare.contains("\n# left out: absent: there is no device\n"), "{compare}");
    let lines: Vec<&str> = compare.lines().collect();
    let [.., row, checked] = lines[..] else { panic!("{compare}") };
    assert_eq!(checked, "# messages checked byte by byte: shm 4, cma 4");
    let row: Vec<&str> = row.split_whitespace().collect();
    // Without quartiles nobody is known to be the fastest.
    assert_eq!(row[..6], ["8", "B", "0.250", "0.500", "-", "0.125"], "{compare}");
    assert!(
        compare.starts_with("# lmt compare: ping-pong, each path by itself, messages in use\n"),
        "{compare}"
    );
    let limits = written(&mut LimitsTable);
    assert!(limits.contains("0.125"), "{limits}");
}

/// An overlap beyond what can be, and a figure that could not be measured.
fn overlap_row() -> Row {
    let figure = |name: &str, median: Option<f64>| Figure {
        name: name.into(),
        median,
        min: median.map(|value| value / 2.0),
        max: median.map(|value| value * 2.0),
    };
    let figures = vec![
        figure("both_usec", Some(4.5)),
        figure("comm_usec", Some(4.0)),
        figure("comp_usec", None),
        figure("overlap", Some(-0.25)),
    ];
    let placement = "rank 0 on CPU 0, thread helper on CPU 1; rank 1 on CPU 1".to_owned();
    let details = Details { case: "receive".into(), regions: None, placement, figures };
    Row { details: Some(details), ratios: Vec::new(), ..row("overlap", "shm", 4.5, Some(2.0)) }
}

fn overlap_written(results: &mut dyn Results) -> String {
    let (mut out, job) = (Vec::new(), Job { pattern: Pattern::Overlap, limits: false, ..job() });
    results.begin(&mut out, &Environment::record(&job), &job).unwrap();
    results.rows(&mut out, &[overlap_row()]).unwrap();
    results.rows(&mut out, &[overlap_row()]).unwrap();
    results.end(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn figures_are_bounded_for_people_and_raw_for_programs() {
    let table = overlap_written(&mut FiguresTable::default());
    let lines: Vec<&str> = table.lines().collect();
    let last: Vec<&str> = lines.last().unwrap().split_whitespace().collect();
    assert_eq!(last, ["shm", "receive", "8", "100", "4.500", "4.000", "-", "0%", "4"], "{table}");
    let placed = lines.iter().filter(|line| line.contains("thread helper on CPU 1")).count();
    assert_eq!(placed, 1, "{table}");
    let json: serde_json::Value = serde_json::from_str(&overlap_written(&mut Json::default())).unwrap();
    let details = &json["rows"][0]["details"];
    assert_eq!(details["figures"][3]["median"], -0.25);
    assert_eq!(details["figures"][2]["median"], serde_json::Value::Null);
    let csv = overlap_written(&mut Csv::default());
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row: Vec<&str> = lines.next().unwrap().split(',').collect();
    // The placement of this one has a comma, and is quoted.
    assert_eq!(row.len(), header.len() + 1, "{csv}");
    let at = header.iter().position(|name| *name == "overlap").unwrap();
    assert_eq!(row[at + 1], "-0.2500", "{csv}");
    let at = header.iter().position(|name| *name == "comp_usec").unwrap();
    assert_eq!(row[at + 1], "", "{csv}");
}
