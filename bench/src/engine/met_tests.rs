use super::*;

#[test]
fn nothing_is_lost_on_the_way() {
    let able = Abilities { read: true, write: false, cooperate: true };
    let reason = Some(Unavailable { errno: 13, sentence: "it is refused".into() });
    let names = lmt::mechanism_names();
    let mechanism_status = vec![
        (names[1], MechanismStatus { ours: able, theirs: Abilities::default(), reason }),
        (names[0], MechanismStatus::default()),
    ];
    let meeting = || ProbeReport {
        mechanism_status: mechanism_status.clone(),
        own_descriptors: 7,
        peer_descriptors: 3,
    };
    let text = serde_json::to_string(&ProbeReportWire::from(meeting())).unwrap();
    let back = serde_json::from_str::<ProbeReportWire>(&text).unwrap().into_report();
    assert_eq!(format!("{back:?}"), format!("{:?}", meeting()));
}
