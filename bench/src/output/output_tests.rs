use super::*;
use crate::job::Ratio;
use crate::patterns::Pattern;

pub(crate) fn job() -> Job {
    Job {
        pattern: Pattern::Pingpong,
        mechanisms: vec!["shm".into(), "cma".into()],
        sizes: vec![8],
        ranks: 2,
        iterations: None,
        repetitions: 3,
        touch: true,
        rotation_bytes: None,
        verify: true,
        cpus: vec![0, 1],
        limits: true,
        working_set_bytes: None,
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
    assert_eq!(lines.next(), Some("pingpong,shm,2,8,100,0.2500,0.1250,0.5000,32.000,3,true,false,4"));
    for line in text.lines() {
        assert_eq!(line.split(',').count(), header.split(',').count(), "{line}");
    }
    assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
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
    let compare = written(&mut CompareTable::default());
    let last: Vec<&str> = compare.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last[..8], ["8", "B", "0.250", "32.0", "0.500", "16.0", "shm", "0.125"], "{compare}");
    let limits = written(&mut LimitsTable);
    assert!(limits.contains("0.125"), "{limits}");
}
