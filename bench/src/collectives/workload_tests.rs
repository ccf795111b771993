use lmt_collectives::Kind;

use super::*;

#[test]
fn every_benchmark_is_found_by_its_name() {
    for definition in DEFINITIONS {
        let workload: Workload = definition.name.parse().unwrap();
        // The operation has taken this name.
        if definition.pattern != Pattern::Alltoall {
            assert_eq!(workload, Workload::Pattern(definition.pattern));
        }
    }
    for kind in Kind::ALL {
        assert_eq!(kind.name().parse(), Ok(Workload::Collective(kind)));
    }
    for access in Access::ALL {
        assert_eq!(access.name().parse(), Ok(Workload::Contention(access)));
    }
}

#[test]
fn an_unknown_one_is_said_with_what_was_meant() {
    let error = "alltoal".parse::<Workload>().unwrap_err();
    assert!(error.contains("did you mean 'alltoall'"), "{error}");
}

#[test]
fn ranks_are_told_by_name() {
    for work in [Work::Collective(Kind::ReduceScatter), Work::Contention(Access::AllToOne)] {
        let text = serde_json::to_string(&work).unwrap();
        assert_eq!(text, format!("\"{}\"", work.name()));
        assert_eq!(serde_json::from_str::<Work>(&text).unwrap(), work);
    }
    assert!(serde_json::from_str::<Work>("\"pingpong\"").is_err());
}
