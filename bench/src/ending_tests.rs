use std::os::unix::net::{UnixListener, UnixStream};

use super::*;

/// Only this process's own: one that is connected has no name here.
#[test]
fn sockets_with_files_are_found() {
    let folder = std::env::temp_dir().join(format!("lmt-ending-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("lmt-0");
    let listener = UnixListener::bind(&path).unwrap();
    let _connected = UnixStream::connect(&path).unwrap();
    let _accepted = listener.accept().unwrap();
    let others = UnixListener::bind(folder.join("other")).unwrap();
    let found = own_sockets();
    drop(others);
    fs::remove_dir_all(&folder).unwrap();
    assert!(found.contains(&path), "{found:?}");
    assert!(!found.contains(&folder.join("other")), "no endpoint's name: {found:?}");
    assert!(found.iter().all(|found| found.starts_with(&folder)), "{found:?}");
}
