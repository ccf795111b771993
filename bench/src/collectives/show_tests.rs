use lmt_collectives::Kind;

use super::super::access::Access;
use super::super::result::Times;
use super::*;
use crate::environment::buffers;
use crate::memory::Memory;

fn plan(work: Work, contenders: Vec<Turns>) -> Plan {
    Plan {
        work,
        contenders,
        sizes: vec![65536],
        ranks: 2,
        iterations: None,
        repetitions: 3,
        in_use: false,
        buffers: Memory::Private,
        rotation_bytes: None,
        verify: true,
        cpus: vec![0, 1],
    }
}

fn row(times: &[(&str, bool, f64)], auto: Option<(&str, &str)>) -> Row {
    let times: Vec<Times> = times
        .iter()
        .map(|&(name, is_peer, usec)| Times { name: name.into(), is_peer, usec: vec![usec; 3] })
        .collect();
    let auto = auto.map(|(algorithm, reason)| (algorithm.to_owned(), reason.to_owned()));
    Row::of(65536, 100, &times.iter().collect::<Vec<_>>(), auto, 2).unwrap()
}

fn collective() -> (Plan, Vec<Row>) {
    let names = ["auto", "slots"].map(|name| Turns::Algorithm(name.into()));
    let times = [("auto", false, 8.0), ("slots", false, 2.0), ("mpich", true, 4.0)];
    let plan = plan(Work::Collective(Kind::Broadcast), names.to_vec());
    (plan, vec![row(&times, Some(("messages", "why")))])
}

fn accesses() -> (Plan, Vec<Row>) {
    let plan = plan(
        Work::Contention(Access::OneToAll),
        Access::OneToAll.cases(2).into_iter().map(Turns::Reach).collect(),
    );
    let times = [("same read 1", false, 8.0), ("same read 2", false, 10.0)];
    (plan, vec![row(&times, None)])
}

fn table((plan, rows): &(Plan, Vec<Row>)) -> String {
    let mut out = Vec::new();
    let environment =
        Environment::of(&plan.cpus, buffers(plan.buffers, plan.in_use, plan.rotation_bytes, plan.ranks));
    begin_table(&mut out, plan, &environment, &[]).unwrap();
    rows.iter().for_each(|row| table_rows(&mut out, plan, row).unwrap());
    end_table(&mut out, plan, rows).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn tables_say_what_was_chosen_and_what_is_fastest() {
    let text = table(&collective());
    for part in [
        "# lmt bench bcast, 2 ranks",
        "auto (messages) ",
        "slots * ",
        " 2.000 ",
        "# auto / best peer: geometric mean over 1 sizes 2.000, which is 0.50 times as fast",
        "# the fastest of ours at each size / best peer: geometric mean over 1 sizes 0.500",
        "# 2 calls of ours were checked",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn throughputs_are_of_all_together_and_by_that_of_one() {
    let text = table(&accesses());
    let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
    // Twice 65536 bytes in 10 us, and in 8 us once.
    assert_eq!(last[8..10], ["13107", "1.600"], "{text}");
}

#[test]
fn csv_has_as_many_fields_in_each_line() {
    for (plan, rows) in [collective(), accesses()] {
        let environment =
            Environment::of(&plan.cpus, buffers(plan.buffers, plan.in_use, plan.rotation_bytes, plan.ranks));
        let findings = Findings { environment, settings: plan, peers: Vec::new(), rows };
        let mut out = Vec::new();
        csv(&mut out, &findings).unwrap();
        let text = String::from_utf8(out).unwrap();
        let fields = |line: &str| line.split(',').count();
        let header = fields(text.lines().next().unwrap());
        assert!(text.lines().count() > 2 && text.lines().all(|line| fields(line) == header), "{text}");
        serde_json::to_string(&findings).unwrap();
    }
}
