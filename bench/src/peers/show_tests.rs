use super::*;
use crate::output::tests::job;
use crate::peers::result::tests::size;

fn scene() -> Scene {
    let settings = Job { mechanisms: vec!["auto".into()], rotation_bytes: Some(1 << 20), ..job() };
    let rows = vec![Row::of(&size()).unwrap()];
    Scene { environment: Environment::record(&settings), settings, rows }
}

fn cards() -> Vec<PeerCard> {
    let card =
        |name: &str| PeerCard { name: name.into(), version: "1.0".into(), mpiexec: "/x/mpiexec".into() };
    vec![card("mpich"), card("openmpi"), card("intelmpi")]
}

#[test]
fn the_table_shows_everybody_and_the_ratios() {
    let (scene, cards) = (scene(), cards());
    let mut out = Vec::new();
    begin_table(&mut out, &scene.settings, &scene.environment, &cards, true).unwrap();
    table_row(&mut out, &scene.settings, &cards, &scene.rows[0]).unwrap();
    end_table(&mut out, &scene.rows).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("# lmt compare --peers: pingpong, in use, off cache\n"), "{text}");
    assert!(text.contains("# mpich: 1.0, /x/mpiexec\n"), "{text}");
    let mut later = Vec::new();
    begin_table(&mut later, &scene.settings, &scene.environment, &cards, false).unwrap();
    assert!(!String::from_utf8(later).unwrap().contains("kernel"));
    let line = text.lines().find(|line| line.trim_start().starts_with("64 KiB")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let expected = [
        "64",
        "KiB",
        "10",
        "4.000",
        "12.00",
        "-",
        "8.000",
        "0.500",
        "0.50..0.50",
        "intelmpi",
        "3.000",
        "0.500",
        "0.250",
        "both",
        "cma",
    ];
    assert_eq!(words, expected, "{text}");
    assert!(
        text.contains("ours/best 0.500, which is 2.00 times as fast; limit/ours 0.500; limit/best 0.250"),
        "{text}"
    );
    assert!(text.contains("# 7 messages of ours were checked"), "{text}");
}

#[test]
fn csv_has_a_line_for_each_contender() {
    let mut out = Vec::new();
    csv(&mut out, &[scene()]).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()), "{text}");
    assert_eq!(
        lines[4],
        "pingpong,2,true,true,65536,10,3,intelmpi,peer,8.0000,8.0000,44.0000,8192.000,0.5000,0.5000,0.5000,intelmpi,both,0.2500,cma"
    );
}

#[test]
fn means_need_every_size() {
    let row = scene().rows[0].clone();
    let without = Row { best_peer: None, ..row.clone() };
    assert_eq!(Means::of(&[row.clone(), row.clone()]).over_peer, Some(0.5));
    assert_eq!(Means::of(&[row, without]).over_peer, None);
}
