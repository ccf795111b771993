use super::*;

fn named(node: Option<&str>, service: Option<&str>) -> Name {
    address_of(node, service).expect("a name").expect("something is named")
}

#[test]
fn a_service_is_one_name_whatever_the_node_and_others_are_others() {
    let names = [
        named(None, Some("4711")),
        named(None, Some("4712")),
        named(Some("4711"), None),
        named(Some("localhost"), None),
    ];
    assert_eq!(named(Some("localhost"), Some("4711")), names[0]);
    for (at, one) in names.iter().enumerate() {
        assert!(names[..at].iter().all(|other| other != one));
        let place = Place::from_name(one).expect("an address");
        assert_eq!(place.home_id(), place.address.id());
        assert_eq!(checked(one), Ok(*one));
    }
    assert_eq!(address_of(None, None), Ok(None));
}

/// Processes that were built at different times find each other.
#[test]
fn an_address_stays_what_it_is() {
    assert_eq!(id_of("service", "4711").to_string(), "acdda9f09ccfffcec79ae09d466d0000");
}

#[test]
fn other_bytes_are_no_address() {
    for bytes in [&[][..], &[1; NAME_BYTES], &named(None, Some("1"))[1..]] {
        assert_eq!(checked(bytes), Err(Errno::INVAL));
    }
}
