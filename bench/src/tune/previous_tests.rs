use lmt_selector::calibration::{Calibration, Course, EAGER, rules};
use lmt_selector::topology::Place;

use super::*;

const LOAD: Load = Load { place: Place::SharedL3, pairs: 1, off_cache: false };

fn course(cma_from: u64) -> Course {
    let mut course = Course::new(LOAD);
    for power in 0..6 {
        let bytes = 1 << power;
        let cells = if bytes < cma_from { 10.0 } else { 100.0 };
        course.add(bytes, EAGER, 0, &[cells; 5]);
        course.add(bytes, "cma:get", 0, &[50.0; 5]);
    }
    course
}

fn order() -> Vec<String> {
    vec![EAGER.to_owned(), "cma:get".to_owned()]
}

fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("lmt-previous-{}-{name}.toml", std::process::id()))
}

#[test]
fn what_changed_is_told_by_size() {
    let path = path("changed");
    assert!(matches!(Previous::read(&path), Previous::Absent));
    let old = Calibration::new(Default::default(), &[course(8)], &order());
    std::fs::write(&path, old.to_toml()).unwrap();
    let previous = Previous::read(&path);
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(previous, Previous::Rules { complete: false, .. }));
    let same = previous.changes(&rules(&[course(8)], &order()));
    assert_eq!(same, ["the same path as in the calibration before for 6 of 6 sizes"]);
    let changed = previous.changes(&rules(&[course(16)], &order()));
    assert_eq!(
        changed,
        [
            "the same path as in the calibration before for 5 of 6 sizes",
            "shared L3, one pair, on cache, 8 B: eager was cma:get"
        ]
    );
}

#[test]
fn a_file_that_is_none_is_told_and_no_obstacle() {
    let path = path("broken");
    std::fs::write(&path, "[[rule]]\ntake = \"nobody\"\n").unwrap();
    let previous = Previous::read(&path);
    std::fs::remove_file(&path).unwrap();
    let changes = previous.changes(&rules(&[course(8)], &order()));
    assert!(changes.len() == 1 && changes[0].contains("cannot be read"), "{changes:?}");
}
