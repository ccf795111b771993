use super::*;

#[test]
fn a_reason_is_the_line_that_speaks_of_an_error() {
    assert_eq!(reason(""), "");
    assert_eq!(reason("one\n\n two \n"), ": two");
    assert_eq!(
        reason("warning: odd\npeer.c:1: fatal error: no mpi.h\ncompilation ended\n"),
        ": peer.c:1: fatal error: no mpi.h"
    );
    assert_eq!(reason(&"é".repeat(1000)).chars().count(), 2 + SHOWN_LETTERS);
}
