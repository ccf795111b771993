use std::path::Path;

use super::*;

fn place(id: u8) -> Place {
    Place { address: Address::abstract_socket(EndpointId::from_bytes([id; 16])), number: 0 }
}

#[test]
fn names_come_back_as_places() {
    let ending_in_zero = place(0);
    let id = EndpointId::from_bytes([7; 16]);
    let in_folder =
        Place { address: Address::in_folder(id, Path::new("/run/of/a/user")).unwrap(), number: 300 };
    for place in [place(1), ending_in_zero, in_folder] {
        assert_eq!(Place::from_name(&place.to_name().unwrap()), Ok(place));
    }
}

#[test]
fn the_first_endpoint_of_a_domain_is_found_by_another() {
    let first = EndpointId::from_bytes([9; 16]);
    let folder = Path::new("/run/x");
    let address = |n| Address::in_folder(first.member(n), folder).unwrap();
    assert_eq!(Place { address: address(3), number: 3 }.home(), address(0));
    assert_eq!(Place { address: address(0), number: 0 }.home(), address(0));
}

#[test]
fn a_folder_that_is_too_long_has_no_name() {
    let folder = format!("/{}", "x".repeat(60));
    let address = Address::in_folder(EndpointId::from_bytes([7; 16]), Path::new(&folder)).unwrap();
    assert_eq!(Place { address, number: 0 }.to_name(), Err(Errno::INVAL));
}

#[test]
fn other_bytes_are_no_address() {
    assert_eq!(Place::from_name(&[0; NAME_BYTES]), Err(Errno::INVAL));
    assert_eq!(Place::from_name(&[0xff; NAME_BYTES]), Err(Errno::INVAL));
}

#[test]
fn an_address_that_the_caller_has_numbered_is_told_with_that_number() {
    let mut vector = AddressVector::default();
    assert_eq!((vector.insert(place(1)), vector.insert_as(place(2), Some(0x700))), (0, 1));
    assert_eq!(vector.number_of(place(2).address.id()), Some(0x700));
    assert_eq!(vector.place(1), Some(&place(2)), "it is sent to by ours");
    assert_eq!(vector.remove(1), Ok(place(2)));
    assert_eq!(vector.number_of(place(2).address.id()), None);
}

#[test]
fn an_address_inserted_twice_has_two_numbers_until_both_are_removed() {
    let mut vector = AddressVector::default();
    assert_eq!((vector.insert(place(1)), vector.insert(place(2)), vector.insert(place(1))), (0, 1, 2));
    let id = place(1).address.id();
    assert_eq!(vector.number_of(id), Some(0));
    assert_eq!(vector.remove(0), Ok(place(1)));
    assert_eq!((vector.number_of(id), vector.place(0)), (Some(2), None));
    assert_eq!(vector.remove(0), Err(Errno::INVAL));
    assert_eq!((vector.remove(2), vector.number_of(id)), (Ok(place(1)), None));
    assert_eq!(vector.remove(u64::MAX), Err(Errno::INVAL));
}

#[test]
fn a_new_address_has_the_lowest_number_that_is_free() {
    let mut vector = AddressVector::default();
    (0..4).for_each(|id| assert_eq!(vector.insert(place(id)), FiAddr::from(id)));
    assert_eq!((vector.remove(2), vector.remove(1)), (Ok(place(2)), Ok(place(1))));
    assert_eq!((vector.insert(place(7)), vector.insert(place(8)), vector.insert(place(9))), (1, 2, 4));
    assert_eq!(vector.number_of(place(8).address.id()), Some(2));
}

#[test]
fn an_endpoint_is_known_until_the_last_number_that_needs_it_is_removed() {
    let first = EndpointId::from_bytes([9; 16]);
    let id = |number: u16| first.member(number.into());
    let member = |number| Place { address: Address::abstract_socket(id(number)), number };
    let mut vector = AddressVector::default();
    for place in [member(1), member(2), place(1), place(1)] {
        vector.insert(place);
    }
    assert_eq!(vector.known_only_by(0), [id(1)], "the domain's first is the other's, too");
    assert_eq!(vector.known_only_by(2), [], "it was inserted twice");
    vector.remove(0).unwrap();
    assert_eq!(vector.known_only_by(1), [id(2), id(0)]);
    vector.insert(member(0));
    assert_eq!(vector.known_only_by(1), [id(2)]);
    assert_eq!(vector.known_only_by(0), [id(0)], "it goes, and the member names it again");
    assert_eq!(vector.known_only_by(99), []);
}
