use super::*;
use crate::job::PathCount;
use crate::memory::Memory;
use crate::patterns::Pattern;

/// A way with this latency (microseconds) and speed (MB/s), whose quartiles are a hundredth apart.
pub(crate) fn line(name: &str, latency: f64, speed: f64) -> Series {
    let points = (0..=24).map(|power| {
        let bytes = 1u64 << power;
        point(bytes, latency + bytes as f64 / speed, 0.01)
    });
    Series { points: points.collect(), verified_messages: 50, ..Series::new(name, Kind::Way) }
}

/// A point whose quartiles are such a part of it apart.
pub(crate) fn point(bytes: u64, usec: f64, spread: f64) -> Point {
    Point {
        bytes,
        usec,
        usec_range: (usec * 0.9, usec * 1.3),
        quartiles: Some((usec * (1.0 - spread / 2.0), usec * (1.0 + spread / 2.0))),
        path: None,
        mb_per_s: bytes as f64 / usec,
    }
}

fn rows(pattern: &str, series: &Series) -> Vec<Row> {
    let path = |bytes: u64| PathCount { way: series.name.clone(), messages: 60, bytes: 60 * bytes };
    let row = |point: &Point| Row {
        pattern: pattern.into(),
        mechanism: series.name.clone(),
        ranks: 2,
        bytes: point.bytes,
        iterations: 10,
        usec_median: point.usec,
        usec_min: point.usec_range.0,
        usec_max: point.usec_range.1,
        usec_quartiles: point.quartiles,
        mb_per_s: Some(point.mb_per_s),
        repetitions: 15,
        verified_messages: 2,
        sender_percent: None,
        sender_bytes: None,
        receiver_bytes: None,
        paths: vec![path(point.bytes)],
        ratios: Vec::new(),
        details: None,
    };
    series.points.iter().map(row).collect()
}

fn settings(mechanisms: &[Series]) -> Job {
    Job {
        pattern: Pattern::Pingpong,
        mechanisms: mechanisms.iter().map(|series| series.name.clone()).collect(),
        sizes: Vec::new(),
        ranks: 2,
        iterations: None,
        repetitions: 15,
        in_use: true,
        buffers: Memory::Private,
        rotation_bytes: None,
        verify: false,
        cpus: vec![0, 1],
        limits: true,
        working_set_bytes: None,
        particulars: Vec::new(),
    }
}

/// A report of recorded lines.
fn report_of(mechanisms: &[Series], limits: &[Series]) -> Report {
    let job = settings(mechanisms);
    let mut all: Vec<Row> = mechanisms.iter().flat_map(|series| rows("pingpong", series)).collect();
    all.extend(limits.iter().flat_map(|series| rows(LIMITS, series)));
    let left_out = vec![LeftOut { name: "absent".into(), reason: "there is no <device>".into() }];
    Report::new(Environment::record(&job), &job, &all, left_out)
}

fn made_up() -> Report {
    let mechanisms = [line("shm", 0.3, 7000.0), line("cma", 1.1, 12000.0), line("<odd>", 5.0, 3000.0)];
    let limits = [
        line("vm-readv", 0.9, 13000.0),
        line("both", 1.0, 21000.0),
        line("pipe-8x32k", 0.25, 8000.0),
        line("hop", 0.1, 1e9),
    ];
    report_of(&mechanisms, &limits)
}

/// Both modes.
fn page_of(report: Report) -> String {
    to_html(&[report.clone(), Report { in_use: false, ..report }], "<p>more</p>").unwrap()
}

