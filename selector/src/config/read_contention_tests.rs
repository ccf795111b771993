use std::path::Path;

use crate::config::{Known, Parsed, Problem, parse_file};
use crate::contention::{Gamma, KNL, MessageCost, POWER8, Parameters, Quadratic, write_contention};
use crate::rules::Authority;

fn parse(text: &str) -> Result<Parsed, Vec<Problem>> {
    parse_file(Path::new("c.toml"), text, Authority::User, &Known::default())
}

fn problem(text: &str) -> String {
    let problems = parse(text).unwrap_err();
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

fn measured() -> Parameters {
    Parameters {
        gamma: Gamma { measured: vec![1.0, 1.618_033_988_749_895].into(), fit: None },
        cpus: Some(2),
        message: Some(MessageCost { start_us: 0.21, byte_ns: 0.093 }),
        ..KNL.parameters.clone()
    }
}

#[test]
fn what_is_written_is_read_back() {
    let fitted = Parameters {
        gamma: Gamma {
            measured: vec![1.0, 2.5, 4.0].into(),
            fit: Some(Quadratic { squared: 0.2, linear: 1e-3 }),
        },
        ..measured()
    };
    for parameters in [measured(), fitted, POWER8.parameters.clone()] {
        let text = write_contention(&parameters);
        let parsed = parse(&text).unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
        assert_eq!(parsed.contention.map(|(read, _)| read), Some(parameters));
    }
}

#[test]
fn it_says_what_of_gamma_was_measured() {
    let of = |parameters: &Parameters| write_contention(parameters);
    assert!(of(&measured()).contains("measured for 1 to 2 readers at once; that is too few for a curve"));
    assert!(of(&KNL.parameters).contains("gamma_fit is the curve"));
}

#[test]
fn a_file_without_it_has_none() {
    assert!(parse("[calibration]\ncomplete = true\n").unwrap().contention.is_none());
}

#[test]
fn the_line_is_that_of_the_table() {
    let text = format!("[calibration]\ncomplete = true\n\n{}", write_contention(&KNL.parameters));
    let at = text.lines().position(|line| line == "[contention]").unwrap() as u32 + 1;
    assert_eq!(parse(&text).unwrap().contention.unwrap().1, at);
}

#[test]
fn what_is_wrong_is_named() {
    let text = write_contention(&measured());
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} in {text}");
        problem(&text.replace(from, to))
    };
    assert!(with("lock_us = 0.25\n", "").contains("no `lock_us`"));
    assert!(with("page_bytes = 4096\n", "").contains("no `page_bytes`"));
    assert!(with("page_bytes = 4096", "page_bytes = \"4 KiB\"").contains("`page_bytes` is a text"));
    assert!(with("page_bytes = 4096", "page_bytes = 0").contains("`page_bytes` is 0"));
    assert!(with("alpha_us = 1.43", "alpha_us = true").contains("`alpha_us` is true or false"));
    assert!(with("alpha_us = 1.43", "alpha_us = nan").contains("`alpha_us` is NaN"));
    assert!(with("alpha_us = 1.43", "alpha_us = -1.0").contains("`alpha_us` is -1"));
    assert!(with("alpha_us", "alhpa_us").contains("did you mean `alpha_us`?"));
    assert!(with("cpus = 2", "cpus = 0").contains("`cpus` is 0"));
    assert!(with("gamma = [1.0, ", "gamma = [\"one\", ").contains("`gamma` is a list"));
    assert!(with("gamma = [", "gamma_fit = [3.0, ").contains("has not two numbers"));
    assert!(problem("contention = 1\n").contains("not a table"));
}
