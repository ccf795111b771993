//! Names the shared library as programs that are linked with it look for it.

/// Counts the interfaces that are not compatible with each other: see
/// `docs/c-interface.md`.
const SONAME: &str = "liblmt.so.0";

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    println!("cargo::rerun-if-changed=build.rs");
}