#[test]
fn the_page_has_everything_and_needs_nothing() {
    let page = page_of(made_up());
    for part in [
        "Throughput",
        "One-way time",
        "Speed relative to the best at each size",
        "shm, µs",
        "shm, MB/s",
        "From 16 KiB, cma is faster than shm.",
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
        "<td>1500 of 1500 timed messages went by it</td>",
        "<th scope=\"row\">absent</th><td>left out: there is no &lt;device&gt;</td>",
        "<p>more</p>",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert_eq!(page.matches("<svg role=\"img\" ").count(), 6);
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
fn the_first_mode_is_shown_first_and_a_button_shows_the_other() {
    let page = page_of(made_up());
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} is missing"));
    assert!(at(">In use</label>") < at(">Unmodified</label>"));
    assert_eq!(page.matches("\" checked>").count(), 1);
    assert!(page.contains("id=\"mode-0\" checked><label for=\"mode-0\">In use</label>"));
    for index in [0, 1] {
        assert!(page.contains(&format!("#mode-{index}:checked~#page-{index}{{display:block}}")));
        assert!(page.contains(&format!("<section id=\"page-{index}\">")));
    }
    assert!(page.contains("as IMB and OSU do"));
}

/// What is measured of two ways that are one and the same differs by chance.
#[test]
fn of_two_equal_ways_none_wins_and_none_crosses_the_other() {
    let noisy = |name: &str, sign: f64| {
        let points = (10..=24).map(|power| {
            let noise = if power % 2 == 0 { 1.04 } else { 0.96 };
            let usec = 1.0 + f64::from(1u32 << power) / 8000.0;
            point(1 << power, usec * if sign > 0.0 { noise } else { 2.0 - noise }, 0.10)
        });
        Series { points: points.collect(), ..Series::new(name, Kind::Way) }
    };
    let report = report_of(&[noisy("one", 1.0), noisy("two", -1.0)], &[]);
    assert_eq!(report.findings.crossovers, []);
    assert_eq!(report.findings.sentences, ["No path is faster than another by more than their spreads."]);
    let summary = report.findings.summary.clone().unwrap();
    assert!(
        summary.contains("one or two for short") || summary.contains("two or one for short"),
        "{summary}"
    );
    assert!((10..=24).all(|power| report.winner(1 << power).is_none()));
    let page = page_of(report);
    assert!(!page.contains("class=\"best\"") && !page.contains("<li>From"));
}

#[test]
fn the_winner_of_a_size_is_marked() {
    let report = made_up();
    assert_eq!((report.winner(1), report.winner(16 << 20)), (Some("shm"), Some("cma")));
    // 0.3 + b/7000 and 1.1 + b/12000 are the same at 13440 bytes.
    assert_eq!(report.winner(1 << 30), None);
    let page = page_of(report);
    assert!(page.contains("<td class=\"best\" title=\"quartiles "), "no winner is marked");
}

#[test]
fn what_stands_for_the_library_s_choice_and_other_buffers_is_told() {
    let mut job = settings(&[]);
    job.mechanisms = ["auto", "eager", "announced:mapped"].map(str::to_owned).into();
    job.particulars = vec![crate::job::Particular {
        mechanism: "announced:mapped".into(),
        buffers: Memory::Shared,
        least_bytes: 1024,
        most_bytes: u64::MAX,
    }];
    let lines =
        [line("auto", 0.2, 9000.0), line("eager", 0.2, 9000.0), line("announced:mapped", 0.5, 20000.0)];
    let all: Vec<Row> = lines.iter().flat_map(|series| rows("pingpong", series)).collect();
    let report = Report::new(Environment::record(&job), &job, &all, Vec::new());
    let kinds: Vec<Kind> = report.mechanisms.iter().map(|series| series.kind).collect();
    assert_eq!(kinds, [Kind::Auto, Kind::Way, Kind::OtherBuffers]);
    let page = page_of(report);
    assert!(page.contains("mapped (buffers of lmt::alloc)</li>") && !page.contains("announced:mapped"));
    assert!(page.contains("<strong>auto</strong></li>") && page.contains("stroke:var(--ink);stroke-width:6"));
    assert!(
        page.contains("Between buffers of lmt::alloc, mapped is faster than each of the others from 8 KiB.")
    );
}

#[test]
fn pipelines_are_drawn_as_the_best_of_them() {
    let limits = vec![
        line("memcpy", 0.01, 20000.0),
        line("vm-readv", 0.9, 13000.0),
        line("pipe-2x64k", 1.0, 9000.0),
        line("pipe-16x8k", 0.2, 5000.0),
    ];
    let plotted = plotted_limits(&limits);
    let names: Vec<&str> = plotted.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["vm-readv", "best pipeline"]);
    let best = &plotted[1].points;
    assert_eq!(best.len(), 25);
    assert_eq!(best[0], line("pipe-16x8k", 0.2, 5000.0).points[0]);
    assert_eq!(best[24], line("pipe-2x64k", 1.0, 9000.0).points[24]);
}

#[test]
fn nothing_to_plot_is_an_error() {
    assert!(to_html(&[], "").is_err());
    let empty = Report { mechanisms: Vec::new(), limits: Vec::new(), ..made_up() };
    assert!(to_html(&[empty], "").is_err());
}

#[test]
fn one_core_is_told_of_above_all_figures() {
    let mut report = made_up();
    assert!(!page_of(report.clone()).contains("class=\"warning\""));
    report.environment.is_one_core = true;
    let page = page_of(report);
    let warning = page.find("take turns on one core").unwrap();
    assert!(warning < page.find("<section").unwrap(), "it stands behind the figures");
}
