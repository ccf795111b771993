use super::*;

const TEXT: &str = "a line of the program's\n\
    lmt stats pid=1 pid=1 endpoint=ab\n\
    lmt stats pid=1 path       sent sent_bytes received received_bytes demotions by_sender_bytes\n\
    lmt stats pid=1 eager      2    16         2        40             0         0\n\
    lmt stats pid=1 cma        2    16         0        0              0         0\n\
    [1] lmt stats pid=2 pid=2 endpoint=cd\n\
    [1] lmt stats pid=2 eager      2    16         3        20             0         0\n\
    [1] lmt stats pid=2 ring      2    16         1        140             4         9         5\n";

#[test]
fn tables_of_several_ranks_are_added_up() {
    let all = Statistics::of(TEXT);
    assert_eq!((all.endpoints, all.bytes(), all.demotions), (2, 200, 4));
    let of =
        |name: &str| all.received.iter().find(|way| way.way == name).map(|way| (way.messages, way.bytes));
    assert_eq!((of("eager"), of("ring"), of("cma")), (Some((5, 60)), Some((1, 140)), None));
    assert_eq!(all.shares(), "ring 70.0 %, eager 30.0 %");
}

#[test]
fn what_has_no_table_is_said() {
    let file = std::env::temp_dir().join(format!("lmt-statistics-{}", std::process::id()));
    assert!(Statistics::read(&file).unwrap_err().contains("cannot be read"));
    std::fs::write(&file, "nothing of the kind\n").unwrap();
    let sentence = Statistics::read(&file).unwrap_err();
    std::fs::write(&file, TEXT).unwrap();
    let read = Statistics::read(&file);
    std::fs::remove_file(&file).unwrap();
    assert!(sentence.contains("no line that begins with 'lmt stats '"), "{sentence}");
    assert_eq!(read, Ok(Statistics::of(TEXT)));
}
