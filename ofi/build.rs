//! Has the provider stay in the process once it is loaded: its handlers of faults do
//! (`lmt_copy::fault_safe`), which no one can take back that others may have chained.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
