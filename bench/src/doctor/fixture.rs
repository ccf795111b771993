//! Folders of a machine that is none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use lmt::diagnostic::{Finding, Host};

/// Removed when dropped.
pub struct Files(PathBuf);

impl Files {
    /// Each has folders of its own, also where tests run at once.
    pub fn new(test: &str) -> Self {
        // Relaxed: only that no two get the same number matters.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lmt-doctor-{}-{number}-{test}", std::process::id());
        let root = std::env::temp_dir().join(name);
        for folder in ["proc/self", "sys", "dev"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        Self(root)
    }

    pub fn with(self, path: &str, content: &str) -> Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub fn linked(self, path: &str, to: &str) -> Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, path).unwrap();
        self
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    pub fn host(&self) -> Host {
        Host::under(&self.0)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The finding of this name.
pub fn named<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.name == name)
        .unwrap_or_else(|| panic!("no finding {name} in {findings:#?}"))
}
