use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
enum Said {
    Here(u32),
    Failed,
    Missing(String),
}

impl Word for Said {
    fn failure(&self) -> Option<&str> {
        match self {
            Self::Here(_) => None,
            Self::Failed => Some("failed"),
            Self::Missing(sentence) => Some(sentence),
        }
    }
}

/// A shell script for each rank, which finds its number in its first line.
struct Script(std::path::PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lmt-processes-{}-{name}", std::process::id()));
        std::fs::write(&path, format!("read rank\n{text}\n")).unwrap();
        Self(path)
    }

    fn start(&self, ranks: u32) -> Processes<Said> {
        let path = self.0.to_str().unwrap();
        Processes::start_program(Path::new("/bin/sh"), path, &(0..ranks).collect::<Vec<_>>(), |_| {}).unwrap()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What is heard until it is over.
fn until_error(group: &mut Processes<Said>) -> String {
    let begin = Instant::now();
    loop {
        match group.next_within(Duration::from_millis(20)) {
            Err(error) => return error.to_string(),
            Ok(_) => assert!(begin.elapsed() < Duration::from_secs(40), "it waits without end"),
        }
    }
}

#[test]
fn words_are_heard_and_told() {
    let script = Script::new("words", "echo '{\"Here\":'$rank'}'; read next; echo '{\"Here\":'$next'}'");
    let mut group = script.start(2);
    let mut heard = Vec::new();
    while heard.len() < 2 {
        heard.extend(group.next_within(Duration::from_secs(40)).unwrap());
    }
    heard.sort_by_key(|(rank, _)| *rank);
    assert_eq!(heard, [(0, Said::Here(0)), (1, Said::Here(1))]);
    group.tell(&7).unwrap();
    assert_eq!(group.next_within(Duration::from_secs(40)).unwrap().unwrap().1, Said::Here(7));
    group.end(Duration::from_secs(10));
}

#[test]
fn what_is_no_word_ends_it() {
    let script = Script::new("strange", "echo a remark; exec sleep 100");
    let mut group = script.start(1);
    let said = until_error(&mut group);
    assert!(said.contains("rank 0") && said.contains("\"a remark\"") && said.contains("killed"), "{said}");
}

#[test]
fn an_output_that_is_closed_is_waited_for_a_while_only() {
    let script = Script::new("closed", "exec >&-; exec sleep 100");
    let mut group = script.start(1);
    let said = until_error(&mut group);
    assert!(said.contains("closed its output"), "{said}");
}

#[test]
fn a_death_is_told_with_its_signal() {
    let script = Script::new("death", "kill -KILL $$");
    let mut group = script.start(1);
    let said = until_error(&mut group);
    assert!(said.contains("rank 0 ended unexpectedly") && said.contains("signal: 9"), "{said}");
}

#[test]
fn a_death_is_the_cause_of_anothers_failure() {
    // The one tells sooner that it failed than the other is dead.
    let script = Script::new(
        "cause",
        "if [ $rank = 0 ]; then echo '\"Failed\"'; exec sleep 100; fi; sleep 0.1; kill -KILL $$",
    );
    let mut group = script.start(2);
    let said = until_error(&mut group);
    assert!(said.contains("rank 1 ended unexpectedly"), "{said}");
    // Who gives up ends with status 1, which is no other cause.
    let script = Script::new("gives-up", "echo '\"Failed\"'; exit 1");
    let mut group = script.start(2);
    assert_eq!(group.next_within(Duration::from_secs(40)).unwrap().unwrap().1, Said::Failed);
}

/// Who misses a rank that gives up may say so before that one has said why.
#[test]
fn what_one_gives_up_for_is_told_not_that_it_is_missed() {
    let missed = r#"echo '{"Missing":"peer 1 has died or closed its endpoint; go on"}'; exit 1"#;
    let script = Script::new(
        "missed",
        &format!("if [ $rank = 0 ]; then {missed}; fi; sleep 0.1; echo '\"Failed\"'; exit 1"),
    );
    let mut group = script.start(2);
    assert_eq!(group.next_within(Duration::from_secs(40)).unwrap(), Some((1, Said::Failed)));
    // By these words it is known.
    let id = lmt::EndpointId::from_bytes([0; 16]);
    for sentence in [
        lmt::PeerError::Dead { id }.to_string(),
        lmt_collectives::GroupError::Died { rank: 1 }.to_string(),
        lmt::RegionError::NotRegistered.to_string(),
    ] {
        assert!(is_missing_another(&sentence), "{sentence}");
    }
    assert!(!is_missing_another(&lmt::RegionError::UsedUp.to_string()));
    // If nobody says why, that is all that is known.
    let script = Script::new("missing", missed);
    let mut group = script.start(1);
    assert!(matches!(group.next_within(Duration::from_secs(40)), Ok(Some((0, Said::Missing(_))))));
}

#[test]
fn ranks_that_are_silent_are_given_up() {
    let script = Script::new("silent", "echo '{\"Here\":1}'; kill -STOP $$; sleep 100");
    let mut group = script.start(1);
    group.silence = Duration::from_millis(700);
    assert!(group.next_within(Duration::from_secs(40)).unwrap().is_some());
    // Whoever does not read does not stop the one who tells.
    group.tell(&"x".repeat(1 << 20)).unwrap();
    let said = until_error(&mut group);
    assert!(said.contains("no answer from the ranks") && said.contains("is stopped"), "{said}");
}

#[test]
fn nothing_is_said_for_a_while_without_an_error() {
    let script = Script::new("while", "exec sleep 100");
    let mut group = script.start(1);
    assert_eq!(group.next_within(Duration::from_millis(50)).unwrap(), None);
}
