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
fn a_whole_configuration_is_taken_unchanged() {
    let mut configuration = Configuration::default();
    configuration.config.quota_bytes = 8192;
    configuration.sources.insert("quota_bytes", Source::Environment { variable: "LMT_QUOTA".into() });
    let given = Config { spins: 7, ..Config::default() };
    give(&mut configuration, given.clone());
    assert_eq!(configuration.config, given);
    assert_eq!(configuration.sources.into_iter().collect::<Vec<_>>(), [("spins", Source::Call)]);
}

#[test]
fn the_defaults_are_those_of_the_code() {
    let sources = Sources::of_defaults(DEFAULTS, Known::of(&the_list()));
    let configuration = lmt_selector::config::load(&sources).expect("they can be read");
    assert_eq!(configuration.config, Config::default());
    assert_eq!(configuration.layers.len(), 1);
}
