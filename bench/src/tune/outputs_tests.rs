use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-outputs-{}-{name}", std::process::id()));
        std::fs::create_dir_all(path.join("inner")).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn one_file_by_two_paths_is_one_file() {
    let folder = Folder::new("same");
    std::fs::write(folder.file("a"), "").unwrap();
    std::os::unix::fs::symlink(folder.file("a"), folder.file("link")).unwrap();
    std::os::unix::fs::symlink(&folder.0, folder.file("around")).unwrap();
    let same = |one: &str, other: &str| {
        let (one, other) = (folder.file(one), folder.file(other));
        let third = folder.file("third");
        all_differ(&[("--output", &one), ("--report", &third), ("--picture", &other)]).is_err()
    };
    assert!(same("a", "a") && same("a", "link") && same("a", "./inner/../a"));
    assert!(same("new", "inner/../new") && same("around/new", "new"), "not there yet");
    assert!(!same("a", "new") && !same("a", "inner/a"));
    let nothing = Path::new("/dev/null");
    assert!(all_differ(&[("--output", nothing), ("--report", nothing)]).is_ok());
}

const COMPLETE: Previous = Previous::Rules { rules: Vec::new(), complete: true };
const PART: Previous = Previous::Rules { rules: Vec::new(), complete: false };

#[test]
fn only_what_may_be_missed_is_kept() {
    let folder = Folder::new("keep");
    let output = folder.file("a.toml");
    std::fs::write(&output, "before").unwrap();
    for (previous, complete) in [(&COMPLETE, true), (&PART, false), (&PART, true), (&Previous::Absent, false)]
    {
        assert_eq!(keep(previous, &output, complete).unwrap(), None);
    }
    let kept = keep(&COMPLETE, &output, false).unwrap().unwrap();
    assert_eq!(kept, folder.file("a.toml.complete"));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "before");
    // An earlier one is replaced by the later one, each whole.
    WholeFile::create(&output, "--output").unwrap().write("later").unwrap();
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "before", "the two names are two files now");
    keep(&COMPLETE, &output, false).unwrap();
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "later");
}

#[test]
fn what_cannot_be_read_is_never_lost() {
    let folder = Folder::new("unreadable");
    let output = folder.file("a.toml");
    for (text, name) in [("one", "a.toml.unreadable"), ("two", "a.toml.unreadable.2")] {
        WholeFile::create(&output, "--output").unwrap().write(text).unwrap();
        keep(&Previous::Unreadable("why".into()), &output, true).unwrap();
        assert_eq!(std::fs::read_to_string(folder.file(name)).unwrap(), text);
        assert_eq!(std::fs::read_to_string(&output).unwrap(), text, "it is there until it is replaced");
    }
    assert_eq!(std::fs::read_to_string(folder.file("a.toml.unreadable")).unwrap(), "one");
}

#[test]
fn what_cannot_be_kept_stops_it() {
    let folder = Folder::new("stop");
    let output = folder.file("a.toml");
    std::fs::write(&output, "before").unwrap();
    // Nothing can be renamed over a folder.
    std::fs::create_dir(folder.file("a.toml.complete")).unwrap();
    let error = keep(&COMPLETE, &output, false).unwrap_err().to_string();
    assert!(error.contains("cannot be kept") && error.contains("as it was"), "{error}");
    let parts = std::fs::read_dir(&folder.0).unwrap().flatten();
    assert!(!parts.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains("part")));
}
