use std::rc::Rc;

use super::*;

const TEAM_RANKS: u32 = 2;

fn team() -> Team {
    Team { rank: 0, size: TEAM_RANKS, domains: Rc::from([]), slot_bytes: 4096 }
}

fn call(bytes: u64) -> Call {
    Call { kind: Kind::Broadcast, bytes, ..empty_call(&team()) }
}

fn plan(bytes: u64) -> Plan {
    Plan { call: call(bytes), ..Plan::of_wrong(&team()) }
}

const ASKED: Asked = Asked { algorithm: None, is_listed: false, reduction: 0 };

#[test]
fn what_was_kept_is_found_by_all_that_it_depends_on() {
    let mut plans = Plans::default();
    let kept = plans.keep(ASKED, plan(8));
    assert!(plans.find(&call(8), ASKED).is_some_and(|found| Rc::ptr_eq(&found, &kept)));
    assert!(plans.find(&call(9), ASKED).is_none());
    for other in [
        Asked { algorithm: Some(Algorithm::Slots), ..ASKED },
        Asked { is_listed: true, ..ASKED },
        Asked { reduction: 1, ..ASKED },
    ] {
        assert!(plans.find(&call(8), other).is_none(), "{other:?}");
    }
    plans.forget();
    assert!(plans.find(&call(8), ASKED).is_none());
}

#[test]
fn those_used_longest_ago_are_forgotten() {
    let mut plans = Plans::default();
    for bytes in 0..KEPT as u64 {
        plans.keep(ASKED, plan(bytes));
    }
    assert!(plans.find(&call(0), ASKED).is_some());
    plans.keep(ASKED, plan(1000));
    assert!(plans.find(&call(0), ASKED).is_some(), "used a moment ago");
    assert!(plans.find(&call(1), ASKED).is_none(), "the one used longest ago");
}
