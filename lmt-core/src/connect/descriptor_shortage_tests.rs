use super::*;

const LIMIT: Duration = Duration::from_secs(10);

fn shortage() -> (Shortage, std::os::unix::net::UnixDatagram) {
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    (Shortage::none(&socket), socket)
}

#[test]
fn one_that_goes_on_becomes_long_and_one_that_was_is_forgotten() {
    let (mut shortage, _socket) = shortage();
    let begun = Instant::now();
    let mut at = |secs| shortage.note(begun + Duration::from_secs(secs), LIMIT);
    let lengths: Vec<Length> = [0, 4, 9, 10, 20].into_iter().map(&mut at).collect();
    assert_eq!(lengths, [Length::Begins, Length::Short, Length::Short, Length::Long, Length::Long]);
    // An hour later descriptors run out again.
    assert_eq!([3600, 3601].map(at), [Length::Begins, Length::Short]);
    shortage.ends();
    assert_eq!(shortage.note(begun + Duration::from_secs(3611), LIMIT), Length::Begins);
}

#[test]
fn the_reserve_is_free_meanwhile_and_taken_again() {
    let (mut shortage, socket) = shortage();
    let is_open = |shortage: &Shortage| shortage.reserve.is_some();
    assert!(is_open(&shortage));
    let number = shortage.reserve.as_ref().map(std::os::fd::AsRawFd::as_raw_fd).unwrap();
    shortage.with_reserve(&socket, || {
        let link = std::fs::read_link(format!("/proc/self/fd/{number}"));
        let own = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket)));
        assert!(link.is_err() || link.unwrap() != own.unwrap(), "it is closed");
    });
    assert!(is_open(&shortage));
}
