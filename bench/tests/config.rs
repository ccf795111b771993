//! `lmt config`, the files in configs/, and the page that documents the keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lmt_core::config::{Config, KEYS};
use lmt_core::selection::PathName;
use lmt_selector::config::{all_keys, check_file, document, parse_file};
use lmt_selector::configuration::SelectionSettings;
use lmt_selector::rules::{Authority, Take};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `lmt config` with nothing set but `variables`.
fn lmt(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
    command.env_clear().env("PATH", "/usr/bin:/bin").arg("config").args(arguments);
    command.envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A folder of files that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-config-command-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ready_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["configs", "configs/machines"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        files.extend(
            entries.map(|entry| entry.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "toml")),
        );
    }
    files
}

/// Every file in configs/ is without problems, so that all it names exists, and
/// says at its head for whom it is and where its numbers come from.
#[test]
fn the_ready_files_are_right_and_say_what_they_are() {
    let known = lmt::configuration::sources().known;
    let files = ready_files();
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        check_file(&file, &known).unwrap_or_else(|failure| panic!("{}", failure.render()));
        let text = fs::read_to_string(&file).unwrap();
        let head: String = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(head.contains("Source:") || head.contains("lmt tune"), "{} names no source", file.display());
    }
}

/// default.toml sets every key of [endpoint] and [selection], to what the code
/// has. Its rules name the same mechanisms; one that they do not name stands where the list
/// has it.
#[test]
fn the_default_file_is_what_the_code_has() {
    let known = lmt::configuration::sources().known;
    let text = fs::read_to_string(root().join("configs/default.toml")).unwrap();
    assert_eq!(text, lmt::configuration::DEFAULTS);
    let parsed = parse_file(Path::new("default.toml"), &text, Authority::Default, &known).unwrap();
    let config = Config::default();
    for key in KEYS {
        let set = parsed.endpoint.iter().find(|(name, ..)| *name == key.name);
        assert_eq!(set.map(|(_, value, _)| value.clone()), config.get(key.name), "{}", key.name);
    }
    let selection = SelectionSettings::default();
    assert_eq!(parsed.dma_min.map(|(setting, _)| setting), Some(selection.dma_min));
    assert_eq!(parsed.max_readers.map(|(readers, _)| readers), Some(selection.max_readers));
    let section = all_keys(&known).into_iter().find(|section| section.title == "[selection]").unwrap();
    assert_eq!(parsed.single_copy.map(|(speed, _)| speed), Some(selection.single_copy));
    assert_eq!(section.keys.len(), 3, "a new key of [selection] belongs into default.toml and this test");
    let last = parsed.layer.rules.last().unwrap();
    // What holds on some machines only stands before it and is an exception.
    let everywhere: Vec<_> = parsed.layer.rules.iter().filter(|rule| rule.single_copy.is_none()).collect();
    let ends = everywhere.iter().map(|rule| rule.up_to);
    let begins = everywhere.iter().skip(1).map(|rule| rule.above).chain([None]);
    assert!(ends.eq(begins), "each rule begins where the one before ends, and the last fits all else");
    assert_eq!(everywhere[0].above, None);
    let Take::Ways(ways) = &last.take else { panic!("{last:?}") };
    let mechanisms = |ways: &[PathName]| -> Vec<String> {
        let whole = ways.iter().filter(|way| way.model.is_none());
        whole.map(ToString::to_string).collect()
    };
    let mut all = mechanisms(ways);
    all.sort_unstable();
    assert!(all.iter().all(|name| lmt::mechanism_names().contains(&name.as_str())), "{all:?}");
    for rule in &parsed.layer.rules {
        let Take::Ways(ways) = &rule.take else { panic!("{rule:?}") };
        let mut named = mechanisms(ways);
        named.sort_unstable();
        assert_eq!(named, all, "line {}", rule.line);
    }
}

