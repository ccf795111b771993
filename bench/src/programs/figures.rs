//! How figures are read out of what a program prints.

use serde::{Deserialize, Serialize};

use super::pattern::Pattern;

/// Whether more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A time.
    Lower,
    /// A rate.
    Higher,
}

/// What a figure stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The program's time, in place of that of the whole run.
    Time,
    /// Its time in communication.
    Communication,
    /// Something else.
    #[default]
    Other,
}

/// What becomes of several matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Several {
    /// The last counts.
    #[default]
    Last,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

/// One figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureRule {
    /// Its name in tables.
    pub name: String,
    /// Its first group captures the number.
    pub pattern: Pattern,
    /// What it is counted in.
    pub unit: String,
    /// Whether more is better.
    pub better: Better,
    /// What it stands for.
    #[serde(default)]
    pub role: Role,
    /// What becomes of several matches.
    #[serde(default)]
    pub several: Several,
}

impl FigureRule {
    /// The time of a whole run, from the launcher's start to its end.
    pub fn whole_run() -> Self {
        Self {
            name: "time".to_owned(),
            // Matches nothing that is written: it is measured.
            pattern: Pattern(regex::Regex::new("^$").unwrap_or_else(|_| unreachable!("a constant"))),
            unit: "s".to_owned(),
            better: Better::Lower,
            role: Role::Time,
            several: Several::Last,
        }
    }

    /// The figure in this text.
    ///
    /// # Errors
    /// It is not there: a sentence.
    pub fn read(&self, text: &str) -> Result<f64, String> {
        let captured = self.pattern.0.captures_iter(text).filter_map(|found| found.get(1));
        let values: Vec<f64> = captured.filter_map(|number| number.as_str().parse().ok()).collect();
        let sum: f64 = values.iter().sum();
        let value = match self.several {
            Several::Last => values.last().copied(),
            Several::Sum => (!values.is_empty()).then_some(sum),
            Several::Mean => (!values.is_empty()).then(|| sum / values.len() as f64),
        };
        value.filter(|value| value.is_finite()).ok_or_else(|| {
            format!("it prints no {}: nothing matches '{}'", self.name, self.pattern.0.as_str())
        })
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
