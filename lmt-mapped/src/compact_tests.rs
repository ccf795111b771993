use super::*;

const HEAD: Head = Head { arena: 7, line: 3, generation: 9, count: 1, start: 0, list_arena: 0, opened: 0 };

#[test]
fn what_is_written_is_read() {
    let most = Head { arena: (1 << 20) - 1, line: 1023, generation: (1 << 26) - 1, opened: u32::MAX, ..HEAD };
    for head in [HEAD, most, Head { opened: 1 << 31 | 5, ..HEAD }] {
        for offset in [0, 65536, (1 << 40) - 1] {
            let cookie = write(&head, [offset, 100]).expect("it fits");
            assert_eq!(cookie.as_bytes().len(), 16);
            assert_eq!(read(&cookie), Some((head, offset)));
        }
    }
}

#[test]
fn what_does_not_fit_is_not_written() {
    for head in [
        Head { arena: 1 << 20, ..HEAD },
        Head { generation: 1 << 26, ..HEAD },
        Head { line: 1024, ..HEAD },
        Head { count: 2, ..HEAD },
        Head { count: 1 << 31 | 1, ..HEAD },
        Head { start: 1, ..HEAD },
        Head { list_arena: 1, ..HEAD },
    ] {
        assert!(write(&head, [65536, 100]).is_none(), "{head:?}");
    }
    assert!(write(&HEAD, [1 << 40, 100]).is_none());
}

#[test]
fn cookies_of_other_lengths_are_others() {
    for bytes in [0, 8, 15, 17, 32, 48] {
        assert!(read(&Cookie::new(&vec![1; bytes]).expect("short")).is_none());
    }
}
