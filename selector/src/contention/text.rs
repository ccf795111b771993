//! Figures as a file has them.

use std::fmt::Write as _;

use super::{Gamma, Parameters};

/// The text of a table `[contention]`: what
/// [`parse_file`](crate::config::parse_file) reads back as the same figures.
///
/// ```
/// use lmt_selector::contention::{KNL, write_contention};
///
/// let text = write_contention(&KNL.parameters);
/// assert!(text.contains("alpha_us = 1.43\n") && text.contains("gamma_fit = [0.11, 1.6]\n"));
/// ```
pub fn write_contention(parameters: &Parameters) -> String {
    let Parameters { alpha_us, byte_ns, lock_us, page_bytes, line_us, copy_ns, combine_ns, .. } = parameters;
    let mut text = String::new();
    for sentence in sentences(&parameters.gamma) {
        line(&mut text, format_args!("# {sentence}"));
    }
    line(&mut text, format_args!("[contention]"));
    let figures = [
        ("alpha_us", alpha_us),
        ("byte_ns", byte_ns),
        ("lock_us", lock_us),
        ("line_us", line_us),
        ("copy_ns", copy_ns),
        ("combine_ns", combine_ns),
    ];
    for (key, figure) in figures {
        line(&mut text, format_args!("{key} = {figure:?}"));
    }
    line(&mut text, format_args!("page_bytes = {page_bytes}"));
    if let Some(message) = parameters.message {
        line(&mut text, format_args!("message_us = {:?}", message.start_us));
        line(&mut text, format_args!("message_byte_ns = {:?}", message.byte_ns));
    }
    if let Some(cpus) = parameters.cpus {
        line(&mut text, format_args!("cpus = {cpus}"));
    }
    if !parameters.gamma.measured.is_empty() {
        line(&mut text, format_args!("gamma = {:?}", parameters.gamma.measured));
    }
    if let Some(fit) = parameters.gamma.fit {
        line(&mut text, format_args!("gamma_fit = [{:?}, {:?}]", fit.squared, fit.linear));
    }
    text
}

/// What is known of gamma, in sentences for people.
pub(super) fn sentences(gamma: &Gamma) -> Vec<String> {
    let formula =
        "What it costs to reach into another process: alpha + n beta + l gamma(c) ceil(n / page_bytes).";
    let known = match (gamma.fit, gamma.measured.len()) {
        (Some(_), _) => "gamma_fit is the curve a2 c^2 + a1 c that comes nearest to gamma.".to_owned(),
        (None, 0 | 1) => "gamma was measured for one reader alone; no curve was fitted.".to_owned(),
        (None, points) => format!(
            "gamma was measured for 1 to {points} readers at once; that is too few for a curve, and none was fitted."
        ),
    };
    vec![formula.to_owned(), known]
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "{content}");
}
