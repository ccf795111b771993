use super::*;
use std::process::Command;

#[test]
fn parents_are_read_whatever_a_program_is_called() {
    assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
    assert_eq!(parent("12"), None);
}

#[test]
fn all_below_a_process_are_found() {
    let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 2)]);
    assert_eq!(below(2, &parents), [3, 6, 4]);
    assert_eq!(below(4, &parents), [0; 0]);
}

#[test]
fn a_process_says_which_rank_it_is_and_where_it_sleeps() {
    let mut child = Command::new("sleep").arg("60").env("PMI_RANK", "3").spawn().unwrap();
    let pid = child.id() as i32;
    // Until the program has taken the place of this one's copy.
    while rank(pid).is_none() {
        std::thread::yield_now();
    }
    let (rank, words, told) = (rank(pid), command(pid), kernel(pid));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((rank, words.trim()), (Some(3), "sleep 60"));
    assert!(told.contains("/status:") && told.contains("/maps:"), "{told}");
}
