//! Lists the files of `apps/`, which travel within the `lmt` command.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("apps");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    collect(&folder, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&folder).expect("a file of the folder");
        // Writing into a String cannot fail.
        let _ = writeln!(list, "    ({name:?}, include_str!({file:?})),");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder for what is generated"));
    fs::write(out.join("app_files.rs"), list).expect("the list is written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of the applications' files") {
        let path = entry.expect("an entry of it").path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
