use lmt_selector::contention::{Gamma, KNL};

use super::*;

fn findings() -> Findings {
    let throughput = |(readers, bytes): (u32, u64)| {
        let relative = f64::from(readers).sqrt();
        Throughput { readers, bytes, us: 10.0, mb_per_s: 1000.0 * relative, relative }
    };
    let cases = [1, 2, 4].into_iter().flat_map(|readers| [4096, 1 << 20].map(|bytes| (readers, bytes)));
    let gamma = Gamma { measured: vec![1.0, 1.5].into(), fit: None };
    Findings {
        cpus: vec![0, 1],
        date: "2026-11-22".into(),
        parameters: Parameters { gamma, cpus: Some(2), ..KNL.parameters.clone() },
        pinned: vec![Pinned { readers: 1, pages: 16, us: 5.0 }],
        throughput: cases.map(throughput).collect(),
    }
}

#[test]
fn readers_that_share_cpus_are_called_so() {
    let table = findings().table();
    for part in
        ["1 reader", "2 readers", "4 on 2 CPUs", "2000 (2.00)", "gamma(2) = 1.50; no curve is fitted to 2"]
    {
        assert!(table.contains(part), "{part} in {table}");
    }
    let svg = findings().svg().unwrap();
    assert!(svg.contains("4 on 2 CPUs") && svg.contains("aria-label") && svg.starts_with("<svg"), "{svg}");
    assert_eq!(svg.matches("<svg").count(), 1);
}

#[test]
fn programs_get_all_of_it() {
    let csv = findings().csv();
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.contains("\n2,2,4096,10.0000,1414.2,1.4142\n"), "{csv}");
    let json: Value = serde_json::from_str(&findings().json().unwrap()).unwrap();
    assert_eq!(json["parameters"]["gamma"][1], 1.5);
    assert_eq!(json["pinned"][0]["pages"], 16);
    assert_eq!(json["throughput"].as_array().unwrap().len(), 6);
}

#[test]
fn nothing_measured_is_nothing_to_draw() {
    assert!(Findings { throughput: Vec::new(), ..findings() }.svg().is_err());
}
