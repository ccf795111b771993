use super::*;
use crate::apps::is::Class;
use crate::apps::job::Problem;
use crate::memory::Memory;

fn job(mechanisms: &[&str], algorithms: &[&str]) -> AppJob {
    AppJob {
        problem: Problem::Is(Class::S),
        mechanisms: mechanisms.iter().map(|&name| name.to_owned()).collect(),
        algorithms: algorithms.iter().map(|&name| name.to_owned()).collect(),
        ranks: 2,
        repetitions: 3,
        buffers: Memory::Private,
        cpus: Vec::new(),
        fault: false,
    }
}

fn outcome(turn: usize, seconds: f64, communication_seconds: f64) -> Outcome {
    let algorithm = "messages".to_owned();
    Outcome { turn, algorithm, seconds, communication_seconds, checks: 50, verified: true }
}

/// The second mechanism is the base, since it is shm; the pairs' ratios count.
#[test]
fn others_are_compared_with_shm() {
    let job = job(&["cma", "shm"], &["auto"]);
    let times = [(0, 1.0, 0.5), (1, 1.5, 1.0), (0, 2.0, 1.0), (1, 3.0, 2.0), (0, 4.0, 2.0), (1, 4.0, 2.0)];
    let outcomes = times.map(|(turn, seconds, communication)| outcome(turn, seconds, communication));
    let shown = Shown::new(&job, &outcomes);
    assert_eq!(shown.base, "shm by auto");
    let [cma, shm] = &shown.rows[..] else { panic!("{:?}", shown.rows) };
    assert_eq!((cma.seconds_median, cma.seconds_min, cma.seconds_max), (2.0, 1.0, 4.0));
    assert_eq!((cma.speedup_percent, cma.communication_speedup_percent), (50.0, 100.0));
    assert_eq!((cma.communication_percent, shm.speedup_percent), (50.0, 0.0));
    // 65536 keys, ten times, in 2 s.
    assert!((cma.mop_per_s - 0.32768).abs() < 1e-9);
    assert_eq!(cma.repetitions, 3);
}

#[test]
fn a_wrong_run_shows_and_turns_without_runs_do_not() {
    let job = job(&["cma"], &["auto", "bruck"]);
    let mut outcomes = [outcome(0, 1.0, 0.5), outcome(0, 1.0, 0.5)];
    outcomes[0].verified = false;
    let shown = Shown::new(&job, &outcomes);
    assert_eq!(shown.rows.len(), 1);
    let environment = Environment::of(&[], "memory".to_owned());
    let table = shown.written(Format::Table, &environment).unwrap();
    assert!(table.contains("WRONG") && !table.contains("all right"), "{table}");
    let csv = shown.written(Format::Csv, &environment).unwrap();
    let columns = |line: &str| line.split(',').count();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(columns(lines[0]), columns(lines[1]));
    assert!(lines[1].ends_with(",50,false"), "{csv}");
    let json: serde_json::Value =
        serde_json::from_str(&shown.written(Format::Json, &environment).unwrap()).unwrap();
    assert_eq!(json["rows"][0]["algorithm"], "messages");
    assert_eq!(json["settings"]["problem"]["is"], "S");
}
