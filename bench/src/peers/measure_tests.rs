use super::*;

#[test]
fn a_hop_bounds_what_fits_into_a_line_with_a_flag() {
    let is_limit = |name, bytes| is_limit(name, bytes, Memory::Private);
    assert!(is_limit("hop", 0) && is_limit("hop", 8) && is_limit("hop", 56));
    assert!(!is_limit("hop", 57));
    assert!(is_limit("both", 8) && !is_limit("both", 0));
    assert!(!is_limit("nobody's", 8));
}

#[test]
fn shared_buffers_have_limits_of_their_own() {
    assert!(!is_limit("both", 1 << 20, Memory::Shared));
    let of_shared = || METHODS.iter().filter(|method| method.work.has_shared_buffers());
    assert!(of_shared().count() > 0);
    for method in of_shared() {
        assert!(is_limit(method.name, 1 << 20, Memory::Shared), "{}", method.name);
        assert!(!is_limit(method.name, 1 << 20, Memory::Private), "{}", method.name);
    }
}

#[test]
fn caches_are_warmed_by_a_quarter_of_a_turn() {
    assert_eq!([0, 1, 8, 100].map(warm_up), [2, 2, 2, 25]);
}
