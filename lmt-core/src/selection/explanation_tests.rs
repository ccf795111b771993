use super::*;

fn said(sentence: &str) -> String {
    let other = NotTaken {
        mechanism: "copier".to_owned(),
        why: Why::Unavailable,
        sentence: sentence.to_owned(),
        errno: Some(1),
    };
    let explanation = Explanation {
        bytes: 1,
        place: "anywhere".to_owned(),
        taken: Taken::Nothing,
        then: Vec::new(),
        rule: "none".to_owned(),
        source: Source::Call,
        notes: Vec::new(),
        not_taken: vec![other],
    };
    explanation.to_string()
}

#[test]
fn the_errno_is_told_once() {
    let errno = "EPERM: Operation not permitted";
    for text in [said("it was refused"), said(&format!("it was refused ({errno})"))] {
        assert!(text.contains(&format!("copier  it was refused ({errno})\n")), "{text}");
        assert_eq!(text.matches("EPERM").count(), 1, "{text}");
    }
}
