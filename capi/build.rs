//! Names the shared library as programs that are linked with it look for it.

/// Counts the interfaces that are not compatible with each other: see
/// `docs/c-interface.md`.
const SONAME: &str = "liblmt.so.0";

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    // Its handlers of faults (`lmt_copy::fault_safe`) stay, so it does.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
