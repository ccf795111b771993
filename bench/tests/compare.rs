//! `lmt compare`: each way by itself, in both modes.

mod common;

use std::path::Path;
use std::process::Command;

use common::{lmt, outcome, text};

/// What works on a stock kernel, and must be compared wherever it does.
const STOCK: [&str; 6] = ["shm", "cma", "vmsplice", "writev", "knem-user", "ioat-software"];

/// What stands behind the first `start` in `text`, up to the next `end`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(found, _)| found)
}

/// How many messages of this mechanism were checked, according to the page; or
/// why it was left out.
fn fate(page: &str, name: &str) -> Result<u64, String> {
    let row = between(page, &format!("<th scope=\"row\">{name}</th><td>"), "</td>");
    let row = row.unwrap_or_else(|| panic!("{name} is missing in {page}"));
    if let Some(reason) = row.strip_prefix("left out: ") {
        return Err(reason
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&"));
    }
    let messages = between(row, "measured; ", " messages more were checked byte by byte");
    Ok(messages.unwrap_or_else(|| panic!("{name} was not checked: {row}")).parse().unwrap())
}

/// The counters of one endpoint: each path with the messages and bytes it has sent, and those
/// that it left to another.
type Counted = Vec<(String, [u64; 3])>;

/// What every endpoint has told (LMT_STATS).
fn counted(file: &Path) -> Vec<Counted> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut all: Vec<Counted> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, _, _, _, identity] if identity.starts_with("endpoint=") => all.push(Vec::new()),
            [_, _, _, path, messages, bytes, _, _, demotions, ..] if path != "path" => {
                let numbers = [messages, bytes, demotions].map(|number| number.parse().unwrap());
                all.last_mut().unwrap().push((path.to_owned(), numbers));
            }
            _ => {}
        }
    }
    all
}

/// Whether an endpoint has sent messages by this mechanism, and no other ones but the numbers
/// of 8 bytes that ranks tell each other.
fn went_by(endpoint: &Counted, name: &str) -> bool {
    let [own, others]: [Vec<_>; 2] =
        [true, false].map(|is_own| endpoint.iter().filter(|(path, _)| (path == name) == is_own).collect());
    let moved_all = matches!(own[..], [(_, [messages, _, 0])] if *messages > 100);
    moved_all && others.iter().all(|(path, [messages, bytes, _])| path == "eager" && *bytes <= 8 * messages)
}

#[test]
fn compare_shows_every_mechanism_by_itself_or_says_why_not() {
    let folder = std::env::temp_dir().join(format!("lmt-bench-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (report, statistics) = (folder.join("report.html"), folder.join("statistics"));
    let arguments = ["compare", "--output", path(&report), "--sizes", "1,4KiB,64KiB", "--repetitions", "3"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_lmt"));
    let output = outcome(command.args(arguments).env("LMT_STATS", &statistics), &arguments);
    let page = std::fs::read_to_string(&report);
    let (files, endpoints) = (std::fs::read_dir(&folder).unwrap().count(), counted(&statistics));
    std::fs::remove_dir_all(&folder).unwrap();
    let (table, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{error}");
    assert!(table.contains(&format!("report: {}", report.display())));
    // 1 B goes in cells alone.
    assert!(error.contains("--mechanism announced announces them all the same"), "{error}");
    let page = page.unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert_eq!(files, 2);
    let modes: Vec<&str> = page.split("<section id=").skip(1).collect();
    assert_eq!(modes.len(), 2);
    assert!(table.contains(", messages in use\n") && table.contains(", unmodified messages\n"), "{table}");
    let names = lmt::mechanism_names();
    assert!(STOCK.iter().all(|name| names.contains(name)), "{names:?}");
    for name in ["auto", "eager"].into_iter().chain(names) {
        for (mode, checked) in modes.iter().zip(table.split("# messages checked byte by byte: ").skip(1)) {
            let checked = checked.lines().next().unwrap();
            let measured = mode.contains(&format!("<th scope=\"col\">{name}, µs</th>"));
            match fate(mode, name) {
                Ok(messages) => {
                    assert!(measured && messages > 0, "{name}: {messages} messages checked");
                    assert!(
                        checked.split(", ").any(|part| part == format!("{name} {messages}")),
                        "{checked}"
                    );
                    assert!(!error.contains(&format!("{name} is left out")), "{error}");
                }
                Err(reason) => {
                    assert!(!measured && reason.contains(' '), "{name}: {reason}");
                    assert!(table.contains(&format!("\n# left out: {name}: {reason}\n")), "{table}");
                    assert!(error.contains(&format!("lmt: {name} is left out: {reason}\n")), "{error}");
                    if STOCK.contains(&name) {
                        assert_ne!(name, "shm", "it works everywhere: {reason}");
                        lmt_conformance::require::skipped(name, &reason);
                    }
                    continue;
                }
            }
            if name == "auto" {
                continue;
            }
            // By the page's own count, of the timed messages...
            let row = between(mode, &format!("<th scope=\"row\">{name}</th>"), "</tr>").unwrap();
            let moved = between(row, "</td><td>", " timed messages went by it").unwrap();
            let (own, all) = moved.split_once(" of ").unwrap();
            assert!(own == all && own != "0", "{name}: {moved}");
        }
        // ...and by the counters of both ranks' endpoints in both modes, of all messages.
        let is_mechanism = names_a_mechanism(name) && fate(modes[0], name).is_ok();
        let alone = endpoints.iter().filter(|endpoint| went_by(endpoint, name)).count();
        assert!(!is_mechanism || alone >= 4, "{name}: {alone} of {endpoints:?}");
    }
}

fn names_a_mechanism(name: &str) -> bool {
    lmt::mechanism_names().contains(&name)
}

#[test]
fn short_messages_are_said_to_take_no_mechanism() {
    let said = |arguments: &[&str]| {
        let all = [&["bench", "pingpong", "--repetitions", "1", "--iterations", "3", "--sizes"], arguments]
            .concat();
        let output = lmt(&all);
        assert!(output.status.success(), "{all:?}: {}", text(&output.stderr));
        text(&output.stderr).to_owned()
    };
    let named = said(&["64,2KiB", "--mechanism", "shm"]);
    assert!(named.contains("messages below 1 KiB, such as 64 B, go in cells"), "{named}");
    assert!(named.contains("announced:shm instead of shm announces them all the same"), "{named}");
    for fine in [&["64", "--mechanism", "announced:shm"][..], &["2KiB", "--mechanism", "shm"], &["64"]] {
        assert!(!said(fine).contains("go in cells"), "{fine:?}");
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
