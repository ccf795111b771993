use super::*;
use crate::layout::Layout;

#[test]
fn every_key_is_read_and_set() {
    let mut config = Config::default();
    for key in KEYS {
        let value = config.get(key.name).expect("each key has a value");
        assert_eq!(config.set(key.name, &value), Ok(()));
        let error = config.set(key.name, &Value::Text("much".into())).unwrap_err();
        assert!(error.contains(key.name) && error.contains("whole number"), "{error}");
    }
    assert_eq!(config, Config::default());
    config.set("ring_bytes", &Value::Number(1 << 20)).unwrap();
    config.set("max_rings", &Value::Number(3)).unwrap();
    config.set("streaming_bytes", &Value::Number(1 << 22)).unwrap();
    assert_eq!(config, Config { ring_bytes: 1 << 20, streaming_bytes: 1 << 22, max_rings: 3 });
    assert!(config.get("cells").is_none());
    assert!(config.set("cells", &Value::Number(1)).unwrap_err().contains("no key `cells`"));
    assert!(config.set("max_rings", &Value::Number(1 << 32)).is_err());
}

#[test]
fn every_allowed_value_can_be_laid_out() {
    let bounds = |key: &Key| match key.kind {
        Kind::Bytes { least, most, .. } | Kind::Count { least, most } => [least, most],
        ref other => panic!("{other:?}"),
    };
    for bytes in bounds(&KEYS[0]).into_iter().chain([Config::default().ring_bytes]) {
        for rings in bounds(&KEYS[2]) {
            let layout = Layout { cells: (bytes / CELL_BYTES) as u32, rings: rings as u32 };
            assert!(layout.checked().is_some(), "{layout:?}");
        }
    }
}
