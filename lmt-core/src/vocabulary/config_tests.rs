use crate::vocabulary::config::{Config, ConfigError, KEYS};
use crate::vocabulary::config_key::Value;

#[test]
fn every_key_can_be_read_and_set_to_what_it_is() {
    let mut config = Config::default();
    for key in KEYS {
        let value = config.get(key.name).unwrap_or_else(|| panic!("{} cannot be read", key.name));
        config.set(key.name, value.clone()).unwrap();
        assert_eq!(config.get(key.name), Some(value), "{}", key.name);
    }
    assert_eq!(config, Config::default());
}

/// The keys and the fields are the same, in the same order.
#[test]
fn every_field_has_its_key() {
    let toml = serde_field_names();
    let keys: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(toml, keys);
}

fn serde_field_names() -> Vec<String> {
    let text = format!("{:?}", Config::default());
    let fields = text.trim_start_matches("Config {").trim_end_matches('}').split(", ");
    fields.filter_map(|field| field.split_once(':')).map(|(name, _)| name.trim().to_owned()).collect()
}

#[test]
fn a_value_that_cannot_work_is_refused_with_what_would() {
    let mut config = Config::default();
    let refused = config.set("inbox_cells", Value::Number(9)).unwrap_err();
    assert_eq!(refused.to_string(), "inbox_cells is 9; it must be a power of two from 8 to 65536");
    let unknown = config.set("inbox_cell", Value::Number(8)).unwrap_err();
    assert!(matches!(unknown, ConfigError::UnknownKey { .. }));
    let by_hand = Config { quota_bytes: 1, ..Config::default() };
    assert_eq!(
        by_hand.check().unwrap_err().to_string(),
        "quota_bytes is 1; it must be a number of bytes, at least 4096"
    );
}

#[test]
fn every_key_is_described_and_its_variable_is_its_own() {
    let mut variables: Vec<&str> = KEYS.iter().filter_map(|key| key.variable).collect();
    let count = variables.len();
    variables.sort_unstable();
    variables.dedup();
    assert_eq!(variables.len(), count);
    for key in KEYS {
        assert!(!key.meaning.is_empty() && !key.meaning.ends_with('.'), "{}", key.name);
        assert!(!key.reason.is_empty() && !key.reason.ends_with('.'), "{}", key.name);
    }
}
