use std::process::{Command, id};

use super::*;

/// A folder of this test's own for them to be in.
struct Parent(PathBuf);

impl Parent {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-own-folder-{}-{name}", id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A folder as of this process, with a file.
    fn folder(&self, pid: u32, number: &str) -> PathBuf {
        let path = self.0.join(format!("{PREFIX}{pid}-{number}"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("left"), "behind").unwrap();
        path
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The pid of a process that has ended.
fn dead() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn folders_go_with_their_owner() {
    let parent = Parent::new("own");
    let folder = OwnFolder::new(&parent.0).unwrap();
    let path = folder.path().to_owned();
    fs::write(path.join("left"), "behind").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    drop(folder);
    assert!(!path.exists());
}

#[test]
fn what_the_killed_have_left_goes() {
    let parent = Parent::new("left");
    let pid = dead();
    let left = parent.folder(pid, "0");
    let alive = parent.folder(id(), "77");
    let locked = parent.folder(pid, "1");
    let _lock = Flock::lock(open(&locked).unwrap(), FlockArg::LockExclusive).unwrap();
    let others = [parent.folder(pid, "x"), parent.folder(0, "0")];
    let link = parent.0.join(format!("{PREFIX}{pid}-2"));
    std::os::unix::fs::symlink(&alive, &link).unwrap();
    let folder = OwnFolder::new(&parent.0).unwrap();
    assert!(!left.exists(), "its process is dead");
    assert!(alive.join("left").exists() && locked.join("left").exists());
    assert!(others.iter().all(|path| path.exists()), "not of its making");
    assert!(link.exists() && folder.path().exists());
}

#[test]
fn without_a_parent_there_is_none() {
    let parent = Parent::new("missing");
    assert!(OwnFolder::new(&parent.0.join("nowhere")).is_err());
}
