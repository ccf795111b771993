use lmt::mechanism::{Abilities, Unavailable};

use super::*;

const PULL: Description = Description::new("pull", &[Model::Get, Model::Put]);
const TOGETHER: Description = Description::new("together", &[Model::Cooperative]);
const CARD: Description = Description { needs: Needs::Device, ..Description::new("card", &[Model::Get]) };

fn both(abilities: Abilities) -> MechanismStatus {
    MechanismStatus { ours: abilities, theirs: abilities, reason: None }
}

fn refused(errno: i32) -> MechanismStatus {
    let sentence = "the call was refused".to_owned();
    MechanismStatus { reason: Some(Unavailable { errno, sentence }), ..MechanismStatus::default() }
}

const ALL: Abilities = Abilities { read: true, write: true, cooperate: true };

#[test]
fn the_best_are_the_first_of_either_kind_that_need_the_kernel_alone() {
    let other = Description { name: "other", ..PULL };
    let module = Description { name: "module", needs: Needs::Module, ..PULL };
    assert_eq!(best(&[CARD, module, PULL, other, TOGETHER]), ["pull", "together"]);
    assert_eq!(best(&[TOGETHER, PULL]), ["pull", "together"]);
    assert_eq!(best(&[CARD, module]), [""; 0]);
}

#[test]
fn this_builds_best_are_a_single_copy_and_shared_memory() {
    assert_eq!(best(&of_any_memory(&all_of_this_build())), ["cma", "shm"]);
}

#[test]
fn what_works_in_part_says_what_does_not() {
    let whole = of_mechanism(&PULL, Ok(Some(&both(ALL))), Vec::new());
    assert_eq!((whole.state, whole.fix), (State::Good, None));
    let read = Abilities { write: false, ..ALL };
    let part = of_mechanism(&PULL, Ok(Some(&both(read))), Vec::new());
    assert_eq!(part.state, State::Limited);
    assert!(part.meaning.contains("the sender cannot copy into"), "{part:?}");
    // The other process may do nothing here.
    let one_way = MechanismStatus { ours: ALL, theirs: Abilities::default(), reason: None };
    let part = of_mechanism(&PULL, Ok(Some(&one_way)), Vec::new());
    assert!(part.meaning.contains("memory when this process sends"), "{part:?}");
    assert!(part.meaning.contains("memory when this process receives"), "{part:?}");
    let alone = of_mechanism(&TOGETHER, Ok(Some(&one_way)), Vec::new());
    assert_eq!(alone.state, State::Blocked);
    assert!(alone.meaning.contains("refused to the other process"), "{alone:?}");
}

#[test]
fn a_device_is_missing_unless_something_stands_in_its_way() {
    let note = |state| vec![Finding::new("x", state, "so it is").fixed_by("do this")];
    let absent = of_mechanism(&CARD, Ok(Some(&refused(2))), note(State::Missing));
    assert_eq!((absent.state, absent.errno, absent.fix.as_deref()), (State::Missing, 2, Some("do this")));
    assert_eq!(of_mechanism(&CARD, Ok(Some(&refused(13))), note(State::Blocked)).state, State::Blocked);
    assert_eq!(of_mechanism(&PULL, Ok(Some(&refused(1))), note(State::Missing)).state, State::Blocked);
    let why = "no second process".to_owned();
    assert_eq!(of_mechanism(&CARD, Err(&why), Vec::new()).state, State::Blocked);
    assert_eq!(of_mechanism(&CARD, Ok(None), Vec::new()).state, State::Unknown);
}

#[test]
fn the_gravest_finding_gives_the_advice() {
    let fix = |state, fix: &str| Finding::new("x", state, "y").fixed_by(fix);
    let findings = [
        Finding::new("silent", State::Blocked, "no advice"),
        fix(State::Limited, "least"),
        fix(State::Missing, "less"),
        fix(State::Blocked, "most"),
    ];
    assert_eq!(fix_of(&findings).as_deref(), Some("most"));
    assert_eq!(fix_of(&findings[..2]).as_deref(), Some("least"));
    assert_eq!(fix_of(&[fix(State::Good, "none")]), None);
}

fn diagnosis(of: &Description, standing: &MechanismStatus, is_best: bool) -> Diagnosis {
    Diagnosis { is_best, ..of_mechanism(of, Ok(Some(standing)), Vec::new()) }
}

#[test]
fn only_the_best_decide() {
    let card = diagnosis(&CARD, &refused(2), false);
    let together = diagnosis(&TOGETHER, &both(ALL), true);
    let works = [card.clone(), diagnosis(&PULL, &both(ALL), true), together.clone()];
    let (ok, verdict) = conclude(&works, true);
    assert!(ok && verdict.contains("pull and together"), "{verdict}");
    let broken = [card, diagnosis(&PULL, &refused(1), true), together];
    let (ok, verdict) = conclude(&broken, true);
    assert!(
        !ok && verdict.contains("pull does not work") && verdict.contains("by together instead"),
        "{verdict}"
    );
    assert!(!conclude(&[], true).0);
    // What moves some messages only takes nobody's place.
    let [card, pull, together] = broken;
    let some = Diagnosis { name: "some", any_memory: false, ..diagnosis(&PULL, &both(ALL), false) };
    let (_, verdict) = conclude(&[some, card, pull, together], true);
    assert!(verdict.contains("by together instead"), "{verdict}");
}

#[test]
fn of_other_machines_the_files_have_a_say() {
    let mut pull = diagnosis(&PULL, &both(ALL), true);
    pull.findings = vec![Finding::new("rule", State::Blocked, "it forbids all").fixed_by("allow it")];
    let all = [pull];
    assert!(conclude(&all, true).0, "on this machine the real call has the last word");
    let (ok, verdict) = conclude(&all, false);
    assert!(!ok && verdict.contains("it forbids all; to change that: allow it"), "{verdict}");
}
