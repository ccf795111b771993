use super::*;

/// As _IO('x', n) of the kernel's headers makes them: no direction, no size.
#[test]
fn the_numbers_are_those_of_the_public_header() {
    assert_eq!(
        [VERSION, MAKE, GET, RELEASE, ATTACH, DETACH],
        [0x7800, 0x7801, 0x7803, 0x7804, 0x7805, 0x7806]
    );
}
