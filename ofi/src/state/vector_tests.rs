use std::path::Path;

use super::*;

fn address(number: u8) -> Address {
    Address::abstract_socket(EndpointId::from_bytes([number; 16]))
}

#[test]
fn names_come_back_as_addresses() {
    let ending_in_zero = Address::abstract_socket(EndpointId::from_bytes([0; 16]));
    let in_folder = Address::in_folder(EndpointId::from_bytes([7; 16]), Path::new("/run/of/some/user")).unwrap();
    for address in [address(1), ending_in_zero, in_folder] {
        assert_eq!(address_of(&name_of(&address).unwrap()), Ok(address));
    }
}

#[test]
fn a_folder_that_is_too_long_has_no_name() {
    let folder = format!("/{}", "x".repeat(60));
    let address = Address::in_folder(EndpointId::from_bytes([7; 16]), Path::new(&folder)).unwrap();
    assert_eq!(name_of(&address), Err(Errno::INVAL));
}

#[test]
fn other_bytes_are_no_address() {
    assert_eq!(address_of(&[0; NAME_BYTES]), Err(Errno::INVAL));
    assert_eq!(address_of(&[0xff; NAME_BYTES]), Err(Errno::INVAL));
}

#[test]
fn an_address_inserted_twice_has_two_numbers_until_both_are_removed() {
    let mut vector = AddressVector::default();
    assert_eq!((vector.insert(address(1)), vector.insert(address(2)), vector.insert(address(1))), (0, 1, 2));
    let id = address(1).id();
    assert_eq!(vector.number_of(id), Some(0));
    assert_eq!(vector.remove(0), Ok(address(1)));
    assert_eq!((vector.number_of(id), vector.address(0)), (Some(2), None));
    assert_eq!(vector.remove(0), Err(Errno::INVAL));
    assert_eq!((vector.remove(2), vector.number_of(id)), (Ok(address(1)), None));
    assert_eq!(vector.remove(u64::MAX), Err(Errno::INVAL));
}
