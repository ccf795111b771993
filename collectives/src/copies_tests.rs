use super::*;
use crate::explain::{Question, explain};
use crate::{Algorithm, Kind};
use lmt_core::selection::Source;
use lmt_selector::collectives::CollectiveRule;
use lmt_selector::configuration::Configuration;

fn copies(kind: Kind, algorithm: Algorithm, bytes: u64) -> Vec<Copies> {
    let source = Source::File { path: "lmt.toml".into(), line: 1 };
    let rule = CollectiveRule::new(kind.name(), &algorithm.to_string(), source);
    let configuration = Configuration { collectives: vec![rule], ..Configuration::default() };
    let explained = explain(&configuration, Question { kind, ranks: 4, bytes, single_copy: true });
    explained.expect("a rule that can be").copies
}

#[test]
fn of_each_direction_the_shortest_and_the_longest_are_told() {
    let (bytes, get, put) = (1 << 20, Direction::Get, Direction::Put);
    let of = |direction, least_bytes, most_bytes| Copies { direction, least_bytes, most_bytes };
    let direct = copies(Kind::Broadcast, Algorithm::DirectRead, bytes);
    assert_eq!(direct, [of(get, bytes, bytes)]);
    assert_eq!(direct[0].to_string(), "gets of 1048576 bytes");
    let both = copies(Kind::Broadcast, Algorithm::ScatterAllgather, bytes);
    assert_eq!(both, [of(put, bytes / 4, bytes / 4), of(get, bytes / 4, bytes / 4)]);
    let odd = copies(Kind::Broadcast, Algorithm::ScatterAllgather, bytes + 4096);
    assert_eq!(odd[1].to_string(), "gets of 262144 to 266240 bytes");
    assert_eq!(copies(Kind::Broadcast, Algorithm::Messages, bytes), []);
}
