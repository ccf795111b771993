use super::*;
use crate::mechanism::MechanismStatus;
use crate::vocabulary::identity::MechanismTag;
use crate::vocabulary::model::{Model, Reach};
use crate::vocabulary::peer_facts::{Abilities, Unavailable};

const ALL: Abilities = Abilities { read: true, write: true, cooperate: false };

const NONE: Abilities = Abilities { read: false, write: false, cooperate: false };

fn note(ours: Abilities, theirs: Abilities, reason: Option<Unavailable>) -> Option<String> {
    let standing = MechanismStatus { ours, theirs, reason };
    let models = &[Model::Get, Model::Put];
    half(&KnownMechanism {
        name: "copier",
        tag: MechanismTag::of("copier"),
        models,
        reach: Reach::AnyMemory,
        copies_registered: true,
        times_plain_copy: None,
        standing,
    })
}

#[test]
fn what_works_in_part_is_noted_with_its_reason() {
    let reason = Unavailable { errno: 1, sentence: "the kernel said no".into() };
    assert_eq!(note(ALL, ALL, None), None);
    assert_eq!(note(NONE, NONE, Some(reason.clone())), None, "it is not available at all");
    let refused = note(NONE, ALL, Some(reason)).unwrap();
    assert!(refused.contains("copier works in part") && refused.contains("the kernel said no"), "{refused}");
    let other = note(ALL, NONE, None).unwrap();
    assert!(other.contains("only this process can copy"), "{other}");
    let one_way = note(Abilities { read: true, ..NONE }, Abilities { read: true, ..NONE }, None).unwrap();
    assert!(one_way.contains("one of its models"), "{one_way}");
}
