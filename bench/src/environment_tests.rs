use super::*;

#[test]
fn dates() {
    assert_eq!(utc(0), "1970-01-01 00:00 UTC");
    assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
    assert_eq!(utc(1_767_225_599), "2025-12-31 23:59 UTC");
}

#[test]
fn runs_of_cpus() {
    assert_eq!(join(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    assert_eq!(join(&[]), "");
}

#[test]
fn this_machine() {
    assert!(page_bytes().is_power_of_two());
    assert!(!allowed_cpus().unwrap().is_empty());
}

#[test]
fn processes_that_share_one_core_are_told_of() {
    let warned = |cpus: &[usize]| is_one_core(cpus);
    assert!(warned(&[3]) && warned(&[0, 0]));
    assert!(!warned(&[0, 1]) && !warned(&[]));
    let of = Environment::of(&[0, 0], String::new());
    let notes: Vec<String> =
        of.lines().into_iter().filter(|(name, _)| *name == "note").map(|(_, note)| note).collect();
    assert!(matches!(&notes[..], [note] if note.contains("take turns on one core")), "{notes:?}");
    assert_eq!(Environment { is_one_core: false, ..of }.warning(), None);
}
