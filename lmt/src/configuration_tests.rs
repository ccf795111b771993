use std::collections::BTreeMap;

use super::*;

#[test]
fn what_a_call_changes_is_its_own() {
    let mut configuration = Configuration::default();
    let environment = Source::Environment { variable: "LMT_QUOTA".into() };
    configuration.sources.insert("quota_bytes", environment.clone());
    note_changes(&mut configuration, |config| config.spins = 7);
    assert_eq!(configuration.sources.get("spins"), Some(&Source::Call));
    assert_eq!(configuration.sources.get("quota_bytes"), Some(&environment));
    note_changes(&mut configuration, |config| config.quota_bytes = 8192);
    assert_eq!(configuration.sources.get("quota_bytes"), Some(&Source::Call));
}

#[test]
fn what_a_given_configuration_leaves_at_its_default_stays() {
    let mut configuration = Configuration::default();
    configuration.config.quota_bytes = 8192;
    configuration.config.spins = 9;
    let environment = Source::Environment { variable: "LMT_QUOTA".into() };
    configuration.sources.insert("quota_bytes", environment.clone());
    give(&mut configuration, Config { spins: 7, ..Config::default() });
    assert_eq!(configuration.config, Config { spins: 7, quota_bytes: 8192, ..Config::default() });
    let sources = BTreeMap::from([("quota_bytes", environment), ("spins", Source::Call)]);
    assert_eq!(configuration.sources, sources);
}

/// Every key is given, and noted, if it is otherwise.
#[test]
fn all_of_a_given_configuration_is_taken() {
    let given = Config {
        eager_max_bytes: 1,
        inbox_eager_max_bytes: 2,
        inbox_cells: 64,
        cell_bytes: 512,
        fast_boxes: 1,
        max_peers: 2,
        unexpected_max_bytes: 65536,
        pending_max_messages: 3,
        connect_timeout_ms: 4,
        answer_timeout_ms: 8,
        close_timeout_ms: 5,
        quota_bytes: 4096,
        spins: 6,
        yields: 7,
        allow_other_users: true,
        copy_routine: "portable".to_owned(),
        socket_dir: Some("/somewhere".into()),
        mechanisms: Some(vec!["shm".into()]),
    };
    let mut configuration = Configuration::default();
    give(&mut configuration, given.clone());
    assert_eq!(configuration.config, given);
    assert!(KEYS.iter().all(|key| configuration.sources.get(key.name) == Some(&Source::Call)));
    assert_eq!(configuration.sources.len(), KEYS.len());
}

/// The value is the one that was there.
#[test]
fn a_key_that_is_set_is_the_calls_whatever_the_value() {
    let mut configuration = Configuration::default();
    let bytes = configuration.config.eager_max_bytes;
    changing(move |config| config.eager_max_bytes = bytes)(&mut configuration);
    assert!(configuration.sources.is_empty());
    setting_to("eager_max_bytes", Value::Number(bytes)).expect("it can be")(&mut configuration);
    assert_eq!(configuration.sources, BTreeMap::from([("eager_max_bytes", Source::Call)]));
    assert_eq!(configuration.config, Config::default());

    let error = |key, value| setting_to(key, value).err().expect("it cannot be").to_string();
    assert!(error("eager", Value::Number(1)).contains("there is no key `eager`"));
    assert!(error("eager_max_bytes", Value::Number(2 << 20)).contains("eager_max_bytes is 2097152"));
}
