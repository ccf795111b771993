use super::*;
use crate::job::Job;
use crate::memory::Memory;
use crate::patterns::Pattern;

/// A mechanism with this latency (microseconds) and speed (MB/s).
fn line(name: &str, latency: f64, speed: f64) -> Series {
    let points = (0..=24).map(|power| {
        let bytes = 1u64 << power;
        let usec = latency + bytes as f64 / speed;
        Point { bytes, usec, usec_range: (usec * 0.9, usec * 1.3), mb_per_s: bytes as f64 / usec }
    });
    Series { name: name.into(), points: points.collect(), verified_messages: 50 }
}

fn rows(pattern: &str, series: &Series) -> Vec<Row> {
    let row = |point: &Point| Row {
        pattern: pattern.into(),
        mechanism: series.name.clone(),
        ranks: 2,
        bytes: point.bytes,
        iterations: 10,
        usec_median: point.usec,
        usec_min: point.usec_range.0,
        usec_max: point.usec_range.1,
        mb_per_s: Some(point.mb_per_s),
        repetitions: 15,
        verified_messages: 2,
        sender_percent: None,
        sender_bytes: None,
        receiver_bytes: None,
        usec_quartiles: None,
        paths: Vec::new(),
        ratios: Vec::new(),
        details: None,
    };
    series.points.iter().map(row).collect()
}

fn made_up() -> Report {
    let job = Job {
        pattern: Pattern::Pingpong,
        mechanisms: Vec::new(),
        sizes: Vec::new(),
        ranks: 2,
        iterations: None,
        repetitions: 15,
        in_use: false,
        buffers: Memory::Private,
        rotation_bytes: None,
        verify: false,
        cpus: vec![0, 1],
        limits: true,
        working_set_bytes: None,
        particulars: Vec::new(),
    };
    let mechanisms = [line("shm", 0.3, 7000.0), line("cma", 1.1, 12000.0), line("<odd>", 5.0, 3000.0)];
    let limits =
        [line("vm-readv", 0.9, 13000.0), line("both", 1.0, 21000.0), line("pipe-8x32k", 0.25, 8000.0)];
    let mut all: Vec<Row> = mechanisms.iter().flat_map(|series| rows("pingpong", series)).collect();
    all.extend(limits.iter().flat_map(|series| rows(LIMITS, series)));
    all.extend(rows(LIMITS, &line("hop", 0.1, 1e9)));
    let left_out = vec![LeftOut { name: "absent".into(), reason: "there is no <device>".into() }];
    Report::new(Environment::record(&job), &all, left_out)
}

#[test]
fn crossovers_are_where_the_fastest_changes() {
    let report = made_up();
    // 0.3 + b/7000 > 1.1 + b/12000 from 13440 bytes on.
    assert_eq!(report.crossovers, [Crossover { bytes: 16384, from: "shm".into(), to: "cma".into() }]);
    assert!(crossovers(&[]).is_empty());
    // Two that differ by less than noise do not take turns.
    assert!(crossovers(&[line("one", 1.0, 1000.0), line("two", 1.01, 1005.0)]).is_empty());
}

#[test]
fn the_page_has_everything_and_needs_nothing() {
    let page = made_up().to_html().unwrap();
    for part in [
        "Throughput",
        "One-way time",
        "shm, µs",
        "From 16 KiB: <strong>cma</strong>",
        "<dt>kernel</dt>",
        "<dt>pinning</dt>",
        "prefers-color-scheme:dark",
        "role=\"img\" aria-label=\"Throughput",
        "message size",
        "throughput, MB/s",
        "one-way time, µs",
        "16 MiB",
        "pipe-8x32k",
        "&lt;odd&gt;",
        "best pipeline (bare)",
        "stroke-dasharray:8 3",
        "<th scope=\"row\">shm</th><td>measured; 50 messages more were checked byte by byte</td>",
        "<th scope=\"row\">absent</th><td>left out: there is no &lt;device&gt;</td>",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert_eq!(page.matches("<svg role=\"img\" ").count(), 2);
    assert!(!page.contains("<odd>"));
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("url("));
    assert!(!page.contains("href="));
    // Nothing is left in the colours that stand for others.
    assert!(!page.contains("\"#0102") && !page.contains("\"#0103") && !page.contains("\"#0104"));
    // A hop moves no message and has no place beside them.
    assert!(!page.contains(">hop<") && !page.contains("hop, µs"));
    if let Some(path) = std::env::var_os("LMT_BENCH_SAMPLE_REPORT") {
        std::fs::write(path, page).unwrap();
    }
}

#[test]
fn pipelines_are_drawn_as_the_best_of_them() {
    let limits = vec![
        line("memcpy", 0.01, 20000.0),
        line("vm-readv", 0.9, 13000.0),
        line("pipe-2x64k", 1.0, 9000.0),
        line("pipe-16x8k", 0.2, 5000.0),
    ];
    let plotted = Report { limits, ..made_up() }.plotted_limits();
    let names: Vec<&str> = plotted.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["vm-readv", "best pipeline"]);
    let best = &plotted[1].points;
    assert_eq!(best.len(), 25);
    assert_eq!(best[0], line("pipe-16x8k", 0.2, 5000.0).points[0]);
    assert_eq!(best[24], line("pipe-2x64k", 1.0, 9000.0).points[24]);
}

#[test]
fn nothing_to_plot_is_an_error() {
    let empty = Report { mechanisms: Vec::new(), limits: Vec::new(), ..made_up() };
    assert!(empty.to_html().is_err());
}
