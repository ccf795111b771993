use super::*;
use crate::base::cpu_set::CpuSet;
use crate::selection::ByOrder;
use crate::vocabulary::config::Config;

const ABLE: Abilities = Abilities { read: true, write: true, cooperate: true };

const READS: Abilities = Abilities { read: true, write: false, cooperate: false };

fn known(name: &'static str, ours: Abilities, copies_registered: bool) -> KnownMechanism {
    let standing = MechanismStatus { ours, theirs: Abilities::default(), reason: None };
    let models: &[Model] = &[Model::Both, Model::Put];
    KnownMechanism { copies_registered, ..KnownMechanism::new(name, models, standing) }
}

/// The way of a get or a put, and those behind it.
fn ways(names: Option<&[&str]>, direction: Direction) -> Vec<String> {
    let mechanisms = names.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    let config = Config { mechanisms, ..Config::default() };
    let nowhere = CpuSet::EMPTY;
    let mechanisms = [
        known("messages", ABLE, false),
        known("reader", READS, true),
        known("denied", Abilities::default(), true),
        known("copier", ABLE, true),
    ];
    let situation = Situation {
        here: &nowhere,
        there: &nowhere,
        processes: &[],
        mechanisms: &mechanisms,
        config: &config,
        is_connected: true,
        has_fast_box: true,
        is_one_sided: false,
    };
    // Even what is short goes in no cells.
    let explanation = OneSided::new(&situation, direction).explain(&ByOrder::default(), 1);
    let first = match explanation.taken {
        Taken::By { mechanism, model } => Some(format!("{mechanism}:{model}")),
        _ => None,
    };
    first.into_iter().chain(explanation.then).collect()
}

#[test]
fn who_may_copy_counts_and_not_which_models_there_are() {
    assert_eq!(ways(None, Direction::Get), ["reader:get", "copier:get"]);
    assert_eq!(ways(None, Direction::Put), ["copier:put"]);
}

#[test]
fn of_a_way_that_is_named_the_mechanism_counts() {
    let names = ["copier:both", "reader:put", "messages"];
    assert_eq!(ways(Some(&names), Direction::Get), ["copier:get", "reader:get"]);
    assert_eq!(ways(Some(&["reader"]), Direction::Put), [""; 0]);
}
