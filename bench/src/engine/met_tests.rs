use super::*;

#[test]
fn nothing_is_lost_on_the_way() {
    let able = Abilities { read: true, write: false, cooperate: true };
    let reason = Some(Unavailable { errno: 13, sentence: "it is refused".into() });
    let names = lmt::mechanism_names();
    let standings = vec![
        (names[1], Standing { ours: able, theirs: Abilities::default(), reason }),
        (names[0], Standing::default()),
    ];
    let meeting = || Meeting { standings: standings.clone(), own_descriptors: 7, peer_descriptors: 3 };
    let text = serde_json::to_string(&Met::from(meeting())).unwrap();
    let back = serde_json::from_str::<Met>(&text).unwrap().into_meeting();
    assert_eq!(format!("{back:?}"), format!("{:?}", meeting()));
}
