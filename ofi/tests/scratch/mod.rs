//! The provider's file in a folder of its own, which goes with the test.

use std::path::PathBuf;

/// A folder that goes with the test.
pub struct Scratch(pub PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// An empty folder, whose name begins so.
pub fn folder(name: &str) -> Scratch {
    let scratch = Scratch(std::env::temp_dir().join(format!("{name}-{}", std::process::id())));
    // A process of the same number may have been killed before it cleaned up.
    let _absent = std::fs::remove_dir_all(&scratch.0);
    std::fs::create_dir_all(&scratch.0).expect("a folder");
    scratch
}

/// The provider as libfabric finds it, alone in a folder.
pub fn library(test: &str) -> Scratch {
    let scratch = folder(&format!("lmt-fi-{test}"));
    let built = std::env::current_exe().expect("this binary").with_file_name("liblmt_fi.so");
    std::fs::copy(&built, scratch.0.join("liblmt-fi.so"))
        .unwrap_or_else(|error| panic!("{} is to be there: {error}", built.display()));
    scratch
}
