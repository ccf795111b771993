use super::*;

#[test]
fn a_turn_is_one_line() {
    let turn = Turn {
        pattern: "bibw",
        bytes: 65536,
        window: 64,
        iterations: 5,
        warm_up: 2,
        in_use: true,
        rotate: false,
    };
    assert_eq!(turn.line(), "turn bibw 65536 64 5 2 1 0\n");
}

#[test]
fn answers_are_times_or_reasons() {
    assert_eq!(parse_answer("ok 0.004000000"), Ok(0.004));
    assert_eq!(
        parse_answer("error rank 1 cannot be pinned on CPU 7"),
        Err("rank 1 cannot be pinned on CPU 7".into())
    );
    for odd in ["", "ok", "ok x", "ok -1", "ok nan", "ok inf", "nonsense"] {
        assert!(parse_answer(odd).unwrap_err().contains("no answer"), "{odd}");
    }
}

#[test]
fn ranks_greet_with_their_number() {
    assert_eq!(parse_hello("hello 1 2 Open MPI v5.0.11", 2), Ok((1, "Open MPI v5.0.11".into())));
    // The launcher of one MPI with the library of another starts single processes.
    assert!(parse_hello("hello 0 1 MPICH", 2).unwrap_err().contains("groups of 1 ranks"));
    for odd in ["hello 2 2 x", "hello", "hello x 2 y", "hullo 0 2 x"] {
        assert!(parse_hello(odd, 2).unwrap_err().contains("greets"), "{odd}");
    }
}
