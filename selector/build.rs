//! Finds libhwloc, and ends the build at its beginning where it is missing, which
//! otherwise the linker says after minutes.

use std::env;
use std::io::Write;
use std::process::{Command, Stdio};

/// What the linker is to find.
const PROGRAM: &[u8] =
    b"int hwloc_get_api_version(void); int main(void) { return hwloc_get_api_version() < 0x20000; }\n";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for variable in ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "LIBRARY_PATH", "CC"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    // Documentation links nothing; what is built for another machine is linked by
    // that one's libraries, which nothing here knows.
    let is_for_this_machine = env::var_os("HOST") == env::var_os("TARGET");
    let has_feature = env::var_os("CARGO_FEATURE_HWLOC").is_some();
    if !has_feature || !is_for_this_machine || env::var_os("DOCS_RS").is_some() {
        return;
    }
    if let Some(folders) = pkg_config_knows() {
        folders.iter().for_each(|folder| println!("cargo::rustc-link-search=native={folder}"));
        return;
    }
    if linker_finds() != Some(false) {
        return;
    }
    println!(
        "cargo::error=hwloc 2 is not installed, by which lmt learns which CPUs share a cache: install it \
         (Debian and Ubuntu: libhwloc-dev; Fedora and RHEL: hwloc-devel), or build lmt without it \
         (default-features = false)"
    );
}

/// Where pkg-config has a library of hwloc 2, but for the linker's own folders;
/// `None` where it has none.
fn pkg_config_knows() -> Option<Vec<String>> {
    let asked = |arguments: &[&str]| {
        let output = Command::new("pkg-config").args(arguments).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    asked(&["--atleast-version=2.0", "--max-version=2.999", "hwloc"])?;
    let flags = asked(&["--libs-only-L", "hwloc"])?;
    Some(flags.split_whitespace().filter_map(|flag| flag.strip_prefix("-L")).map(str::to_owned).collect())
}

/// Whether the C compiler, by which rustc links, finds the library; `None` where
/// there is no compiler to be asked.
fn linker_finds() -> Option<bool> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-x", "c", "-", "-lhwloc", "-o", "/dev/null"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    // One that ends without having read it has failed, which its status says.
    let _ = child.stdin.take()?.write_all(PROGRAM);
    Some(child.wait().ok()?.success())
}
