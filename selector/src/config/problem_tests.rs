use crate::config::test_support::parse;

/// The shape of a whole report.
#[test]
fn a_problem_is_shown_with_its_line_and_carets() {
    let problems = parse("[endpoint]\nspins = 5\neager_max_bytes = \"64 kB\"\n").unwrap_err();
    assert_eq!(problems.len(), 1);
    let expected = "\
error: `eager_max_bytes` is `64 kB`, whose unit `kB` is not known
 --> lmt.toml:3:19
  |
3 | eager_max_bytes = \"64 kB\"
  |                   ^^^^^^^ this value
  |
  = help: sizes are a number of bytes, or text with B, KiB, MiB or GiB (powers of 1024): write \"64 KiB\"";
    assert_eq!(problems[0].render(), expected);
}

#[test]
fn columns_count_characters() {
    let problems = parse("[endpoint]\n\"\u{e9}\u{e9}\" = 1\nspins = true").unwrap_err();
    let places: Vec<(u32, u32)> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
    assert_eq!(places, [(2, 1), (3, 9)]);
}
