use super::*;

fn chosen(ways: &[(u64, &str)]) -> Vec<Chosen> {
    ways.iter().map(|(bytes, way)| Chosen { bytes: *bytes, way: (*way).to_owned() }).collect()
}

#[test]
fn ranges_are_said_in_words() {
    let said =
        |classes: &[(u64, &str)]| runs(&chosen(classes)).iter().map(Run::to_string).collect::<Vec<_>>();
    assert_eq!(
        said(&[(1, "eager"), (2, "eager"), (4, "a:get"), (8, "a:get")]),
        ["up to 2 B: eager", "2 B to 8 B: a:get"]
    );
    assert_eq!(
        said(&[(8 << 20, "a:get"), (16 << 20, "b:put")]),
        ["4 MiB to 8 MiB: a:get", "above 8 MiB: b:put"]
    );
    assert_eq!(
        said(&[(1, "a:get"), (4, "a:get")]),
        ["up to 1 B: a:get", "2 B to 4 B: a:get"],
        "2 is missing"
    );
}

#[test]
fn what_is_advised_finds_the_calibration() {
    let calibration = Calibration::default();
    let text =
        |is_found, output: &str| {
            Summary { calibration: &calibration, courses: &[], changes: &[], collective_cases: 0, is_found }
                .text(Path::new(output), Path::new("a.html"), None)
        };
    assert!(text(true, "a.toml").ends_with("lmt explain --bytes 1MiB\n"));
    assert!(text(false, "a.toml").contains("lmt explain --bytes 1MiB --config a.toml\n"));
    assert!(text(false, "my file's.toml").contains("LMT_CONFIG='my file'\\''s.toml'\n"));
}
