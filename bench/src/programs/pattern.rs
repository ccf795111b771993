//! Regular expressions over what programs print.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// A regular expression whose `^` and `$` are the ends of a line.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(pub Regex);

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, regex::Error> {
        RegexBuilder::new(&text).multi_line(true).build().map(Self)
    }
}
