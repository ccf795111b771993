use super::{fingerprint_of_this_machine, machine_fingerprint};

#[test]
fn a_processor_without_a_model_name_has_a_fingerprint_too() {
    let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
    assert_eq!(machine_fingerprint(arm, 64), "arm-0x41-0xd0c-64");
    assert_eq!(machine_fingerprint("cpu\t\t: POWER9, altivec supported\n", 4), "power9-altivec-supported-4");
    assert_eq!(machine_fingerprint("", 1), "unknown-1");
}

/// It becomes a file's name: nothing in /proc may make a path of it.
#[test]
fn no_model_name_leads_out_of_the_folder() {
    let named = machine_fingerprint("model name : ../../etc/passwd\0 \u{e9}\n", 2);
    assert_eq!(named, "etc-passwd-2");
}

#[test]
fn this_machine_has_the_same_one_each_time() {
    assert_eq!(fingerprint_of_this_machine(), fingerprint_of_this_machine());
}
