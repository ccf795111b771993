//! Whose word counts between real processes, with two files of the user's, a
//! calibration, the environment and calls.

mod common;

use std::path::{Path, PathBuf};

use lmt::config_key::Value;
use lmt::selection::{Explanation, Source as Origin, Taken};
use lmt::{Config, Endpoint, Source, TagMatch};
use lmt_conformance::group::{Group, Test};
use lmt_conformance::test_name;

const KIB: u64 = 1 << 10;

const FIRST: &str = "[[rule]]
above = \"2 KiB\"
up_to = \"8 KiB\"
take = [\"writev\", \"shm\"]
max_readers = 3

[mechanism.vmsplice]
up_to = \"128 KiB\"
";

const SECOND: &str = "[endpoint]
mechanisms = [\"vmsplice\", \"shm\", \"writev\"]

[selection]
max_readers = 5
";

const CALIBRATION: &str = "[calibration]
complete = true

[endpoint]
eager_max_bytes = \"16 KiB\"

[[rule]]
take = [\"writev\"]
max_readers = 7
";

struct Files {
    first: PathBuf,
    second: PathBuf,
    calibration: PathBuf,
}

impl Files {
    /// Every rank writes them, so they are put in their places in one step.
    fn write(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authority").join(test.replace("::", "-"));
        std::fs::create_dir_all(&folder).expect("the folder of the tests can be written");
        let write = |name: &str, text: &str| {
            let part = folder.join(format!("{name}-part-{}", std::process::id()));
            let path = folder.join(name);
            std::fs::write(&part, text)
                .and_then(|()| std::fs::rename(&part, &path))
                .expect("it can be written");
            path
        };
        Self {
            first: write("first.toml", FIRST),
            second: write("second.toml", SECOND),
            calibration: write("calibration.toml", CALIBRATION),
        }
    }

    fn variable(&self) -> String {
        let all = [&self.first, &self.calibration, &self.second];
        all.map(|path| path.to_str().expect("a plain path")).join(":")
    }

    fn test(&self, name: &str) -> Test {
        // What the user of this machine has set plays no part: an empty variable
        // is one that is not set.
        let test = Test::new(name, 2).time_limit(common::LIMIT).env("LMT_CONFIG", &self.variable());
        ["LMT_MECHANISM", "LMT_EAGER_MAX", "LMT_MAX_READERS"]
            .into_iter()
            .fold(test, |test, v| test.env(v, ""))
    }
}

/// Connects the two and explains messages of these lengths on rank 0.
fn explain(group: &Group, endpoint: &Endpoint, lengths: &[u64]) -> Vec<Explanation> {
    let peer = endpoint.insert_peer(&group.address(1 - group.rank())).expect("a peer");
    if group.rank() == 0 {
        endpoint.send(peer, 9, &[]).expect("sent");
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(9), &mut []).expect("received");
    } else {
        endpoint.receive(Source::Peer(peer), TagMatch::exactly(9), &mut []).expect("received");
        endpoint.send(peer, 9, &[]).expect("sent");
    }
    let all = lengths.iter().map(|bytes| endpoint.explain(peer, *bytes).expect("known")).collect();
    group.barrier();
    all
}

fn taken(explanation: &Explanation) -> &str {
    match &explanation.taken {
        Taken::By { mechanism, .. } => mechanism,
        Taken::Eager => "eager",
        other => panic!("nothing is taken: {other:?}"),
    }
}

fn notes(explanation: &Explanation, part: &str) -> bool {
    explanation.notes.iter().any(|note| note.contains(part))
}

/// shm, vmsplice and writev work wherever processes are of one user.
#[test]
fn files_in_their_order() {
    let files = Files::write(test_name!());
    files.test(test_name!()).run(|group| {
        let endpoint = Endpoint::builder().id(group.id().member(group.rank())).build().expect("made");
        let explained = explain(group, &endpoint, &[2 * KIB, 2 * KIB + 1, 8 * KIB + 1, 128 * KIB + 1]);
        let path = |path: &Path| path.display().to_string();
        let [short, by_rule, by_name, long] = &explained[..] else { panic!("four were asked for") };
        // The calibration's cells end where the rule of the first file begins.
        assert_eq!(taken(short), "eager", "{short}");
        let calibration = Origin::Calibration { path: path(&files.calibration), line: 5 };
        assert_eq!(short.source, calibration);
        assert!(notes(short, "cells end at 2 KiB and not at 16 KiB"), "{short}");
        // The rule of the first file goes before the names of the second.
        assert_eq!(taken(by_rule), "writev", "{by_rule}");
        assert_eq!(by_rule.source, Origin::File { path: path(&files.first), line: 1 });
        assert!(notes(by_rule, "at most 3 other processes"), "{by_rule}");
        assert!(notes(by_rule, "only what `mechanisms` names is used"), "{by_rule}");
        // They go before the calibration's rule; only named ones are tried.
        assert_eq!(taken(by_name), "vmsplice", "{by_name}");
        assert_eq!(by_name.source, Origin::File { path: path(&files.second), line: 2 });
        assert!(notes(by_name, "at most 5 other processes"), "{by_name}");
        assert_eq!(by_name.then.len(), 2, "{by_name}");
        // The first file bounds what the second one names.
        assert_eq!(taken(long), "shm", "{long}");
    });
}

#[test]
fn the_environment_and_calls_before_files() {
    let files = Files::write(test_name!());
    let test = files.test(test_name!()).env("LMT_EAGER_MAX", "4 KiB").env("LMT_MAX_READERS", "2");
    test.env("LMT_QUOTA", "8 KiB").run(|group| {
        // The names are those that a file has already, in its order: the call
        // counts all the same.
        let builder = Endpoint::builder().id(group.id().member(group.rank()));
        let builder = builder.config(Config { spins: 7, ..Config::default() });
        let builder = builder.mechanisms(&["vmsplice", "shm", "writev"]);
        let builder = builder.set("yields", Value::Number(1000)).expect("a key");
        let endpoint = builder.build().expect("made");
        assert_eq!((endpoint.config().spins, endpoint.config().quota_bytes), (7, 8 * KIB));
        let explained = explain(group, &endpoint, &[4 * KIB, 4 * KIB + 1]);
        assert_eq!(taken(&explained[0]), "eager", "{}", explained[0]);
        let variable = "LMT_EAGER_MAX".to_owned();
        assert_eq!(explained[0].source, Origin::Environment { variable });
        assert_eq!(taken(&explained[1]), "vmsplice", "{}", explained[1]);
        assert_eq!(explained[1].source, Origin::Call);
        let cap = "at most 2 other processes read this one at once (LMT_MAX_READERS in the environment)";
        assert!(notes(&explained[1], cap), "{}", explained[1]);
    });
}
