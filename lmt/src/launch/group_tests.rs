use super::*;

const ID: &str = "000102030405060708090a0b0c0d0e0f";

fn read(pairs: &[(&str, &str)]) -> Result<Option<Group>, EnvError> {
    Group::from_variables(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into()))
}

fn message(pairs: &[(&str, &str)]) -> String {
    read(pairs).expect_err("the variables are wrong").to_string()
}

#[test]
fn no_variables_is_no_group() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[(ENV_SOCKET_DIR, "/run/x")]), Ok(None), "the folder alone makes no group");
}

#[test]
fn all_variables_make_a_group() {
    let group = read(&[(ENV_RANK, "1"), (ENV_SIZE, "3"), (ENV_GROUP, ID), (ENV_LAUNCHER_PID, "77")]);
    let group = group.expect("well formed").expect("a group");
    assert_eq!((group.rank, group.size, group.launcher_pid), (1, 3, Some(77)));
    assert_eq!(group.address(2), Address::abstract_socket(group.id.member(2)));
}

#[test]
fn the_folder_goes_into_every_address() {
    let group = read(&[(ENV_RANK, "0"), (ENV_SIZE, "1"), (ENV_GROUP, ID), (ENV_SOCKET_DIR, "/run/lmt")]);
    let group = group.expect("well formed").expect("a group");
    assert_eq!(group.address(0).folder(), Some(Path::new("/run/lmt")));
}

#[test]
fn each_malformed_variable_is_named_with_its_value_and_the_rule() {
    let text = message(&[(ENV_RANK, "3"), (ENV_SIZE, "3"), (ENV_GROUP, ID)]);
    assert!(text.starts_with("LMT_RANK is `3`; it must be a number from 0 to 2"), "{text}");
    let text = message(&[(ENV_RANK, "-1"), (ENV_SIZE, "3"), (ENV_GROUP, ID)]);
    assert!(text.starts_with("LMT_RANK is `-1`"), "{text}");
    for size in ["0", "many", "4097", ""] {
        let text = message(&[(ENV_RANK, "0"), (ENV_SIZE, size), (ENV_GROUP, ID)]);
        assert!(
            text.starts_with(&format!("LMT_SIZE is `{size}`; it must be a number from 1 to 4096")),
            "{text}"
        );
    }
    let text = message(&[(ENV_RANK, "0"), (ENV_SIZE, "1"), (ENV_GROUP, "+00102030405060708090a0b0c0d0e0f")]);
    assert!(text.starts_with("LMT_GROUP is `+") && text.contains("32 hexadecimal digits"), "{text}");
    let text = message(&[(ENV_RANK, "0"), (ENV_SIZE, "1")]);
    assert!(text.starts_with("LMT_GROUP is not set"), "{text}");
    let long = "/x".repeat(40);
    let text = message(&[(ENV_RANK, "0"), (ENV_SIZE, "1"), (ENV_GROUP, ID), (ENV_SOCKET_DIR, &long)]);
    assert!(text.starts_with("LMT_SOCKET_DIR is `/x") && text.contains("1 to 70 bytes"), "{text}");
    for pid in ["0", "-4", "x"] {
        let text = message(&[(ENV_RANK, "0"), (ENV_SIZE, "1"), (ENV_GROUP, ID), (ENV_LAUNCHER_PID, pid)]);
        assert!(text.starts_with(&format!("LMT_LAUNCHER_PID is `{pid}`")), "{text}");
    }
}
