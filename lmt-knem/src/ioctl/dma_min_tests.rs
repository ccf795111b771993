use std::io::Write;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::*;

fn parameter(text: &str) -> (DmaMin, File) {
    let file = File::from(memfd_create(c"dmamin", MFdFlags::MFD_CLOEXEC).expect("a memory file"));
    (&file).write_all(text.as_bytes()).expect("room");
    (DmaMin::of(file.try_clone().expect("a descriptor")), file)
}

#[test]
fn it_is_read_as_it_is_now_and_never_less_than_the_default() {
    let (dma_min, file) = parameter("2000\n");
    assert_eq!(dma_min.small_bytes(), Ok(2000));
    for (text, bytes) in [("4000\n", 4000), ("0   \n", 1024), ("1023\n", 1024), ("1025\n", 1025)] {
        file.write_all_at(text.as_bytes(), 0).expect("room");
        assert_eq!(dma_min.small_bytes(), Ok(bytes), "{text}");
    }
}

#[test]
fn what_is_no_number_is_not_guessed() {
    for text in ["", "-1\n", "many\n", "99999999999999999999999999\n"] {
        assert_eq!(parameter(text).0.small_bytes(), Err(Errno::EINVAL), "{text}");
    }
}

#[test]
fn why_nothing_is_left_to_the_engine_is_said() {
    assert_eq!(parameter("4095\n").0.check(), Ok(()));
    let refused = parameter("4096\n").0.check().unwrap_err();
    assert!(refused.sentence.contains("dmamin is 4096 bytes"), "{refused}");
    let refused = DmaMin::open(Path::new("/nonexistent/dmamin")).check().unwrap_err();
    assert_eq!(refused.errno, Errno::ENOENT as i32);
    assert!(refused.sentence.contains("cannot be read"), "{refused}");
}