/// The defaults of mechanisms' keys are within their bounds, and every key says
/// what it does and why.
#[test]
fn every_key_of_a_mechanism_is_described_and_has_a_default_that_works() {
    let known = lmt::configuration::sources().known;
    let mut keys = 0;
    for facts in &known.mechanisms {
        for (key, default) in facts.keys.iter().zip(&facts.defaults) {
            key.check(default).unwrap_or_else(|rule| panic!("{} {} must be {rule}", facts.name, key.name));
            keys += 1;
        }
    }
    assert!(keys >= 10);
    for section in all_keys(&known) {
        for entry in section.keys {
            let sentences = [entry.meaning, entry.reason];
            assert!(
                sentences.iter().all(|s| !s.is_empty() && !s.ends_with('.')),
                "{} {}",
                section.title,
                entry.name
            );
        }
    }
}

#[test]
fn the_page_has_what_the_command_prints() {
    let page = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let (_, rest) = page.split_once("<!-- generated: lmt config --document -->\n").unwrap();
    let (generated, _) = rest.split_once("<!-- end of what is generated -->").unwrap();
    let printed = lmt(&["--document"], &[]);
    assert!(printed.status.success());
    assert_eq!(
        generated,
        text(&printed.stdout),
        "run `lmt config --document` and put its output into docs/configuration.md"
    );
    assert_eq!(text(&printed.stdout), document(&lmt::configuration::sources().known));
}

/// The examples of the page: what is indented, from a line with brackets on.
#[test]
fn the_examples_of_the_page_are_right() {
    let page = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let (_, rules) = page.split_once("## Rules\n").unwrap();
    let (examples, _) = rules.split_once("Everything that could not mean").unwrap();
    let example: String =
        examples.lines().filter_map(|line| line.strip_prefix("    ")).collect::<Vec<_>>().join("\n");
    let known = lmt::configuration::sources().known;
    let parsed = parse_file(Path::new("example"), &example, Authority::User, &known);
    let parsed = parsed.unwrap_or_else(|problems| panic!("{}", problems[0].render()));
    assert_eq!((parsed.layer.rules.len(), parsed.layer.ranges.len()), (4, 1));
    let (_, collectives) = page.split_once("## Collective operations\n").unwrap();
    let (collectives, _) = collectives.split_once("`operation` is a name").unwrap();
    let example =
        collectives.lines().filter_map(|line| line.strip_prefix("    ")).collect::<Vec<_>>().join("\n");
    let checked = known.clone().with_collectives(lmt_collectives::check_rule);
    let parsed = parse_file(Path::new("example"), &example, Authority::User, &checked);
    assert_eq!(parsed.unwrap_or_else(|problems| panic!("{}", problems[0].render())).collectives.len(), 2);
    // The report that it shows is the one that there is.
    let (_, report) = page.split_once("shown at once:\n\n").unwrap();
    let report = report.lines().map_while(|line| line.strip_prefix("    ")).collect::<Vec<_>>().join("\n");
    let wrong = "[[rule]]\ntake = \"eager\"\nup_to = \"16 kB\"\n";
    let problems = parse_file(Path::new("lmt.toml"), wrong, Authority::User, &known).unwrap_err();
    assert_eq!(problems[0].render(), report);
}

