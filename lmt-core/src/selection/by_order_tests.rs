use super::*;
use crate::base::cpu_set::CpuSet;
use crate::mechanism::MechanismStatus;
use crate::vocabulary::config::Config;
use crate::vocabulary::peer_facts::{Abilities, Unavailable};

const ABLE: Abilities = Abilities { read: true, write: true, cooperate: true };

fn known(name: &'static str, models: &'static [Model], refusal: Option<i32>) -> KnownMechanism {
    let standing = match refusal {
        None => MechanismStatus { ours: ABLE, theirs: ABLE, reason: None },
        Some(errno) => {
            let reason = Unavailable { errno, sentence: format!("{name} was refused") };
            MechanismStatus { reason: Some(reason), ..MechanismStatus::default() }
        }
    };
    KnownMechanism::new(name, models, standing)
}

fn explain(config: &Config, bytes: u64) -> Explanation {
    let mechanisms = [
        known("denied", &[Model::Get], Some(libc::EPERM)),
        known("a-one", &[Model::Get, Model::Put], None),
        known("b", &[Model::Cooperative], None),
    ];
    let nowhere = CpuSet::EMPTY;
    let situation = Situation {
        here: &nowhere,
        there: &nowhere,
        processes: &[],
        mechanisms: &mechanisms,
        config,
        is_connected: true,
        has_fast_box: true,
        is_one_sided: false,
    };
    ByOrder::default().explain(&situation, &Message::of_bytes(bytes))
}

#[test]
fn the_first_that_works_is_taken_and_the_others_say_why_not() {
    let explanation = explain(&Config::default(), 1 << 20);
    assert_eq!(explanation.taken, Taken::By { mechanism: "a-one".into(), model: Model::Get });
    assert_eq!(explanation.then, ["a-one:put", "b:cooperative"]);
    let why: Vec<(&str, Why)> = explanation.not_taken.iter().map(|n| (n.mechanism.as_str(), n.why)).collect();
    assert_eq!(why, [("denied", Why::Unavailable), ("b", Why::Later)]);
    let text = explanation.to_string();
    assert!(text.contains("not   denied  denied was refused (EPERM: Operation not permitted)"), "{text}");
}

#[test]
fn short_messages_are_eager_and_names_restrict() {
    let longest = Config::default().eager_max_bytes;
    assert_eq!(explain(&Config::default(), longest).taken, Taken::Eager);
    let config = Config { mechanisms: Some(vec!["b".into(), "a:put".into()]), ..Config::default() };
    let explanation = explain(&config, longest + 1);
    assert_eq!(explanation.taken, Taken::By { mechanism: "b".into(), model: Model::Cooperative });
    assert_eq!(explanation.then, ["a-one:put"]);
}
