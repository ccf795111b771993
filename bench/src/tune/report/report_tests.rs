use lmt_selector::calibration::{EAGER, Load, Provenance, rules};
use lmt_selector::topology::Place;

use super::*;

fn page() -> (Calibration, Vec<Course>, Vec<CourseRules>) {
    let mut courses = Vec::new();
    for off_cache in [false, true] {
        let mut course = Course::new(Load { place: Place::SharedL3, pairs: 1, off_cache });
        for power in 0..12 {
            let bytes = 1u64 << power;
            course.add(bytes, EAGER, 0, &[300.0 + bytes as f64; 5]);
            if bytes >= 256 {
                course.add(bytes, "a<b>:get", 0, &[900.0; 5]);
                course.add(bytes, "slow:put", 0, &[9000.0; 5]);
            }
        }
        courses.push(course);
    }
    let order = [EAGER, "a<b>:get", "slow:put"].map(str::to_owned);
    let provenance =
        Provenance { machine: "<machine>".into(), skipped: vec!["a & b".into()], ..Default::default() };
    let calibration = Calibration::new(provenance, &courses, &order);
    let of_courses = rules(&courses, &order);
    (calibration, courses, of_courses)
}

#[test]
fn the_page_needs_nothing_else_and_is_well_formed() {
    let (calibration, measured, courses) = page();
    let html = Page { calibration: &calibration, measured: &measured, courses: &courses }.to_html().unwrap();
    // The namespace is a name, not an address that is loaded.
    let without_names = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!without_names.contains("http") && !without_names.contains("<script"), "it loads something");
    assert!(!html.contains("<machine>") && !html.contains("a<b>") && html.contains("a &amp; b"));
    for tag in ["svg", "figure", "table", "text", "g", "details", "title", "ul"] {
        let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
        let opened = html.matches(&format!("{open} ")).count() + html.matches(&format!("{open}>")).count();
        assert_eq!(opened, html.matches(&close).count(), "{tag}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf\""), "a place is no number");
    // Cells up to 512 B, then the other: one crossover, in words and as a line.
    assert!(html.contains("up to 512 B") && html.contains("stroke:var(--mark)"));
    assert_eq!(html.matches("<svg").count(), 4, "two pictures of each load");
}

#[test]
fn the_picture_stands_alone() {
    let (calibration, measured, courses) = page();
    let svg = Page { calibration: &calibration, measured: &measured, courses: &courses }.to_svg().unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("--paper"));
    assert!(svg.contains("slow:put") && svg.contains("up to 512 B: eager; 512 B to"));
}

#[test]
fn nothing_measured_is_nothing_to_draw() {
    let calibration = Calibration::default();
    let page = Page { calibration: &calibration, measured: &[], courses: &[] };
    assert!(page.to_html().is_err() && page.to_svg().is_err());
}

/// More ways than there are colours, and many pairs.
fn many_ways() -> (Vec<Course>, Vec<CourseRules>) {
    let mut order = vec![EAGER.to_owned()];
    order.extend((0..15).map(|number| format!("mechanism-{number}:cooperative")));
    let mut courses = Vec::new();
    for pairs in [1, 2] {
        let mut course = Course::new(Load { place: Place::SharedL3, pairs, off_cache: false });
        for power in 0..12 {
            let bytes = 1u64 << power;
            for (number, way) in order.iter().enumerate().filter(|(number, _)| *number == 0 || bytes >= 256) {
                course.add(bytes, way, 0, &[300.0 + 40.0 * number as f64 + bytes as f64; 5]);
            }
        }
        courses.push(course);
    }
    let of_courses = rules(&courses, &order);
    (courses, of_courses)
}

fn number_behind(text: &str, name: &str) -> f64 {
    let (_, rest) = text.split_once(name).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn everything_lies_within_the_picture() {
    let (measured, courses) = many_ways();
    let calibration = Calibration::default();
    let svg = Page { calibration: &calibration, measured: &measured, courses: &courses }.to_svg().unwrap();
    let [width, height] = ["<svg width=\"", " height=\""].map(|name| number_behind(&svg, name));
    let texts: Vec<&str> = svg.split("<text ").skip(1).collect();
    let names: Vec<&&str> = texts.iter().filter(|text| text.contains("mechanism-")).collect();
    assert!(names.len() >= 15);
    for text in &texts {
        assert!(number_behind(text, " y=\"") < height, "{text} is below {height}");
    }
    for name in names {
        assert!(number_behind(name, "x=\"") < width - 150.0, "{name} ends behind {width}");
    }
}

#[test]
fn cells_are_next_best_only_where_they_can_be_chosen() {
    let (measured, courses) = many_ways();
    let run = Run { above: 128, up_to: Some(1024), way: "mechanism-0:cooperative".into() };
    for measured in &measured {
        let chosen = courses.iter().find(|course| course.load == measured.load).unwrap();
        let part = Part { measured, chosen, runs: Vec::new() };
        let (way, ..) = next_best(&part, &run).unwrap();
        assert_eq!(way == EAGER, measured.load.pairs == 1, "{way}");
    }
}
