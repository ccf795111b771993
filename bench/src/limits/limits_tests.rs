use super::*;

#[test]
fn the_best_is_the_fastest_of_those_that_count() {
    let times =
        [("hop", 0.1), ("memcpy", 0.2), ("both", 3.0), ("ring-8k", 2.0), ("shared-get", 1.0), ("cma", 0.5)];
    let times = || times.iter().copied();
    assert_eq!(best(times(), Work::is_contender), Some(("ring-8k", 2.0)));
    assert_eq!(best(times(), Work::has_shared_buffers), Some(("shared-get", 1.0)));
    assert_eq!(best(times().take(2), Work::is_contender), None);
}

#[test]
fn names_are_unique_and_patterns_measure_fewer_than_limits() {
    for (index, method) in METHODS.iter().enumerate() {
        assert!(METHODS[..index].iter().all(|other| other.name != method.name), "{}", method.name);
    }
    assert_eq!(methods(Pattern::Limits).count(), METHODS.len());
    assert!(methods(Pattern::Pingpong).all(|method| method.is_shown_with_limits));
    assert!((1..METHODS.len()).contains(&methods(Pattern::Pingpong).count()));
}