#[test]
fn the_command_says_where_each_value_comes_from() {
    let folder = Folder::new("effective");
    let file = folder.write("lmt.toml", "[endpoint]\nspins = 7\n[mechanism.shm]\nbuffers = 3\nup_to = \"1 GiB\"\n[[rule]]\nabove = \"8 KiB\"\ntake = [\"shm\"]\n");
    let variables =
        [("LMT_CONFIG", file.as_str()), ("LMT_EAGER_MAX", "8 KiB"), ("LMT_SHM_BUFFER_BYTES", "8192")];
    let output = lmt(&[], &variables);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let line = |key: &str| {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        shown.lines().find(|line| line.starts_with(key)).map(words).unwrap_or_default()
    };
    assert_eq!(line("spins "), format!("spins = 7 # {file}:2"));
    assert_eq!(line("eager_max_bytes"), "eager_max_bytes = \"8 KiB\" # LMT_EAGER_MAX in the environment");
    assert_eq!(line("buffers "), format!("buffers = 3 # {file}:4"));
    assert_eq!(line("buffer_bytes"), "buffer_bytes = \"8 KiB\" # LMT_SHM_BUFFER_BYTES in the environment");
    assert_eq!(line("yields"), "yields = 1000 # the built-in default");
    assert!(shown.contains("above 8 KiB: shm") && shown.contains("shm only up to 1 GiB"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_slice(&lmt(&["--format", "json"], &variables).stdout).unwrap();
    assert_eq!(json["tables"]["endpoint"]["spins"]["value"], "7");
    assert_eq!(json["tables"]["endpoint"]["spins"]["source"]["file"]["line"], 2);
    assert_eq!(json["layers"][0]["rules"][0]["line"], 6);
    assert_eq!(json["layers"][1]["authority"], "built in");
}

/// The lines behind `#` that could be taken out of the comment.
#[test]
fn the_example_of_the_default_file_is_right() {
    let (_, example) = lmt::configuration::DEFAULTS.split_once("#   [[collective]]").unwrap();
    let lines = example.lines().map(|line| line.trim_start_matches('#'));
    let example = format!("[[collective]]\n{}", lines.collect::<Vec<_>>().join("\n"));
    let known = lmt::configuration::sources().known.with_collectives(lmt_collectives::check_rule);
    let parsed = parse_file(Path::new("example"), &example, Authority::User, &known);
    assert_eq!(parsed.unwrap_or_else(|problems| panic!("{}", problems[0].render())).collectives.len(), 1);
}

#[test]
fn rules_of_collective_operations_are_shown_and_checked() {
    let folder = Folder::new("collectives");
    let rule = "[[collective]]\noperation = \"bcast\"\nup_to = \"1 MiB\"\nalgorithm = \"knomial:2\"\n";
    let file = folder.write("lmt.toml", rule);
    let variables = [("LMT_CONFIG", file.as_str()), ("LMT_COLLECTIVES", "gather=messages")];
    let output = lmt(&[], &variables);
    let shown = text(&output.stdout);
    let lines: Vec<&str> =
        shown.lines().skip_while(|line| !line.starts_with("Rules of collective")).collect();
    assert_eq!(lines[1], "  gather: messages  # LMT_COLLECTIVES in the environment", "{shown}");
    assert_eq!(lines[2], format!("  bcast up to 1 MiB: knomial:2  # {file}:1"), "{shown}");
    assert!(!shown.contains("Note:"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_slice(&lmt(&["--format", "json"], &variables).stdout).unwrap();
    assert_eq!(json["collectives"][1]["up_to"], 1 << 20);
    assert_eq!(json["collectives"][0]["from"], "LMT_COLLECTIVES in the environment");
    let wrong = folder.write("wrong.toml", &rule.replace("knomial:2", "pairwise"));
    let output = lmt(&["--check", &wrong], &[]);
    assert_eq!(output.status.code(), Some(1));
    let report = text(&output.stderr);
    assert!(report.contains("pairwise does not do bcast") && report.contains("wrong.toml:4:13"), "{report}");
}

#[test]
fn checking_a_wrong_file_shows_all_and_ends_with_1() {
    let folder = Folder::new("check");
    let wrong = folder.write("wrong.toml", "[endpoint]\nspin = 7\nyields = \"1 KiB\"\n");
    let right = folder.write("right.toml", "[endpoint]\nspins = 7\n");
    let missing = folder.0.join("missing.toml");
    let output = lmt(&["--check", &wrong, &right, missing.to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), format!("{right}: a configuration without problems\n"));
    let report = text(&output.stderr);
    for part in
        ["2 | spin = 7", "^^^^ unknown key", "did you mean `spins`?", "wrong.toml:3:10", "missing.toml"]
    {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
    assert!(report.ends_with("lmt: there are 3 problems; correct them as shown above\n"), "{report}");
    let output = lmt(&["--check", &right], &[]);
    assert_eq!(output.status.code(), Some(0));
    // What is configured cannot be shown when a file is wrong.
    let output = lmt(&[], &[("LMT_CONFIG", &wrong)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("2 | spin = 7"), "{}", text(&output.stderr));
}

#[test]
fn mistakes_on_the_command_line_end_with_2() {
    for arguments in
        [&["--format", "yaml"][..], &["--check"], &["--document", "--format", "json"], &["file.toml"]]
    {
        let output = lmt(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
    }
}
