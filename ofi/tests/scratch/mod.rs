//! The provider's file in a folder of its own, which goes with the test.

use std::path::PathBuf;

/// A folder that goes with the test.
pub struct Scratch(pub PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// The provider as libfabric finds it, alone in a folder.
pub fn library(test: &str) -> Scratch {
    let folder = format!("lmt-fi-{test}-{}", std::process::id());
    let scratch = Scratch(std::env::temp_dir().join(folder));
    std::fs::create_dir_all(&scratch.0).expect("a folder");
    let built = std::env::current_exe().expect("this binary").with_file_name("liblmt_fi.so");
    std::fs::copy(&built, scratch.0.join("liblmt-fi.so"))
        .unwrap_or_else(|error| panic!("{} is to be there: {error}", built.display()));
    scratch
}
