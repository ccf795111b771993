use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lmt_core::config_key::Value;
use lmt_core::selection::Source;

use crate::config::test_support::known;
use crate::config::{ConfigFailure, Sources};
use crate::configuration::{Configuration, DmaMinSetting};
use crate::rules::{Authority, Take};

/// A folder of files that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-config-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("calibration")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn sources(&self, environment: &[(&str, &str)]) -> Sources {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), OsString::from(value));
        Sources {
            environment: environment.iter().map(pair).collect(),
            folder: Some(self.0.clone()),
            fingerprint: "this-machine".to_owned(),
            ..Sources::of_defaults(DEFAULT, known())
        }
    }

    fn load(&self, environment: &[(&str, &str)]) -> Result<Configuration, ConfigFailure> {
        Configuration::load(&self.sources(environment))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DEFAULT: &str = "[endpoint]\neager_max_bytes = 262144\n[[rule]]\ntake = [\"cma\", \"shm\"]\n";

fn file(path: &Path, line: u32) -> Source {
    Source::File { path: path.display().to_string(), line }
}

#[test]
fn without_anything_it_is_the_default() {
    let folder = Folder::new("default");
    let loaded = folder.load(&[]).unwrap();
    assert_eq!(loaded.config, lmt_core::config::Config::default());
    assert!(loaded.sources.is_empty() && loaded.remarks.is_empty() && loaded.mechanisms.is_empty());
    let authorities: Vec<Authority> = loaded.layers.iter().map(|layer| layer.authority).collect();
    assert_eq!(authorities, [Authority::Default]);
    assert_eq!(loaded.layers[0].path, Path::new("default.toml"));
    assert_eq!(loaded.layers[0].rules[0].line, 3);
}

/// Environment, user's file, calibration, defaults: each sets what those before
/// it leave open.
#[test]
fn the_order_of_authority_holds_key_by_key() {
    let folder = Folder::new("authority");
    let user = folder.write(
        "lmt.toml",
        "[endpoint]\nspins = 7\neager_max_bytes = \"8 KiB\"\n[selection]\nmax_readers = 3\n[[rule]]\ntake = [\"shm\"]\n",
    );
    let calibration = folder.write(
        "calibration/this-machine.toml",
        "[calibration]\nmachine = \"this-machine\"\n[endpoint]\neager_max_bytes = \"16 KiB\"\nyields = 9\nspins = 1\n[selection]\ndma_min = \"2 MiB\"\n",
    );
    let loaded =
        folder.load(&[("LMT_SPINS", "5"), ("LMT_EAGER_MAX", ""), ("LMT_DMA_MIN", "by-processes")]).unwrap();
    assert_eq!(loaded.config.spins, 5);
    assert_eq!(loaded.config.eager_max_bytes, 8192, "an empty variable is one that is not set");
    assert_eq!(loaded.config.yields, 9);
    assert_eq!(loaded.selection.max_readers, 3);
    assert_eq!(loaded.selection.dma_min, DmaMinSetting::ByProcesses);
    assert_eq!(loaded.sources["spins"], Source::Environment { variable: "LMT_SPINS".to_owned() });
    assert_eq!(loaded.sources["eager_max_bytes"], file(&user, 3));
    let path = calibration.display().to_string();
    assert_eq!(loaded.sources["yields"], Source::Calibration { path, line: 5 });
    assert_eq!(loaded.sources["dma_min"], Source::Environment { variable: "LMT_DMA_MIN".to_owned() });
    assert!(!loaded.sources.contains_key("inbox_cells"));
    let authorities: Vec<Authority> = loaded.layers.iter().map(|layer| layer.authority).collect();
    assert_eq!(authorities, [Authority::User, Authority::Calibration, Authority::Default]);
    assert!(loaded.remarks.is_empty(), "{:?}", loaded.remarks);
}

#[test]
fn lmt_config_stands_for_the_users_own_file_and_its_first_file_outranks_its_second() {
    let folder = Folder::new("named");
    folder.write("lmt.toml", "[endpoint]\nspins = 7\nyields = 7\n");
    folder.write("calibration/this-machine.toml", "[calibration]\n[endpoint]\nmax_peers = 7\n");
    let first = folder.write("first.toml", "[endpoint]\nspins = 1\n[[rule]]\ntake = [\"net\"]\n");
    let second = folder.write("second.toml", "[endpoint]\nspins = 2\nquota_bytes = \"2 MiB\"\n");
    let both = format!("{}:{}", first.display(), second.display());
    let loaded = folder.load(&[("LMT_CONFIG", &both)]).unwrap();
    assert_eq!((loaded.config.spins, loaded.config.yields), (1, 1000));
    assert_eq!(loaded.sources["spins"], file(&first, 2));
    assert_eq!(loaded.sources["quota_bytes"], file(&second, 3));
    assert_eq!(loaded.config.max_peers, 7, "a calibration of this machine is used beside them");
    let paths: Vec<&Path> = loaded.layers.iter().map(|layer| layer.path.as_path()).collect();
    assert_eq!(paths[..2], [first.as_path(), second.as_path()]);
    assert!(matches!(&loaded.layers[0].rules[0].take, Take::Ways(ways) if ways[0].name == "net"));
}

#[test]
fn a_calibration_that_is_named_stands_for_the_machines_own() {
    let folder = Folder::new("calibration");
    folder.write("calibration/this-machine.toml", "[calibration]\n[endpoint]\nspins = 7\n");
    let named = folder.write("other.toml", "[calibration]\nmachine = \"another\"\ncomplete = false\n");
    let loaded = folder.load(&[("LMT_CONFIG", &named.display().to_string())]).unwrap();
    assert_eq!(loaded.config.spins, 50_000);
    let authorities: Vec<Authority> = loaded.layers.iter().map(|layer| layer.authority).collect();
    assert_eq!(authorities, [Authority::Calibration, Authority::Default]);
    assert_eq!(loaded.remarks.len(), 2);
    assert!(
        loaded.remarks[0].contains("another machine (another, and this is this-machine)"),
        "{:?}",
        loaded.remarks
    );
    assert!(loaded.remarks[1].contains("interrupted"), "{:?}", loaded.remarks);
}

#[test]
fn what_is_set_of_a_mechanism_stands_above_what_is_set_of_its_family() {
    let folder = Folder::new("family");
    folder.write(
        "lmt.toml",
        "[mechanism.net-slow]\ncpu = 3\n[mechanism.net]\ncpu = 1\nbuffer_bytes = \"8 KiB\"\nup_to = \"1 MiB\"\n",
    );
    let loaded = folder.load(&[("LMT_NET_FAST_CPU", "none"), ("LMT_SHM_BUFFER_BYTES", "1 MiB")]).unwrap();
    let value = |mechanism: &str, key: &str| {
        let mut found = loaded.mechanisms.iter().filter(|s| s.mechanism == mechanism && s.key == key);
        let value = found.next().map(|setting| setting.value.clone());
        assert!(found.next().is_none(), "{mechanism} {key} is there twice");
        value
    };
    assert_eq!(value("net-slow", "cpu"), Some(Value::Number(3)));
    assert_eq!(value("net-fast", "cpu"), Some(Value::Absent));
    assert_eq!(value("net-fast", "buffer_bytes"), Some(Value::Number(8192)));
    assert_eq!(value("shm", "buffer_bytes"), Some(Value::Number(1 << 20)));
    assert_eq!(value("shm", "cpu"), None);
    assert_eq!(loaded.layers[0].ranges[0].mechanism, "net");
}

#[test]
fn auto_in_the_environment_takes_back_what_a_file_says() {
    let folder = Folder::new("auto");
    folder.write("lmt.toml", "[endpoint]\nmechanisms = [\"shm\", \"cma:put\"]\n");
    let loaded = folder.load(&[]).unwrap();
    assert_eq!(loaded.config.mechanisms, Some(vec!["shm".to_owned(), "cma:put".to_owned()]));
    let loaded = folder.load(&[("LMT_MECHANISM", "auto")]).unwrap();
    assert_eq!(loaded.config.mechanisms, None);
    assert_eq!(loaded.sources["mechanisms"], Source::Environment { variable: "LMT_MECHANISM".to_owned() });
    let loaded = folder.load(&[("LMT_MECHANISM", "net, shm")]).unwrap();
    assert_eq!(loaded.config.mechanisms, Some(vec!["net".to_owned(), "shm".to_owned()]));
}

#[test]
fn all_that_is_wrong_with_all_sources_is_told_at_once() {
    let folder = Folder::new("wrong");
    let one = folder.write("one.toml", "[endpoint]\nspin = 1\n");
    let two = folder.write("two.toml", "[selection]\nmax_readers = 0\n");
    let missing = folder.0.join("missing.toml");
    let named = format!("{}:{}:{}", one.display(), missing.display(), two.display());
    let failure = folder.load(&[("LMT_CONFIG", &named), ("LMT_EAGER_MAX", "4kB")]).unwrap_err();
    assert_eq!(failure.problems().len(), 4, "{}", failure.render());
    let sentence = failure.to_string();
    assert_eq!(
        sentence,
        "the environment: the variable LMT_EAGER_MAX is `4kB`, whose unit `kB` is not known; sizes are a number of bytes, or text with B, KiB, MiB or GiB (powers of 1024): write \"4 KiB\" (and 3 more problems; `lmt config --check` shows all)"
    );
    let report = failure.render();
    for part in ["did you mean `spins`?", "two.toml:2:15", "missing.toml", "LMT_EAGER_MAX=4kB"] {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
}

#[test]
fn what_is_no_file_of_text_is_refused() {
    let folder = Folder::new("no-file");
    let named = folder.0.display().to_string();
    let failure = folder.load(&[("LMT_CONFIG", &named)]).unwrap_err();
    assert!(failure.to_string().ends_with("it is no regular file; name a file"), "{failure}");
    let path = folder.0.join("bytes.toml");
    fs::write(&path, b"# \xff\n").unwrap();
    let failure = folder.load(&[("LMT_CONFIG", &path.display().to_string())]).unwrap_err();
    assert!(failure.to_string().contains("byte 2 is no UTF-8"), "{failure}");
}

/// A file that nobody has named stops nobody, and what stands in it does not
/// count.
#[test]
fn a_calibration_that_is_none_is_left_out_with_a_remark() {
    let folder = Folder::new("no-table");
    for (text, words) in [
        ("[endpoint]\nspins = 1\n", "has no table [calibration]"),
        ("", "has no table [calibration]"),
        ("[calibration]\nof_later = 1\n[endpoint]\nspins = 1\n", "of_later"),
        ("[[rule]\n", "this-machine.toml:1"),
    ] {
        folder.write("calibration/this-machine.toml", text);
        let loaded = folder.load(&[]).unwrap();
        assert_ne!(loaded.config.spins, 1);
        let [remark] = &loaded.remarks[..] else { panic!("{:?}", loaded.remarks) };
        assert!(remark.contains(words) && remark.contains("`lmt tune`"), "{remark}");
    }
}

#[test]
fn the_users_folder_is_where_xdg_says() {
    let folder = |variables: &[(&str, &str)]| {
        let pairs: Vec<(String, OsString)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
        crate::config::sources::folder(&pairs)
    };
    assert_eq!(folder(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), Some("/x/lmt".into()));
    assert_eq!(folder(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]), Some("/h/.config/lmt".into()));
    assert_eq!(folder(&[("HOME", "/h")]), Some("/h/.config/lmt".into()));
    assert_eq!(folder(&[("HOME", "")]), None);
}

#[test]
fn rules_of_collective_operations_stand_in_order_of_authority() {
    let folder = Folder::new("collectives");
    let rule =
        |operation: &str| format!("[[collective]]\noperation = \"{operation}\"\nalgorithm = \"tree:2\"\n");
    let user = folder.write("lmt.toml", &rule("spread"));
    let calibration = folder
        .write("calibration/this-machine.toml", &format!("[calibration]\ncomplete = true\n{}", rule("*")));
    let loaded = folder.load(&[("LMT_COLLECTIVES", "*=all-at-once")]).unwrap();
    let sources: Vec<Source> = loaded.collectives.into_iter().map(|rule| rule.source).collect();
    let path = calibration.display().to_string();
    let expected = [
        Source::Environment { variable: "LMT_COLLECTIVES".to_owned() },
        file(&user, 1),
        Source::Calibration { path, line: 3 },
    ];
    assert_eq!(sources, expected);
    let failure = folder.load(&[("LMT_COLLECTIVES", "spread:tree")]).unwrap_err().to_string();
    assert!(failure.contains("the variable LMT_COLLECTIVES has `spread:tree`"), "{failure}");
}

/// Whoever makes a group refuses it then, and the others hear of it.
#[test]
fn where_nobody_knows_collective_operations_their_rules_stop_nobody_yet() {
    let folder = Folder::new("collective-failure");
    let path = folder.write("lmt.toml", "[[collective]]\noperation = 3\nalgorithm = \"tree:2\"\n");
    let variables = [("LMT_COLLECTIVES", "spread:tree")];
    let load = |collectives| {
        let mut sources = folder.sources(&variables);
        sources.known.collectives = collectives;
        Configuration::load(&sources)
    };
    let refused = load(known().collectives).unwrap_err();
    let loaded = load(None).unwrap();
    assert!(loaded.collectives.is_empty());
    let failure = loaded.collective_failure.expect("it is kept");
    assert_eq!(failure, refused);
    let sentences: Vec<String> = failure.problems().iter().map(ToString::to_string).collect();
    assert_eq!(sentences.len(), 2, "{sentences:?}");
    assert!(sentences[0].contains("LMT_COLLECTIVES has `spread:tree`"), "{sentences:?}");
    assert!(sentences[1].starts_with(&format!("{}:2:13: ", path.display())), "{sentences:?}");
    // What is wrong with a calibration leaves that out, as ever.
    let calibration = "[calibration]\ncomplete = true\n[[collective]]\noperation = 3\nalgorithm = \"t\"\n";
    folder.write("lmt.toml", "");
    folder.write("calibration/this-machine.toml", calibration);
    let mut sources = folder.sources(&[]);
    sources.known.collectives = None;
    let loaded = Configuration::load(&sources).unwrap();
    assert_eq!(loaded.collective_failure, None);
    assert!(loaded.remarks.iter().any(|remark| remark.contains("left out")), "{:?}", loaded.remarks);
}
