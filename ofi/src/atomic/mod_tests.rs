use super::*;

fn is_there(family: Family, datatype: c_int, op: c_int) -> bool {
    Action::of(family, datatype, op).is_ok()
}

#[test]
fn each_family_has_its_operations() {
    for op in -1..25 {
        let (plain, reads, compares) = ((0..10).contains(&op) || op == 11, op == 10, (12..19).contains(&op));
        assert_eq!(is_there(Family::Base, 4, op), plain, "{op}");
        assert_eq!(is_there(Family::Fetch, 4, op), plain || reads, "{op}");
        assert_eq!(is_there(Family::Compare, 4, op), compares, "{op}");
    }
}

#[test]
fn each_datatype_has_what_makes_sense_of_it() {
    for datatype in -1..20 {
        let is_integer = (0..8).contains(&datatype) || [14, 15].contains(&datatype);
        let is_real = is_integer || [8, 9].contains(&datatype);
        let is_any = is_real || [10, 11].contains(&datatype);
        assert_eq!(is_there(Family::Base, datatype, 2), is_any, "the sum of {datatype}");
        assert_eq!(is_there(Family::Base, datatype, 0), is_real, "the least of {datatype}");
        assert_eq!(is_there(Family::Base, datatype, 6), is_integer, "the bits of {datatype}");
        assert_eq!(is_there(Family::Compare, datatype, 13), is_any, "whether {datatype} is another");
        assert_eq!(is_there(Family::Compare, datatype, 18), is_integer, "masks of {datatype}");
    }
}

#[test]
fn an_action_goes_through_a_message() {
    for family in FAMILIES {
        for (datatype, op) in (0..16).flat_map(|datatype| (0..19).map(move |op| (datatype, op))) {
            if let Ok(action) = Action::of(family, datatype, op) {
                assert_eq!(Action::from_bytes(action.to_bytes()), Ok(action));
                assert_eq!(action.most() * action.datatype.bytes(), MAX_BYTES);
            }
        }
    }
    assert_eq!(Action::from_bytes([3, 0, 0]), Err(Errno::OPNOTSUPP));
    assert_eq!(Action::from_bytes([0, 12, 2]), Err(Errno::OPNOTSUPP), "long double");
    assert_eq!(Action::from_bytes([0, 0, 255]), Err(Errno::OPNOTSUPP));
}
