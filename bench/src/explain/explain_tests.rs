use super::*;

fn e5345() -> Machine {
    Machine::synthetic("package:2 l2:2(size=4194304) core:2 pu:1").expect("a machine")
}

#[test]
fn cpus_that_are_not_there_are_named_with_those_that_are() {
    let error = exists("--to", &[0, 9], &e5345()).expect_err("there are eight");
    let text = error.to_string();
    assert!(text.starts_with("--to names CPU 9, which does not exist on the synthetic machine"), "{text}");
    assert!(text.ends_with("its CPUs are 0-7"), "{text}");
    assert_eq!(error.exit_status(), 2);
    assert_eq!(exists("--to", &[0, 7], &e5345()).expect("there").count(), 2);
}

#[test]
fn what_is_assumed_exists() {
    assert!(availability::check_assumed(&["ring".into()], &["ring-wide"]).is_ok());
    let error = availability::check_assumed(&["rnig".into()], &["ring"]).expect_err("a slip of the pen");
    assert!(error.to_string().contains("'ring'"), "{error}");
}
