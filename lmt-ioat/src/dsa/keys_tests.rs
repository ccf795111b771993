use lmt_core::config_key::Value;
use lmt_core::mechanism::Settings;

use super::{Config, KEYS};

#[test]
fn every_key_is_a_field_and_its_default_is_allowed() {
    let mut config = Config::default();
    for key in KEYS {
        let value = config.get(key.name).unwrap_or_else(|| panic!("{}", key.name));
        key.check(&value).unwrap();
        config.set(key.name, value).unwrap();
    }
    assert_eq!(config, Config::default());
    let changed = Config { units: 7, to_cache: false, ..Config::default() };
    config.set("units", Value::Number(7)).unwrap();
    config.set("to_cache", Value::Flag(false)).unwrap();
    assert_eq!(config, changed);
    assert!(config.set("units", Value::Flag(true)).is_err());
    assert!(config.set("unit", Value::Number(1)).is_err());
}

#[test]
fn the_mechanism_has_the_pipelines_keys_and_the_devices() {
    let mut dsa = crate::pipeline::ioat_dsa().unwrap();
    let names: Vec<&str> = dsa.keys().iter().map(|key| key.name).collect();
    assert_eq!(names.len(), lmt_shm::KEYS.len() + KEYS.len());
    for key in dsa.keys() {
        let value = dsa.get(key.name).unwrap_or_else(|| panic!("{}", key.name));
        key.check(&value).unwrap();
        dsa.set(key.name, value).unwrap();
    }
    dsa.set("buffers", Value::Number(6)).unwrap();
    dsa.set("max_retries", Value::Number(9)).unwrap();
    assert_eq!(dsa.get("buffers"), Some(Value::Number(6)));
    assert_eq!(dsa.get("max_retries"), Some(Value::Number(9)));
    assert!(dsa.set("nothing", Value::Number(1)).is_err());
}
