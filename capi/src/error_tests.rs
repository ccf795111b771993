use super::*;

/// The last error, as C reads it.
fn last_text() -> String {
    LAST.with(|last| last.borrow().to_string_lossy().into_owned())
}

#[test]
fn a_panic_becomes_a_code_and_a_sentence() {
    let code = guard(|| panic!("the number {}", 7));
    assert_eq!(code, lmt_code::LMT_ERR_PANIC);
    assert!(last_text().contains("the number 7"), "{}", last_text());
    assert_eq!(guard(|| std::panic::panic_any(Grumpy)), lmt_code::LMT_ERR_PANIC);
}

/// What it panics with panics again when it is dropped.
struct Grumpy;

impl Drop for Grumpy {
    fn drop(&mut self) {
        panic!("and again");
    }
}

#[test]
fn success_leaves_the_last_error_and_threads_have_their_own() {
    assert_eq!(guard(|| Err(Error::null("peer"))), lmt_code::LMT_ERR_NULL);
    let before = last_text();
    assert!(before.starts_with("`peer` is NULL"));
    std::thread::scope(|threads| threads.spawn(|| assert_eq!(last_text(), "")).join()).expect("no panic");
    assert_eq!(guard(|| Ok(())), lmt_code::LMT_OK);
    assert_eq!(last_text(), before);
    assert!(!last().is_null());
}

#[test]
fn a_zero_in_a_sentence_does_not_lose_it() {
    note(Error::invalid("one\0two"));
    assert_eq!(last_text(), "onetwo");
}
