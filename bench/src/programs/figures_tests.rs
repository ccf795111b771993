use super::*;

fn rule(pattern: &str, several: Several) -> FigureRule {
    FigureRule {
        name: "loop".into(),
        pattern: Pattern::try_from(pattern.to_owned()).unwrap(),
        unit: "s".into(),
        better: Better::Lower,
        role: Role::Other,
        several,
    }
}

const TEXT: &str = "time 2.5 s\nother 7\ntime 1e-1 s\ntime - s\n";

#[test]
fn figures_are_read_at_the_ends_of_lines() {
    let read = |several| rule(r"^time (\S+) s$", several).read(TEXT).unwrap();
    assert_eq!([read(Several::Last), read(Several::Sum), read(Several::Mean)], [0.1, 2.6, 1.3]);
    assert_eq!(rule(r"^  +8 +(\S+)", Several::Last).read("   8  0.5 x\n").unwrap(), 0.5);
}

#[test]
fn a_figure_that_is_not_there_is_a_sentence() {
    for several in [Several::Last, Several::Sum, Several::Mean] {
        let sentence = rule(r"^speed (\S+)", several).read(TEXT).unwrap_err();
        assert!(sentence.contains("prints no loop") && sentence.contains("^speed"), "{sentence}");
    }
    assert!(rule(r"^time (\S+)", Several::Last).read("time inf").is_err());
}
