use super::*;

#[test]
fn the_numbers_of_regions_end_with_the_most() {
    assert_eq!(counts(1024), [1, 16, 256, 1024]);
    assert_eq!(counts(256), [1, 16, 256]);
    assert_eq!(counts(100), [1, 16, 100]);
    assert_eq!(counts(1), [1]);
    assert!(counts(0).is_empty());
}

#[test]
fn outcomes_travel_and_nonsense_is_refused() {
    let seconds = Seconds { first: 0.5, again: 0.25, ..Seconds::default() };
    let back = decode(&encode(&Ok(seconds))).unwrap().unwrap();
    assert_eq!((back.first, back.again), (0.5, 0.25));
    let back = decode(&encode(&Err("why".into()))).unwrap();
    assert_eq!(back.unwrap_err(), "why");
    for bytes in [&[][..], &[1], &[1; 16], &[1; 18]] {
        assert!(decode(bytes).is_err(), "{bytes:?}");
    }
}

/// Two bytes of name: what is found under it is the second.
struct Second;

impl RegionProvider for Second {
    fn most_regions(&mut self, bound: usize) -> usize {
        bound
    }
    fn name_bytes(&self) -> usize {
        2
    }
    fn needed_bytes(&self, _: u64, _: u64) -> u64 {
        0
    }
    fn own(
        &mut self,
        _: &[u8],
        _: usize,
        _: crate::patterns::link::WhileRegistered<'_>,
    ) -> Result<OwnerSeconds, LinkError> {
        Ok(OwnerSeconds::default())
    }
    fn look_up(&mut self, name: &[u8]) -> Result<u8, LinkError> {
        name.get(1).copied().ok_or_else(|| LinkError::new("half a name"))
    }
}

#[test]
fn every_byte_looked_up_is_checked() {
    assert!(look_up_all(&mut Second, &[1, MARK, 2, MARK]).is_ok());
    assert!(look_up_all(&mut Second, &[1, MARK, 2, 3]).unwrap_err().contains("was 0x03, not 0x5a"));
    assert_eq!(look_up_all(&mut Second, &[1, MARK, 2]).unwrap_err(), "half a name");
    assert!(look_up_all(&mut Second, &[]).unwrap_err().contains("could not register"));
}

/// An owner that declares and then does not let anybody look is no success.
#[test]
fn regions_that_nobody_looked_up_are_an_error() {
    let mut doorbell = Doorbell::new().unwrap();
    assert!(own(&mut Second, &[MARK], 1, &mut doorbell).unwrap_err().to_string().contains("never accessed"));
}
